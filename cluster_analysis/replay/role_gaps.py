"""Where in a step a rank loses its time: its gaps beside those of its peers, place by place."""

from __future__ import annotations

import numpy as np

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import stable_order
from cluster_analysis.numeric.stats import median
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.replay import MOST_SHARE, SLOW_PLACE_SHARE


class RoleGaps:
    """The main-stream gaps of a job as (step, rank, place), for ranks that issue the same calls.

    Ranks are positions in the `ranks` given here; those without operators have no gaps.
    """

    def __init__(self, ranks: IntArray, graph: Graph) -> None:
        self._gap_us = graph.gap_us
        main = np.flatnonzero(~graph.is_side)
        cell = graph.step[main] * len(graph.ranks) + graph.rank[main]
        self._instances = main[stable_order(cell)].astype(np.int32)
        shape = (graph.n_steps, len(graph.ranks))
        count = np.bincount(cell, minlength=shape[0] * shape[1])
        begin = np.r_[0, np.cumsum(count)[:-1]].reshape(shape)
        where = np.minimum(np.searchsorted(graph.ranks, ranks), len(graph.ranks) - 1)
        known = graph.ranks[where] == ranks
        self._count = np.where(known, count.reshape(shape)[:, where], 0)
        self._begin = begin[:, where]

    def instances_of(self, ranks: IntArray) -> IntArray | None:
        """Instances by place, (steps, ranks, places); None when the numbers of calls differ."""
        count = self._count[:, ranks]
        n_places = int(count.max(initial=0))
        if not n_places or (count != n_places).any():
            return None
        return np.asarray(self._instances[self._begin[:, ranks][..., None] + np.arange(n_places)])

    def lost_us(self, suspects: IntArray, peers: IntArray) -> FloatArray | None:
        """How much longer each gap of the suspects is than their peers': (steps, suspects, places)."""
        peers = self._like(suspects, peers)
        own, others = self.instances_of(suspects), self.instances_of(peers)
        if own is None or others is None or not len(peers):
            return None
        lost: FloatArray = self._gap_us[own] - median(self._gap_us[others], 1)[:, None, :]
        return lost

    def laid_beside(
        self, suspects: IntArray, peers: IntArray
    ) -> tuple[FloatArray, IntArray] | tuple[None, None]:
        """What `lost_us` says where calls are complete, and the instances; NaN and -1 in steps without some.

        Both are (steps, suspects, places); None where most steps lack calls.
        """
        own, others, at = self._complete_gaps(suspects, peers)
        if own is None or others is None or at is None or not len(peers):
            return None, None
        return own - median(others, 1)[:, None, :], at

    def longest_beyond_usual(self, suspects: IntArray, peers: IntArray, is_paused: BoolArray) -> IntArray:
        """The instances (steps, suspects) whose gaps are longest beyond what is usual in their place.

        Usual is what peers have there in the same step, or with none of them what the suspect has in steps
        without a pause. -1 in steps without calls; where calls are lost, the longest gap of all.

        Args:
            suspects: positions of those that pause.
            peers: positions of those they are compared with.
            is_paused: in which steps the suspects pause (suspects, steps).
        """
        own, others, _ = self._complete_gaps(suspects, peers)
        if own is None or others is None:
            beyond = np.full((len(self._begin), len(suspects), 0), np.nan)
        elif len(peers):
            beyond = own - median(others, 1)[:, None, :]
        else:
            beyond = own - median(np.where(is_paused.T[..., None], np.nan, own), 0)
        found = np.full(beyond.shape[:2], -1)
        for step, at in np.argwhere(is_paused.T).tolist():
            begin, count = self._begin[step, suspects[at]], self._count[step, suspects[at]]
            here = self._instances[begin : begin + count]
            if not count:
                continue
            known = np.isfinite(beyond[step, at]).all() and beyond.shape[2] == count
            found[step, at] = here[np.argmax(beyond[step, at] if known else self._gap_us[here])]
        return found

    def slow_share(
        self, suspects: IntArray, peers: IntArray, shared: FloatArray | None = None
    ) -> float | None:
        """Share of the peers' time that lies in places where the suspects are slow.

        Args:
            suspects: positions of the suspects.
            peers: positions of those they are compared with.
            shared: logarithm of what lengthens a rank's gaps in a step for its data's sake (R, S).
        """
        own, others, _ = self._complete_gaps(suspects, peers)
        if own is None or others is None:
            return None
        if shared is not None:
            factor = np.exp(-np.nan_to_num(shared)).T[:, :, None]
            own, others = own * factor[:, suspects], others * factor[:, peers]
        usual_by_step = median(others, 1)
        usual = _mean(usual_by_step, 0)
        # The middle of the suspects: one that is very slow says nothing of the others.
        by_place = _mean(median(own - usual_by_step[:, None, :], 1), 0)
        total = float(usual.sum())
        if total <= 0 or by_place.sum() <= 0:
            return 0.0
        is_slow = by_place > SLOW_PLACE_SHARE * usual * (by_place.sum() / total)
        return float(usual[is_slow].sum() / total)

    def _complete_gaps(
        self, suspects: IntArray, peers: IntArray
    ) -> tuple[FloatArray, FloatArray, IntArray] | tuple[None, None, None]:
        """Gaps of both, (steps, ranks, places): NaN in steps of a rank that lack calls, as records get lost.

        And the suspects' instances, -1 there. None where that is so in most steps of either: then they do
        not make the same calls.
        """
        everybody = np.r_[suspects, peers]
        count = self._count[:, everybody]
        n_places = int(np.bincount(count.ravel()).argmax()) if count.size else 0
        is_complete = count == n_places
        n_own = len(suspects)
        parts = [one for one in (is_complete[:, :n_own], is_complete[:, n_own:]) if one.size]
        if not n_places or min(one.mean() for one in parts) < MOST_SHARE:
            return None, None, None
        begin = np.where(is_complete, self._begin[:, everybody], 0)
        at = self._instances[begin[..., None] + np.arange(n_places)]
        gaps = np.where(is_complete[..., None], self._gap_us[at], np.nan)
        own = np.where(is_complete[:, :n_own, None], at[:, :n_own], -1)
        return gaps[:, :n_own], gaps[:, n_own:], own

    def _like(self, suspects: IntArray, peers: IntArray) -> IntArray:
        """The peers that have as many calls as the suspects: a lost record makes two gaps one."""
        wanted = self._count[:, suspects].max(axis=1, initial=0)
        return np.asarray(peers[(self._count[:, peers] == wanted[:, None]).all(axis=0)])


def _mean(values: FloatArray, axis: int | tuple[int, ...]) -> FloatArray:
    """Mean of what is known; 0 where nothing is."""
    known = np.isfinite(values)
    total: FloatArray = np.where(known, values, 0.0).sum(axis=axis) / np.maximum(known.sum(axis=axis), 1)
    return total


def longer_share(lost_us: FloatArray, active: BoolArray) -> float:
    """Share of places whose gap is longer than the peers', on average over active steps (steps,).

    Half is chance.
    """
    return float((lost_us[active].mean(axis=0) > 0).mean()) if active.any() else 0.0


def concentration(lost_us: FloatArray, active: BoolArray) -> float:
    """Share of the excess that the single longest gap of each active step holds; 1 is one pause."""
    chosen = np.maximum(lost_us[active], 0.0)
    total = lost_us[active].sum()
    return float(np.clip(chosen.max(axis=2).sum() / max(total, 1e-9), 0.0, 1.0)) if chosen.size else 0.0
