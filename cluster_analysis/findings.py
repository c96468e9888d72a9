"""Findings, and the document that holds them: findings.json.

Schema history:
    cluster-findings/1   first version
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from cluster_analysis.model import Confidence, ParallelSizes, Problem
from cluster_run.errors import ClusterError, InputError, SchemaError
from cluster_run.ids import HostId, Rank, Step

SCHEMA = "cluster-findings/1"
TOOL_NAME = "cluster-analyse"

FaultKind = Literal["slow_rank", "slow_host", "slow_link", "slow_nic", "slow_host_pair", "slow_uplink"]
WorkloadKind = Literal[
    "stage_imbalance",
    "data_imbalance",
    "expert_imbalance",
    "small_packets",
    "retransmission",
    "periodic_pause",
    "input_bound",
    "host_bound",
]
Kind = FaultKind | WorkloadKind
Severity = Literal["info", "warning", "critical"]
Cause = Literal["compute", "dispatch", "input", "bandwidth", "unknown"]
Pattern = Literal["persistent", "intermittent", "transient", "trend"]
Verdict = Literal["healthy", "degraded", "unknown"]

FAULT_KINDS: frozenset[str] = frozenset(FaultKind.__args__)  # type: ignore[attr-defined]

#: Share of the step from which a finding is a warning, and from which it is critical.
WARNING_COST_SHARE = 0.005
CRITICAL_COST_SHARE = 0.05


@dataclass(frozen=True)
class Link:
    """A directed link between two global ranks."""

    src: Rank
    dst: Rank
    transport: str


@dataclass(frozen=True)
class Evidence:
    """One number of a culprit beside the same number of its peers; the metric's name ends in its unit."""

    metric: str
    value: float
    peers_median: float
    peers_mad: float
    n_peers: int


@dataclass(frozen=True)
class Finding:
    """One thing that costs time. Costs are those of the mean step; None means the cost is not known."""

    id: str
    kind: Kind
    severity: Severity
    ranks: tuple[Rank, ...]
    hosts: tuple[HostId, ...]
    links: tuple[Link, ...]
    cause: Cause
    pattern: Pattern
    steps: tuple[Step, ...]
    cost_ms_per_step: float | None
    cost_share: float | None
    cumulative_saving_ms: float | None
    confidence: Confidence
    evidence: tuple[Evidence, ...]
    summary: str
    next_check: str
    chain: tuple[str, ...] = ()

    @property
    def is_alarm(self) -> bool:
        """Whether somebody should act on it; the others are for information."""
        return self.severity != "info"


@dataclass(frozen=True)
class RunInfo:
    """What was analysed. `step_ms` is the mean step time, None where no step could be read."""

    ranks: int
    expected_ranks: int
    hosts: int
    steps: tuple[Step, ...]
    step_ms: float | None
    sources: tuple[str, ...]
    parallel: ParallelSizes


@dataclass(frozen=True)
class FindingsDocument:
    """The content of findings.json. `notes` say what could not be judged, and why."""

    tool_version: str
    run: RunInfo
    verdict: Verdict
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...] = ()
    replay: Mapping[str, float] = field(default_factory=dict)


def severity_of(cost_share: float | None) -> Severity:
    """Return how much a cost matters; an unknown cost is `info`."""
    if cost_share is None or cost_share < WARNING_COST_SHARE:
        return "info"
    return "warning" if cost_share < CRITICAL_COST_SHARE else "critical"


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
    return Finding(
        **{**parts, "links": links, "evidence": tuple(Evidence(**one) for one in parts["evidence"])}
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
