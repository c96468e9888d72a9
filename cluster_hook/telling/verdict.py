"""findings.json as the hook needs it: the verdict, and one line that says what matters.

Read by itself: findings of an older analysis may lack what its own reader asks for. Chinese is made of the
facts, and is not there without them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_analysis.findings_json import document_from_json
from cluster_analysis.sentences import findings, problems
from cluster_analysis.sentences.phrase import Language
from cluster_analysis.sentences.results.costs import cost_between
from cluster_hook.telling.sentences import place_text, say, verdict_name
from cluster_run.errors import ClusterError, InputError, SchemaError
from cluster_run.findings import FindingsDocument, Place

SCHEMA = "cluster-findings/1"
_FAULTY = ("warning", "critical")
#: A whole host needs no list of its devices in a message.
_MAX_PLACES = 4
#: Records of requests are kept for a month: thousands of broken captures are a number in them.
_N_PROBLEMS = 20


@dataclass(frozen=True)
class FindingLine:
    """One finding, as a message shows it. Costs are None where they are not known."""

    id: str
    kind: str
    severity: str
    summary: str
    cost_ms_per_step: float | None
    cost_share: float | None
    #: Its place, as in every report: `rank 13 = host 2 / device 5`.
    places: tuple[str, ...] = ()
    #: Empty where the findings hold no facts to make it of.
    summary_zh: str = ""
    places_zh: tuple[str, ...] = ()
    #: Its lower and upper cost, with other repairs too.
    cost_low_ms: float | None = None
    cost_high_ms: float | None = None
    #: Whether it may be more, which ranks that are not there would tell.
    costs_at_least: bool = False

    @property
    def is_fault(self) -> bool:
        """Whether somebody should look at it: a warning or worse."""
        return self.severity in _FAULTY

    def text(self, language: Language = "en") -> str:
        """Return the summary with its cost, and where it is."""
        said = (self.summary_zh if language == "zh" else "") or self.summary
        where = self._where(language) if 0 < len(self.places) <= _MAX_PLACES else ""
        cost = cost_between(
            self.cost_ms_per_step, self.cost_low_ms, self.cost_high_ms, is_least=self.costs_at_least
        )
        if not cost.is_known:
            return said + where
        # The whole of its share, which findings of an older analysis do not hold themselves.
        step_ms = (
            self.cost_ms_per_step / self.cost_share if self.cost_ms_per_step and self.cost_share else None
        )
        share = say("share", language, share=cost.share(step_ms).of(language)) if step_ms else ""
        shown = cost.phrase(step_ms).of(language)
        return say("cost", language, said=said.rstrip(".。"), cost=shown, share=share) + where

    def _where(self, language: Language) -> str:
        if language == "zh" and self.places_zh:
            return f"{'；'.join(self.places_zh)}。"
        return f" {'; '.join(self.places)}."


@dataclass(frozen=True)
class Verdict:
    """Result of an analysis. `problems` are the first of the `n_problems` things that could not be used."""

    verdict: str
    ranks: int
    expected_ranks: int
    findings: tuple[FindingLine, ...]
    problems: tuple[str, ...]
    problems_zh: tuple[str, ...] = ()
    n_problems: int = 0

    @property
    def faults(self) -> tuple[FindingLine, ...]:
        """The findings somebody should look at, the most expensive first."""
        return tuple(finding for finding in self.findings if finding.is_fault)

    def headline(self, language: Language = "en") -> str:
        """Return the verdict in one line."""
        faults = self.faults
        ranks = {"n": self.ranks, "expected": self.expected_ranks}
        if faults:
            parts = [faults[0].text(language)]
            parts += [say("more", language, n=len(faults) - 1)] if len(faults) > 1 else []
        else:
            parts = [say("could_not_tell" if self.verdict == "unknown" else "nothing", language, **ranks)]
        shown = (self.problems_zh if language == "zh" else ()) or self.problems
        if shown:
            n = max(self.n_problems, len(shown))
            parts.append(say("problems", language, n=n, first=shown[0]))
        rest = ("" if language == "zh" else " ").join(parts)
        return say("headline", language, verdict=verdict_name(self.verdict, language), rest=rest)


def read_verdict(path: Path) -> Verdict:
    """Read findings.json.

    Raises:
        InputError: the file is missing or not whole.
        SchemaError: it has another schema version.
    """
    try:
        content = path.read_bytes()
        document = json.loads(content)
        if document["schema"] != SCHEMA:
            raise SchemaError(f"{path}: schema {document['schema']!r} found, {SCHEMA!r} wanted")
        summaries_zh, reasons_zh = _in_chinese(content, path)
        n_unsaid = len(document["findings"]) - len(summaries_zh)
        return Verdict(
            verdict=str(document["verdict"]),
            ranks=int(document["run"]["ranks"]),
            expected_ranks=int(document["run"]["expected_ranks"]),
            findings=tuple(
                _finding(finding, summary_zh)
                for finding, summary_zh in zip(
                    document["findings"], (*summaries_zh, *[""] * n_unsaid), strict=True
                )
            ),
            problems=tuple(
                _problem(problem, str(problem["reason"])) for problem in document["problems"][:_N_PROBLEMS]
            ),
            problems_zh=tuple(
                _problem(problem, reason_zh)
                for problem, reason_zh in zip(document["problems"][:_N_PROBLEMS], reasons_zh, strict=False)
            ),
            n_problems=len(document["problems"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: not readable findings: {error!r}") from error


def _in_chinese(content: bytes, path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return summaries and reasons; nothing where the document holds no facts."""
    try:
        document = document_from_json(content, str(path))
        return _summaries(document), tuple(problems.reason(one).zh for one in document.problems)
    except (ClusterError, KeyError):
        # Of an older or newer analysis: its English sentences are there all the same.
        return (), ()


def _summaries(document: FindingsDocument) -> tuple[str, ...]:
    return tuple(findings.summary(one).zh for one in document.findings)


def _finding(finding: dict[str, Any], summary_zh: str) -> FindingLine:
    places = [Place(one["rank"], one["host"], one["device"]) for one in finding.get("places", ())][
        : _MAX_PLACES + 1
    ]
    return FindingLine(
        id=str(finding["id"]),
        kind=str(finding["kind"]),
        severity=str(finding["severity"]),
        summary=str(finding["summary"]),
        cost_ms_per_step=finding.get("cost_ms_per_step"),
        cost_share=finding.get("cost_share"),
        places=tuple(place.text() for place in places),
        summary_zh=summary_zh,
        places_zh=tuple(place_text(place, "zh") for place in places),
        cost_low_ms=finding.get("cost_low_ms"),
        cost_high_ms=finding.get("cost_high_ms"),
        costs_at_least=any(one["kind"] == "cost_at_least" for one in finding.get("facts", ())),
    )


def _problem(problem: dict[str, Any], why: str) -> str:
    where = [f"{key} {problem[key]}" for key in ("host", "rank") if key in problem]
    where += [str(problem["file"])] if problem.get("file") else []
    return ": ".join([*([", ".join(where)] if where else []), why.rstrip(".。")])
