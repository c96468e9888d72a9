"""What changed between two runs of the same job, by rank, link, operator and part of the step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cluster_analysis.evidence import JobEvidence
from cluster_analysis.model import Topology


@dataclass(frozen=True)
class Change:
    """One quantity before and after. `low_share` to `high_share` is the band noise leaves around the change."""

    what: Literal["step", "component", "rank", "link", "operator"]
    name: str
    metric: str
    before: float
    after: float
    change_share: float
    low_share: float
    high_share: float
    is_certain: bool


@dataclass(frozen=True)
class Comparison:
    """All changes, the largest first. `refusals` say what cannot be compared, and why."""

    changes: tuple[Change, ...]
    summary: tuple[str, ...]
    refusals: tuple[str, ...] = ()


def compare(
    before: JobEvidence, before_topology: Topology, after: JobEvidence, after_topology: Topology
) -> Comparison:
    """Compare two runs; everything that is unlike in kind is refused with a reason, not guessed."""
    raise NotImplementedError
