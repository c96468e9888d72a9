"""Findings, and the document that holds them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from cluster_run.facts import Fact
from cluster_run.ids import GroupRole, HostId, ParallelSizes, Rank, Step
from cluster_run.kinds import KINDS, OPEN_NOTES, Kind, KindRecord, Part
from cluster_run.problem import Problem

#: From the least to the worst.
Severity = Literal["info", "warning", "critical"]
Cause = Literal["compute", "dispatch", "input", "bandwidth", "unknown"]
Pattern = Literal["persistent", "intermittent", "transient", "trend"]
Verdict = Literal["healthy", "degraded", "unknown"]
Confidence = Literal["high", "medium", "low"]

#: Share of the step from which a finding is a warning, and from which it is critical: what `severity` means
#: to all who write or read findings.json. The thresholds say what makes an alarm.
WARNING_COST_SHARE = 0.005
CRITICAL_COST_SHARE = 0.05
_SEVERITIES: tuple[Severity, ...] = get_args(Severity)
#: On these somebody should act; the others are for information.
ALARMS: frozenset[str] = frozenset(_SEVERITIES[1:])
#: The severities for which a command ends with 4, by the word of `--fail-on`.
FAILING: Mapping[str, frozenset[str]] = {
    "never": frozenset(),
    **{word: frozenset(_SEVERITIES[n:]) for n, word in enumerate(_SEVERITIES) if word in ALARMS},
}
#: With more ranks than this no devices are listed to go to.
_MAX_PLACES = 2


@dataclass(frozen=True)
class Link:
    """A directed link between two global ranks."""

    src: Rank
    dst: Rank
    transport: str


@dataclass(frozen=True)
class Evidence:
    """One number of who is late beside the same number of its peers; the metric's name ends in its unit."""

    metric: str
    value: float
    peers_median: float
    peers_mad: float
    n_peers: int

    @property
    def beyond_share(self) -> float:
        """By how much of the peers' number its own lies above it; infinite where theirs is 0."""
        return self.value / self.peers_median - 1.0 if self.peers_median > 0 else math.inf


@dataclass(frozen=True)
class Wait:
    """Waiting that a finding causes in groups of one role: who waits for whom, and how long.

    `waits_for` is who is late by itself, as the finding names it, or ranks that it held up. `rank` waits
    longest, `ms_per_step`.
    """

    group: GroupRole
    waits_for: Literal["late", "held_up"]
    n_ranks: int
    rank: Rank
    ms_per_step: float


@dataclass(frozen=True)
class Place:
    """Where a rank runs; host and device are None where they are not known."""

    rank: Rank
    host: HostId | None
    device: int | None


@dataclass(frozen=True)
class Finding:
    """One thing that costs time. Costs are those of the mean step; None means the cost is not known.

    `facts` are what is known of it, the first one what it is; reports make sentences of them. Not
    `separable`: with this traffic a neighbouring part may be the reason as well. `steps` are those in which
    it shows.
    """

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
    facts: tuple[Fact, ...] = ()
    chain: tuple[Wait, ...] = ()
    separable: bool = True
    #: From what it saves alone to what it saves once all other faults are repaired; None where not known.
    cost_low_ms: float | None = None
    cost_high_ms: float | None = None
    #: The ranks that it names, then both ends of its links.
    places: tuple[Place, ...] = ()
    #: Facts `rule_holds`: rules of the advice that may be its reason.
    advice: tuple[Fact, ...] = ()
    #: Some ranks of the same role to compare the first one with, which no alarm names; the nearest in number.
    peers: tuple[Rank, ...] = ()

    @property
    def is_alarm(self) -> bool:
        """Whether somebody should act on it; the others are for information."""
        return self.severity in ALARMS

    @property
    def record(self) -> KindRecord:
        """The record of its kind."""
        return KINDS[self.kind]

    @property
    def own_places(self) -> tuple[Place, ...]:
        """The places of the ends of its links where it is about links, else of the ranks that it names.

        Not slow are the other members of a link's group, and what is at the other end of a slow card's links.
        """
        ends = [rank for one in self.links for rank in (one.src, one.dst)]
        named = ends if ends and self.record.subject == "link" else self.ranks
        return tuple(one for one in self.places if not named or one.rank in named)

    @property
    def named_places(self) -> tuple[Place, ...]:
        """Its own places; none where they are many."""
        return self.own_places if len(self.own_places) <= _MAX_PLACES else ()

    @property
    def named_hosts(self) -> tuple[HostId, ...]:
        """The hosts that it is about, or else those of its few places."""
        return self.hosts or tuple(dict.fromkeys(one.host for one in self.named_places if one.host))

    @property
    def may_be_fault(self) -> bool:
        """Whether ranks or hosts that it names may be at fault: also a host that is slow, or its work."""
        is_named = bool(self.ranks or self.hosts or self.links)
        return (self.record.may_be_fault and is_named) or (bool(self.hosts) and not self.separable)


def gains_ms(findings: Iterable[Finding]) -> list[tuple[Finding, float]]:
    """Return what each finding adds to the saving of those that are repaired before it, in that order.

    The gains add up to the saving of repairing all of them, even if they hide each other.
    """
    known = [(one.cumulative_saving_ms, one) for one in findings if one.cumulative_saving_ms is not None]
    gains, saved_ms = [], 0.0
    for cumulative_ms, one in sorted(known, key=lambda pair: pair[0]):
        gains.append((one, cumulative_ms - saved_ms))
        saved_ms = cumulative_ms
    return gains


@dataclass(frozen=True)
class LostPart:
    """One part of a step's loss: in ms a step, and as a share of the whole loss."""

    part: Part
    ms: float
    share: float


@dataclass(frozen=True)
class RunInfo:
    """The analysed run. `step_ms` is the mean step time, None where no step could be read."""

    ranks: int
    expected_ranks: int
    hosts: int
    steps: tuple[Step, ...]
    step_ms: float | None
    sources: tuple[str, ...]
    parallel: ParallelSizes
    #: The run directory's name, and where it lies.
    name: str = ""
    path: str = ""
    #: When the newest capture began, by the clock of its host; and when it was analysed, in UTC. ISO 8601.
    captured: str | None = None
    analysed: str | None = None
    #: The command that finds the same again.
    command: str = ""
    #: The file that names the host of each number, as `command` would name it; empty without one.
    mapping: str = ""
    #: The mean step if all ranks did what their peers do on average, how many times as long the real one is,
    #: and what the difference is lost to; None and empty where the job cannot be replayed.
    ideal_step_ms: float | None = None
    slowdown: float | None = None
    lost: tuple[LostPart, ...] = ()


@dataclass(frozen=True)
class FindingsDocument:
    """The content of findings.json. `notes` say what could not be judged, and why."""

    SCHEMA: ClassVar[str] = "cluster-findings/1"
    tool_version: str
    run: RunInfo
    verdict: Verdict
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    notes: tuple[Fact, ...]
    replay: Mapping[str, float]


def unless_open(verdict: Verdict, notes: Iterable[Fact], *, lacks: bool) -> Verdict:
    """Return the verdict, but never `healthy`, a promise, where something `lacks` or a note is open."""
    is_open = lacks or any(one.kind in OPEN_NOTES for one in notes)
    return "unknown" if verdict == "healthy" and is_open else verdict


def severity_of(cost_share: float | None) -> Severity:
    """Return how much a cost matters; an unknown cost is `info`."""
    if cost_share is None or cost_share < WARNING_COST_SHARE:
        return "info"
    return "warning" if cost_share < CRITICAL_COST_SHARE else "critical"
