"""The cost of imbalance: the step that would be if every rank did what its peers do on average.

After "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI'25): each rank's work is
replaced by the mean of its peers, and the job is replayed. The saving is split by findings.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.numeric.sorting import rows_at
from cluster_analysis.replay.replay import Graph
from cluster_run.findings import Finding, LostPart, gains_ms
from cluster_run.kinds import Part


class Ideal(Struct, frozen=True):
    """The mean step as measured, and as it would be, in µs."""

    step_us: float
    ideal_us: float

    @property
    def slowdown(self) -> float:
        """How many times as long as the ideal step the real one is."""
        return self.step_us / self.ideal_us


def evened(graph: Graph, view: JobView) -> Graph:
    """Return the graph with each gap as long as its peers' mean in the same place of the same step.

    Peers are ranks of one role that make as many calls in the step; a rank without any keeps its own.
    """
    role = rows_at(graph.ranks, view.ranks, view.role, -1)
    begin, count = graph.cell_begin[:-1], np.diff(graph.cell_begin)
    cells = np.arange(len(count))
    gap: FloatArray = graph.gap_us.copy()
    key = np.stack([role[cells % len(graph.ranks)], cells // len(graph.ranks), count])
    _, alike = np.unique(key, axis=1, return_inverse=True)
    for one in range(int(alike.max(initial=-1)) + 1):
        same = np.flatnonzero(np.ravel(alike) == one)
        at = begin[same][:, None] + np.arange(count[same[0]])
        gap[at] = gap[at].mean(axis=0)
    return graph.with_gaps(gap)


def lost_parts(ideal: Ideal, findings: Sequence[Finding]) -> tuple[LostPart, ...]:
    """Divide the loss of the step into savings of findings (no upper bounds) and `other`: the rest."""
    lost_ms = max(0.0, (ideal.step_us - ideal.ideal_us) / 1e3)
    sums: dict[Part, float] = {}
    for one, gain_ms in gains_ms(findings):
        if one.record.part is not None and gain_ms:
            sums[one.record.part] = sums.get(one.record.part, 0.0) + gain_ms
    parts = list(sums.items())
    parts.append(("other", max(0.0, lost_ms - sum(sums.values()))))
    parts.sort(key=lambda one: (-one[1], one[0]))
    return tuple(
        LostPart(part, round(cost, 3), round(cost / lost_ms, 4) if lost_ms > 0 else 0.0)
        for part, cost in parts
        if round(cost, 3) > 0
    )
