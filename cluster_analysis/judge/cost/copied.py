"""Waiting that a replay only copies: no repair makes it shorter, so that costs may be too low."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray
from cluster_analysis.numeric.sorting import combined, half_octaves, rows_at
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.common import HALFWAY, TOLERANCE_SHARE
from cluster_analysis.thresholds.replay import GAP_TOLERANCE, QUICK_QUANTILE


class Copied(Struct, frozen=True):
    """Of each rank (R,) of a graph, in µs of all steps: waiting that is copied, and that which follows.

    It is copied in messages whose other end is not known (`lone_us`), which last as long as they did, and
    in gaps longer than all that their rank did itself (`gaps_us`). The rest follows from who comes late.
    """

    lone_us: FloatArray
    gaps_us: FloatArray
    followed_us: FloatArray
    measured_us: FloatArray

    @property
    def share(self) -> float:
        """Of all waiting what is copied; 0 where nobody waits."""
        copied, followed = float((self.lone_us + self.gaps_us).sum()), float(self.followed_us.sum())
        return copied / (copied + followed) if copied > 0 else 0.0

    @property
    def step_share(self) -> float:
        """Copied waiting as a share of the steps of all ranks."""
        return float((self.lone_us + self.gaps_us).sum() / max(float(self.measured_us.sum()), 1.0))

    @property
    def holds_the_step(self) -> bool:
        """Whether some rank mostly waits for unknown ends, and long: the last rank ends the step."""
        is_most = self.lone_us >= HALFWAY * (self.lone_us + self.gaps_us + self.followed_us)
        return bool((is_most & (self.lone_us > TOLERANCE_SHARE * self.measured_us)).any())


def copied_waiting(view: JobView, graph: Graph) -> Copied:
    """Return what the replay of `graph` takes as it was."""
    n, waited, is_lone = len(graph.ranks), graph.waits_us, _is_lone(graph)
    at = np.flatnonzero(is_lone)
    lone = waited[at] + graph.transfer_us[graph.operator[at]] - _quick_us(graph, is_lone)[graph.operator[at]]
    beyond: FloatArray = np.zeros(n)
    if view.local_us.shape[1] == graph.n_steps:
        inside = 0.0 if view.waited_inside_us is None else view.waited_inside_us
        gaps, own = graph.main_gaps_us, rows_at(graph.ranks, view.ranks, view.local_us + inside, np.nan)
        beyond = np.where(gaps > (1.0 + GAP_TOLERANCE) * own, gaps - own, 0.0).sum(axis=1)
    lone_us, followed_us = (
        np.bincount(graph.rank[one], us, n).astype(np.float64)
        for one, us in ((at, lone), (np.flatnonzero(~is_lone), waited[~is_lone]))
    )
    return Copied(lone_us, beyond, followed_us, np.nansum(graph.measured_us, axis=0))


def _is_lone(graph: Graph) -> BoolArray:
    n = len(graph.rank)
    return np.asarray(graph.is_p2p & (graph.sender == n) & (graph.receiver == n))


def _quick_us(graph: Graph, is_lone: BoolArray) -> FloatArray:
    """Transfers (O,) with lone messages no longer than the quick ones of their kind and size."""
    quick_us: FloatArray = graph.transfer_us.copy()
    if not is_lone.any():
        return quick_us
    at = np.flatnonzero(graph.is_p2p)
    operator, lone = graph.operator[at], is_lone[at]
    _, alike = combined(graph.operator_type[operator], half_octaves(graph.operator_bytes[operator]))
    for one in np.unique(alike[lone]):
        same = alike == one
        least = float(np.quantile(graph.transfer_us[operator[same]], QUICK_QUANTILE))
        quick_us[operator[same & lone]] = np.minimum(quick_us[operator[same & lone]], least)
    return quick_us
