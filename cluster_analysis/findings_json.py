"""findings.json: the document of findings as text, and back.

Its sentences (`summary`, `next_check`, `reason`, `advice`, `notes`) are made here, in English; what is read
back are the facts next to them.

Schema history:
    cluster-findings/1   first version
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster_run.errors import ClusterError, InputError, SchemaError, spoken
from cluster_run.facts import fact_of
from cluster_run.findings import Evidence, Finding, FindingsDocument, Link, LostPart, Place, RunInfo, Wait
from cluster_run.ids import ParallelSizes
from cluster_run.layout import FINDINGS_NAME
from cluster_run.problem import Problem
from cluster_words.checks import next_check, page_of
from cluster_words.findings import summary
from cluster_words.notes import note
from cluster_words.problems import advice, reason

if TYPE_CHECKING:
    from cluster_analysis.result import Reported, Shown

TOOL_NAME = "cluster-analyse"
_FINDING_FIELDS = frozenset(one.name for one in fields(Finding))


def files(given: Reported) -> Iterator[tuple[str, bytes]]:
    """Give findings.json."""
    yield FINDINGS_NAME, document_to_json(given.result.document).encode("ascii")


def text(given: Reported, shown: Shown) -> str:
    """Return findings.json for stdout; programs read the same in every language."""
    return document_to_json(given.result.document)


def document_to_json(document: FindingsDocument) -> str:
    """Return findings.json: the same document gives the same bytes.

    Raises:
        ClusterError: a number is not finite, which no JSON reader takes; the message names the field.
    """
    plain = _plain(document)
    try:
        return json.dumps(plain, indent=1, allow_nan=False) + "\n"
    except ValueError as error:
        raise ClusterError(
            f"findings.json: {_not_finite(plain)} is not a finite number",
            "please report this as a mistake of ours",
        ) from error


def read_document(path: Path) -> FindingsDocument:
    """Return the document of a findings.json, as `document_to_json` wrote it.

    Raises:
        InputError: it is missing, or not whole.
        SchemaError: it has another schema version.
    """
    try:
        plain = json.loads(path.read_bytes())
        if plain["schema"] != FindingsDocument.SCHEMA:
            raise SchemaError(f"{path}: schema {plain['schema']!r} found, {FindingsDocument.SCHEMA!r} wanted")
        run = _tuples(plain["run"])
        return FindingsDocument(
            tool_version=plain["tool"]["version"],
            run=RunInfo(
                **{
                    **run,
                    "parallel": ParallelSizes(**run["parallel"]),
                    "lost": tuple(LostPart(**one) for one in plain["run"].get("lost", ())),
                }
            ),
            verdict=plain["verdict"],
            findings=tuple(_finding(one) for one in plain["findings"]),
            problems=tuple(_problem(one) for one in plain["problems"]),
            notes=tuple(fact_of(one) for one in plain.get("note_facts", ())),
            replay=dict(plain.get("replay", {})),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = (
            str(error) if isinstance(error, ValueError) else "a field is missing, or is not what it should be"
        )
        raise InputError(f"{path}: not readable findings: {why}", "analyse the run again") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {spoken(error)}", "analyse the run again") from error


def _finding(plain: dict[str, Any]) -> Finding:
    parts = {name: value for name, value in _tuples(plain).items() if name in _FINDING_FIELDS}
    rows = {
        "links": tuple(Link(**one) for one in parts["links"]),
        "evidence": tuple(Evidence(**one) for one in parts["evidence"]),
        "facts": tuple(fact_of(one) for one in parts["facts"]),
        "advice": tuple(fact_of(one) for one in parts.get("advice", ())),
        "chain": tuple(Wait(**one) for one in parts["chain"]),
        "places": tuple(Place(**one) for one in parts.get("places", ())),
    }
    return Finding(**{**parts, **rows})


def _problem(plain: dict[str, Any]) -> Problem:
    return Problem(
        fact_of({"kind": plain["kind"], **plain.get("values", {})}),
        file=plain.get("file", ""),
        rank=plain.get("rank"),
        host=plain.get("host"),
        advice=plain.get("advice_kind"),
        also=tuple(fact_of(one) for one in plain.get("also", ())),
    )


def _tuples(plain: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()}


def _not_finite(value: Any, path: str = "") -> str:
    """Return where the first number lies that JSON cannot hold."""
    if isinstance(value, float) and not math.isfinite(value):
        return path
    children: Iterable[tuple[object, Any]] = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list | tuple):
        children = enumerate(value)
    places = (_not_finite(child, f"{path}.{key}" if path else str(key)) for key, child in children)
    return next((place for place in places if place), "")


def _plain(document: FindingsDocument) -> dict[str, Any]:
    parallel = {name: size for name, size in document.run.parallel._asdict().items() if size}
    return {
        "schema": FindingsDocument.SCHEMA,
        "tool": {"name": TOOL_NAME, "version": document.tool_version},
        "run": {**asdict(document.run), "parallel": parallel},
        "verdict": document.verdict,
        "findings": [_plain_finding(finding) for finding in document.findings],
        "problems": [_plain_problem(problem) for problem in document.problems],
        "notes": [note(one).en for one in document.notes],
        "note_facts": [one.plain() for one in document.notes],
        "replay": dict(document.replay),
    }


def _plain_finding(finding: Finding) -> dict[str, Any]:
    facts = {name: [one.plain() for one in getattr(finding, name)] for name in ("facts", "advice")}
    said = {"summary": summary(finding).en, "next_check": next_check(finding).en}
    return {**asdict(finding), **facts, **said, "page": page_of(finding).en}


def _plain_problem(problem: Problem) -> dict[str, Any]:
    values = problem.why.plain()
    plain = {
        "kind": values.pop("kind"),
        "host": problem.host,
        "rank": problem.rank,
        "file": problem.file,
        "reason": reason(problem).en,
        "advice": advice(problem).en,
        "advice_kind": problem.advice,
        "values": values,
        "also": [one.plain() for one in problem.also],
    }
    return {name: value for name, value in plain.items() if value not in (None, "", {}, [])}
