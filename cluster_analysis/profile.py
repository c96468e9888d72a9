"""Where in a step a suspect loses its time: its gaps beside those of its peers, place by place."""

from __future__ import annotations

import numpy as np

from cluster_analysis.evidence import FloatArray, IntArray
from cluster_analysis.replay import Graph, LongArray
from cluster_analysis.stats import median


class GapProfiles:
    """The main-stream gaps of a job as (step, rank, place), for ranks that issue the same calls."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        main = np.flatnonzero(~graph.is_side)
        cell = graph.step[main] * len(graph.ranks) + graph.rank[main]
        order = np.argsort(cell, kind="stable")
        self._visits = main[order]
        n_cells = graph.n_steps * len(graph.ranks)
        count = np.bincount(cell, minlength=n_cells)
        self._count = count.reshape(graph.n_steps, len(graph.ranks))
        self._begin = np.r_[0, np.cumsum(count)[:-1]].reshape(graph.n_steps, len(graph.ranks))

    def visits_of(self, ranks: IntArray) -> LongArray | None:
        """Visits of ranks (positions) by place: (steps, ranks, places); None when their numbers of calls differ."""
        count = self._count[:, ranks]
        n_places = int(count.max(initial=0))
        if not n_places or (count != n_places).any():
            return None
        return self._visits[self._begin[:, ranks][..., None] + np.arange(n_places)]

    def excess_weights(self, suspects: IntArray, peers: IntArray, *, by_step: bool) -> FloatArray | None:
        """How much longer each gap of the suspects is than their peers': (steps, suspects, places); None if unclear.

        Computing loses time in the same places in each step, so that the mean over steps is taken: the
        luck of single gaps is not the fault's. Idle time scatters with the fault itself: `by_step`.
        """
        own, others = self.visits_of(suspects), self.visits_of(peers)
        if own is None or others is None or own.shape[2] != others.shape[2]:
            return None
        gap = self._graph.gap_us
        lost: FloatArray = gap[own] - median(gap[others], 1)[:, None, :]
        if not by_step:
            lost = np.broadcast_to(lost.mean(axis=(0, 1)), lost.shape)
        return np.maximum(lost, 0.0)
