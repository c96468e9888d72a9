"""The values that the fleet's memory holds, and gives back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cluster_fleet.identity import Known
from cluster_fleet.judging.evidence import FloatArray, IntArray, Samples


@dataclass(frozen=True)
class NamedFinding:
    """A finding of a run with what it costs: `share` of the step, and the units of one host that it names."""

    finding: str
    kind: str
    share: float
    units: tuple[str, ...]


@dataclass(frozen=True)
class Series:
    """One metric of one run: keys of units, how much slower each was, and the errors (U,)."""

    metric: str
    keys: Sequence[str]
    values: FloatArray
    errors: FloatArray


@dataclass(frozen=True)
class RunRecord:
    """One run as the fleet remembers it. `fingerprint` is the capture's, however often it is analysed.

    `captured_s` is when it was recorded (seconds since 1970), `hours` how long its job ran, 1 where unknown.
    """

    fingerprint: str
    name: str
    captured_s: float
    hours: float
    step_ms: float
    verdict: str
    versions: Mapping[str, str] = field(default_factory=dict)
    units: Sequence[Known] = ()
    series: Sequence[Series] = ()
    findings: Sequence[NamedFinding] = ()


@dataclass(frozen=True)
class Unit:
    """A device or host of the fleet; `host` is the number of a device's host, -1 of a host."""

    known: Known
    host: int
    first_s: float
    last_s: float


@dataclass(frozen=True)
class RunLine:
    """A run without what it measured."""

    number: int
    name: str
    captured_s: float
    hours: float


@dataclass(frozen=True)
class History:
    """One metric over all runs; its samples name positions in `runs` and in `units` (U,), the numbers."""

    metric: str
    runs: Sequence[RunLine]
    units: IntArray
    samples: Samples
