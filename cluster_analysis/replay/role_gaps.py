"""Where in a step a rank loses its time: its gaps compared with those of its peers, place by place."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import chain

import numpy as np

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import begins, distinct, places_in_runs
from cluster_analysis.numeric.stats import median
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.calls import MOST_SHARE
from cluster_analysis.thresholds.common import CLEAR_SIGMAS, HALFWAY


class RoleGaps:
    """The gaps of one stream of a job as (step, rank, place), for ranks that issue the same calls.

    Ranks are positions in the `ranks` given here; those without operators have no gaps.
    """

    def __init__(self, ranks: IntArray, graph: Graph, *, of_side: bool = False) -> None:
        self._job = ranks, graph
        self._gap_us = graph.gap_us
        own = np.flatnonzero(graph.is_side == of_side)
        cell = graph.step[own] * len(graph.ranks) + graph.rank[own]
        self._instances = own[np.argsort(cell, kind="stable")].astype(np.int32)
        shape = (graph.n_steps, len(graph.ranks))
        count = np.bincount(cell, minlength=shape[0] * shape[1])
        begin = np.r_[0, np.cumsum(count)[:-1]].reshape(shape)
        self._counts = count
        where = np.minimum(np.searchsorted(graph.ranks, ranks), len(graph.ranks) - 1)
        known = graph.ranks[where] == ranks
        self._count = np.where(known, count.reshape(shape)[:, where], 0)
        self._begin = begin[:, where]

    @cached_property
    def of_side(self) -> RoleGaps:
        """The gaps before calls of other streams."""
        return RoleGaps(*self._job, of_side=True)

    @cached_property
    def place(self) -> IntArray:
        """Which call of its stream in its step each instance is (V + 1,), -1 for those of other streams."""
        found = np.full(len(self._gap_us) + 1, -1, np.int32)
        found[self._instances] = places_in_runs(begins(np.repeat(np.arange(len(self._counts)), self._counts)))
        return found

    def beside_peers(
        self, suspects: IntArray, peers: IntArray
    ) -> Iterator[tuple[IntArray, FloatArray, FloatArray, IntArray]]:
        """Give steps (S,), the gaps of both in them (S, ranks, places), and the suspects' instances.

        Steps with as many calls lie side by side: some may show a call on another stream than others do. NaN
        and -1 where a rank lacks calls in a step, as records get lost. Nothing where that is so in most
        steps of either: then they do not make the same calls.
        """
        everybody, n_own = np.r_[suspects, peers], len(suspects)
        usual = np.array([np.bincount(one).argmax() for one in self._count[:, everybody]])
        for n_places in np.unique(usual[usual > 0]).tolist():
            steps = np.flatnonzero(usual == n_places)
            at = np.ix_(steps, everybody)
            is_complete = self._count[at] == n_places
            parts = [one for one in (is_complete[:, :n_own], is_complete[:, n_own:]) if one.size]
            if min(one.mean() for one in parts) < MOST_SHARE:
                continue
            begin = np.where(is_complete, self._begin[at], 0)
            instances = self._instances[begin[..., None] + np.arange(n_places)]
            gaps = np.where(is_complete[..., None], self._gap_us[instances], np.nan)
            own = np.where(is_complete[:, :n_own, None], instances[:, :n_own], -1)
            yield steps, gaps[:, :n_own], gaps[:, n_own:], own

    def longest_beyond_usual(self, suspects: IntArray, peers: IntArray, is_paused: BoolArray) -> IntArray:
        """The instances (steps, suspects) whose gaps are longest beyond what is usual in their place.

        Usual is what ranks that do not pause have there in the same step, or with none of them what the
        suspect has in steps without a pause. The other streams show pauses of which the main one shows less
        than half. -1 in steps without calls; where calls are lost, the longest gap of all.

        Args:
            suspects: positions of those that pause.
            peers: positions of those they are compared with.
            is_paused: in which steps the suspects pause (suspects, steps).
        """
        found, most_us = np.full(is_paused.T.shape, -1), np.zeros(is_paused.T.shape)
        for step, at in np.argwhere(is_paused.T).tolist():
            begin, count = self._begin[step, suspects[at]], self._count[step, suspects[at]]
            here = self._instances[begin : begin + count]
            found[step, at] = here[np.argmax(self._gap_us[here])] if count else -1
        for stream in (self, self.of_side):
            for steps, own, others, instances in stream.beside_peers(suspects, peers):
                paused = is_paused.T[steps]
                without = np.where(paused[..., None], np.nan, own)
                usual = median(np.concatenate([without, others], axis=1), 1)[:, None]
                beyond = own - np.where(np.isfinite(usual), usual, median(without, 0))
                known = np.nonzero(paused & np.isfinite(beyond).all(axis=2))
                longest = beyond[known].argmax(axis=1)
                where, us = (steps[known[0]], known[1]), beyond[(*known, longest)]
                is_more = HALFWAY * us > most_us[where]
                found[where] = np.where(is_more, instances[(*known, longest)], found[where])
                most_us[where] = np.where(is_more, us, most_us[where])
        return found

    def longer_by_pauses(self, role: IntArray, lost_us: FloatArray) -> FloatArray:
        """How much longer gaps (V,) are for anybody's pauses, in steps in which ranks lose time (R, S).

        Where peers wait for it, usual is the middle of a rank's own steps, without what it loses where its
        gaps are longest. Less than half of a step's most is chance.
        """
        longer = np.zeros(len(self._gap_us))
        for same in np.unique(role[lost_us.any(axis=1)]).tolist():
            ranks = np.flatnonzero(role == same)
            for steps, gaps, _, at in self.beside_peers(ranks, ranks[:0]):
                lost = lost_us[np.ix_(ranks, steps)].T[..., None]
                longest = np.nan_to_num(gaps - median(gaps, 0)).argmax(axis=2)[..., None]
                without = gaps - lost * (np.arange(gaps.shape[2]) == longest)
                beyond = np.maximum(np.nan_to_num(gaps - median(without, 0)), 0.0)
                known = (at >= 0) & (lost > 0) & (beyond >= HALFWAY * beyond.max(axis=2, keepdims=True))
                longer[at[known]] = beyond[known]
        return longer

    def of_work_us(
        self, role: IntArray, sample: IntArray, paused_us: FloatArray, *, lasts: bool
    ) -> FloatArray:
        """How much longer each gap (V,) is for its work than the peers' mean in µs, less than 0 if shorter.

        Samples differ from micro-batch to micro-batch, so that each place waits for another one. The common
        part of TP/CP peers belongs to the sample. A significant excess in all steps is the rank's own, or its
        experts' (`lasts`). A pause is nobody's work. NaN where peers do not tell.

        Args:
            role: ranks that do the same work (R,).
            sample: those of them that have the same samples (R,).
            paused_us: how much longer than usual ranks idle in each step (R, S).
            lasts: what all steps have alike counts, and nothing else.
        """
        after = self._job[1].after
        found = np.full(len(after), np.nan)
        for same in np.unique(role).tolist():
            ranks = np.flatnonzero(role == same)
            streams = (self, self.of_side) if len(ranks) > 1 else ()
            found_in = (one.beside_peers(ranks, ranks[:0]) for one in streams)
            for steps, measured, _, at in chain.from_iterable(found_in):
                gaps = _without_pauses(measured, paused_us[np.ix_(ranks, steps)].T)
                since = self.place[after[at]]
                is_known = (at >= 0) & np.isfinite(gaps) & (since == np.median(since, axis=1, keepdims=True))
                known, peers = np.where(is_known, gaps, np.nan), distinct(sample[ranks])[1]
                together = np.stack(
                    [known[:, peers == one].mean(axis=1) for one in range(int(peers.max()) + 1)], axis=1
                )
                more = together - np.nansum(together, axis=1, keepdims=True) / np.maximum(
                    np.isfinite(together).sum(axis=1, keepdims=True), 1
                )
                if lasts:
                    more = np.broadcast_to(np.median(np.nan_to_num(more), axis=0), more.shape)
                else:
                    steady = np.nan_to_num(more).mean(axis=0)
                    by_step = np.nan_to_num(more).sum(axis=2)
                    varies = by_step.var(axis=0)  # long samples vary more than the middle of all
                    chance = np.maximum(varies, varies.mean()) / max(len(more) - 1, 1)
                    is_own = np.abs(by_step.mean(axis=0)) > CLEAR_SIGMAS * np.sqrt(chance)
                    more -= np.where(is_own[:, None], steady, 0.0)
                own = more[:, peers]
                is_known &= np.isfinite(own)
                found[at[is_known]] = own[is_known]
        return found


def _without_pauses(gaps: FloatArray, paused_us: FloatArray) -> FloatArray:
    """Gaps (S, R, places) less what ranks pause in each step (S, R): it lies where they are longest."""
    beyond = np.nan_to_num(gaps - median(gaps, 1)[:, None])
    longest = beyond.argmax(axis=2)[..., None]
    most = np.take_along_axis(beyond, longest, 2)
    without = np.take_along_axis(gaps, longest, 2) - np.clip(np.nan_to_num(paused_us)[..., None], 0.0, most)
    found = gaps.copy()
    np.put_along_axis(found, longest, without, 2)
    return found
