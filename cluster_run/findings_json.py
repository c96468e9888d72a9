"""findings.json: the document of findings as text, and back.

Schema history:
    cluster-findings/1   first version
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from cluster_run.errors import ClusterError, InputError, SchemaError
from cluster_run.findings import Evidence, Finding, FindingsDocument, Link, ParallelSizes, Place, RunInfo
from cluster_run.problem import Problem

SCHEMA = "cluster-findings/1"
TOOL_NAME = "cluster-analyse"


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


def document_from_json(text: str | bytes, name: str) -> FindingsDocument:
    """Return the document that `document_to_json` wrote; `name` is the file's, for messages.

    Raises:
        InputError: not a whole findings.json.
        SchemaError: of another schema version.
    """
    try:
        plain = json.loads(text)
        if plain["schema"] != SCHEMA:
            raise SchemaError(f"{name}: schema {plain['schema']!r} found, {SCHEMA!r} wanted")
        run = _tuples(plain["run"])
        return FindingsDocument(
            tool_version=plain["tool"]["version"],
            run=RunInfo(**{**run, "parallel": ParallelSizes(**run["parallel"])}),
            verdict=plain["verdict"],
            findings=tuple(_finding(one) for one in plain["findings"]),
            problems=tuple(Problem(**one) for one in plain["problems"]),
            notes=tuple(plain.get("notes", ())),
            replay=dict(plain.get("replay", {})),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{name}: not readable findings: {error!r}") from error


def _finding(plain: dict[str, Any]) -> Finding:
    parts = _tuples(plain)
    links = tuple(Link(**one) for one in parts["links"])
    evidence = tuple(Evidence(**one) for one in parts["evidence"])
    places = tuple(Place(**one) for one in parts.get("places", ()))
    return Finding(**{**parts, "links": links, "evidence": evidence, "places": places})


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
    parallel = {name: size for name, size in asdict(document.run.parallel).items() if size}
    return {
        "schema": SCHEMA,
        "tool": {"name": TOOL_NAME, "version": document.tool_version},
        "run": {**asdict(document.run), "parallel": parallel},
        "verdict": document.verdict,
        "findings": [asdict(finding) for finding in document.findings],
        "problems": [_plain_problem(problem) for problem in document.problems],
        "notes": list(document.notes),
        "replay": dict(document.replay),
    }


def _plain_problem(problem: Problem) -> dict[str, Any]:
    return {name: value for name, value in asdict(problem).items() if value not in (None, "")}
