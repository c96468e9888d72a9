"""findings.json as the hook needs it: the verdict, and one line that says what matters.

Read by itself: the analysis' own reader brings pyarrow, which the drain and the sweep have no use for.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_run.errors import InputError, SchemaError
from cluster_run.findings import Place

SCHEMA = "cluster-findings/1"
_FAULTY = ("warning", "critical")
#: A whole host needs no list of its devices in a message.
_MAX_PLACES = 4


@dataclass(frozen=True)
class FindingLine:
    """One finding, as a message shows it. Costs are None where they are not known."""

    id: str
    kind: str
    severity: str
    summary: str
    cost_ms_per_step: float | None
    cost_share: float | None
    #: Where it is, as every report tells it: `rank 13 = host 2 / device 5`.
    places: tuple[str, ...] = ()

    @property
    def is_fault(self) -> bool:
        """Whether somebody should look at it: a warning or worse."""
        return self.severity in _FAULTY

    @property
    def text(self) -> str:
        """The summary with its cost, and where it is."""
        where = f" {'; '.join(self.places)}." if 0 < len(self.places) <= _MAX_PLACES else ""
        if self.cost_ms_per_step is None:
            return self.summary + where
        share = f", {self.cost_share:.1%} of the step" if self.cost_share is not None else ""
        return f"{self.summary.rstrip('.')} ({self.cost_ms_per_step:.1f} ms a step{share}).{where}"


@dataclass(frozen=True)
class Verdict:
    """What an analysis said. `problems` are the first lines of what could not be used."""

    verdict: str
    ranks: int
    expected_ranks: int
    findings: tuple[FindingLine, ...]
    problems: tuple[str, ...]

    @property
    def faults(self) -> tuple[FindingLine, ...]:
        """The findings somebody should look at, the most expensive first."""
        return tuple(finding for finding in self.findings if finding.is_fault)

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        parts = [self.verdict]
        if self.faults:
            parts.append(self.faults[0].text)
            if len(self.faults) > 1:
                parts.append(f"{len(self.faults) - 1} more {_plural(len(self.faults) - 1, 'finding')}.")
        else:
            parts.append(f"{self.ranks} of {self.expected_ranks} ranks analysed, nothing to look at.")
            if self.verdict == "unknown":
                parts[-1] = f"{self.ranks} of {self.expected_ranks} ranks analysed, too little to judge."
        if self.problems:
            parts.append(
                f"{len(self.problems)} {_plural(len(self.problems), 'problem')}: {self.problems[0]}."
            )
        return f"{parts[0]}: {' '.join(parts[1:])}"


def read_verdict(path: Path) -> Verdict:
    """Read findings.json.

    Raises:
        InputError: the file is missing or not whole.
        SchemaError: it has another schema version.
    """
    try:
        document = json.loads(path.read_bytes())
        if document["schema"] != SCHEMA:
            raise SchemaError(f"{path}: schema {document['schema']!r} found, {SCHEMA!r} wanted")
        return Verdict(
            verdict=str(document["verdict"]),
            ranks=int(document["run"]["ranks"]),
            expected_ranks=int(document["run"]["expected_ranks"]),
            findings=tuple(_finding(finding) for finding in document["findings"]),
            problems=tuple(_problem(problem) for problem in document["problems"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: not readable findings: {error!r}") from error


def _finding(finding: dict[str, Any]) -> FindingLine:
    return FindingLine(
        id=str(finding["id"]),
        kind=str(finding["kind"]),
        severity=str(finding["severity"]),
        summary=str(finding["summary"]),
        cost_ms_per_step=finding.get("cost_ms_per_step"),
        cost_share=finding.get("cost_share"),
        places=tuple(
            Place(one["rank"], one["host"], one["device"]).text() for one in finding.get("places", ())
        ),
    )


def _problem(problem: dict[str, Any]) -> str:
    where = [f"{key} {problem[key]}" for key in ("host", "rank") if key in problem]
    where += [str(problem["file"])] if problem.get("file") else []
    return ": ".join([*([", ".join(where)] if where else []), str(problem["reason"]).rstrip(".")])


def _plural(number: int, word: str) -> str:
    return word if number == 1 else word + "s"
