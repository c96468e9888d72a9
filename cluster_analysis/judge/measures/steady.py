"""Judge a device by its kernels where its computing follows samples or the load of experts.

Some types of kernels do the same work on all ranks of a role, whatever the samples are: optimizers, norms of
weights. They are learned from the job: their times scatter least. If they are slow on a rank, its device is
slow; if only the other types are, its samples are long. Types that follow samples follow them together: if
one of them is slower than the others, the device is the reason again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from cluster_analysis.judge.measures.deviation import longer_than_peers, relative_to_other_hosts
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.stats import group_medians, median, most_of_others, shortest_half_sigma, sigma
from cluster_analysis.tables.kernels import KernelCalls
from cluster_analysis.thresholds.common import CLEAR_SIGMAS, FEWEST_PEERS, HALFWAY, TOLERANCE_SHARE, TWICE
from cluster_analysis.thresholds.judging import OPTIMIZERS, SMALL_SHARE, STEADIER_FACTOR, STEADY_SIGMA


class Kernels(Struct, frozen=True):
    """How much `longer` calls of each type take on a rank than on its peers, as logarithms (R, T).

    `shortest` is its shortest call. NaN where a rank calls it more or less often. `types` are names, each
    with the cores that run it; `call_us` is what a call takes, `spent_us` what all of them do.
    """

    types: Sequence[tuple[str, str]]
    longer: FloatArray
    shortest: FloatArray
    call_us: FloatArray
    spent_us: FloatArray

    @property
    def total_us(self) -> FloatArray:
        """Time of each type on all ranks together (T,)."""
        return np.asarray(self.spent_us.sum(axis=0))

    def of_device(self, view: JobView) -> FloatArray | None:
        """Return how much longer each rank computes because of its device, judged by its kernels (R,).

        As logarithms; None where all types scatter in ways of their own, NaN for ranks without any.
        """
        parts = [one for one in (self._steadiest(view), self._beyond_the_others()) if one is not None]
        return np.asarray(sum(parts[1:], parts[0])) if parts else None

    def whatever_stage(self, role: IntArray, in_one: JobView) -> FloatArray:
        """Return how much longer a rank computes than other hosts (R,), as logarithms, whatever its stage.

        That is the least of all types; nothing where one is quicker; NaN where they are not half of the time,
        as few types may share shapes. And it is the excess of one type that no other rank of its `role` (R,)
        shows: a stage shares its work. `in_one` role: one of two hosts moves the middle of all ranks halfway.
        """
        longer = relative_to_other_hosts(np.log(self.call_us), in_one)
        is_most = np.isfinite(longer) @ self.total_us >= HALFWAY * self.total_us.sum()
        least = np.maximum(np.fmin.reduce(longer, axis=1, initial=np.inf), 0.0)
        # Longer samples lengthen most types alike.
        beyond = np.nan_to_num(longer - median(longer, 1)[:, None])
        own = self._share_of_all(np.maximum(beyond - most_of_others(beyond, role), 0.0))
        return np.asarray(np.where(is_most, least + np.log1p(own), np.nan))

    def of_samples(self, known: BoolArray, view: JobView) -> FloatArray:
        """Return how far all types take longer than those that update weights (R,), as logarithms.

        Compared with other hosts, of `known` ranks (R,). Longer samples lengthen all but the updates.
        """
        longer = relative_to_other_hosts(np.log(np.where(known[:, None], self.call_us, np.nan)), view)
        follows = ~self.updates & (self.total_us >= SMALL_SHARE * self.total_us.sum())
        least = np.fmin.reduce(longer[:, follows], axis=1, initial=np.inf)
        least = least - median(longer[:, self.updates], 1)
        return np.where(np.isfinite(least), np.maximum(least, 0.0), 0.0)

    @property
    def updates(self) -> BoolArray:
        """Which types update weights (T,): there are as many weights whatever the samples are."""
        return np.array([any(word in name.lower() for word in OPTIMIZERS) for name, _ in self.types])

    def at_equal_calls(self) -> FloatArray:
        """Return how much longer kernels, called as often, take, also the shortest (R,), as logarithms."""
        return np.log1p(self._share_of_all(np.minimum(self.longer, np.nan_to_num(self.shortest, nan=np.inf))))

    def differ_by(self, group: IntArray) -> float:
        """The most that kernels take longer in a group (R,), as a logarithm; infinite if few compare."""
        by_rank = self.longer
        longer = [median(by_rank[group == one], 0) - median(by_rank[group != one], 0) for one in set(group)]
        is_most = np.isfinite(longer).all(axis=0) @ self.total_us >= HALFWAY * self.total_us.sum()
        return math.log1p(max(map(self._share_of_all, np.fmax(longer, 0.0)))) if is_most else math.inf

    def _steadiest(self, view: JobView) -> FloatArray | None:
        """How much longer the steadiest types take on each rank (R,); None where all types scatter."""
        # The load of experts may last, so that no step tells it.
        work_differs = view.has_experts or CLEAR_SIGMAS * _chance(view) > STEADY_SIGMA
        # The shortest half sees through half of the ranks being slow; two of few may agree by chance. So does
        # the scatter within each host, which sees through slow hosts, if ranks of one have unlike samples.
        within = sigma(self.longer - group_medians(self.longer, view.host), 0)
        scatters = (sigma(self.longer, 0), shortest_half_sigma(self.longer), within)
        for types, may_follow in ((np.ones_like(self.updates), work_differs), (self.updates, False)):
            for scatter in scatters:
                limit = self._usual(scatter) / STEADIER_FACTOR if may_follow else STEADY_SIGMA
                is_steady = types & (scatter <= limit)
                if is_steady.any():
                    # No type can lose more through the device than the type that loses least.
                    steady = median(self.longer[:, is_steady], 1)
                    least = _least(self.longer, scatter)
                    return np.where(np.isfinite(steady), np.minimum(steady, least), np.nan)
        return None

    def _beyond_the_others(self) -> FloatArray | None:
        """How much longer a rank computes because some types take longer than others that follow samples too.

        Longer samples lengthen these types alike on every rank: the least of them says by how much. What
        others take beyond that is no sample's. None where types hardly differ, so that they show nothing of
        what they follow, or with too few alike to tell which of them differs.
        """
        usual = self._usual(sigma(self.longer, 0))
        apart = sigma(self.longer - median(self.longer, 1)[:, None], 0)
        # A type that updates weights, or that few of its ranks call as often, is not known to follow samples.
        is_known = ~self.updates & (np.isfinite(self.longer).sum(0) >= HALFWAY * (self.spent_us > 0).sum(0))
        alike = is_known & (apart <= usual / (TWICE * STEADIER_FACTOR))
        if alike.sum() < FEWEST_PEERS or not usual > HALFWAY * STEADY_SIGMA:
            return None
        beyond = np.maximum(self.longer - _least(self.longer[:, alike], apart[alike])[:, None], 0.0)
        return np.asarray(np.log1p(self._share_of_all(np.where(alike, beyond, 0.0))))

    def _usual(self, scatter: FloatArray) -> float:
        """How far the types that matter scatter."""
        return float(median(scatter[self.total_us >= SMALL_SHARE * self.total_us.sum()]))

    def _share_of_all(self, longer: FloatArray) -> FloatArray:
        """By which share all kernels of a rank take longer (R,), if its types do by logarithms (R, T)."""
        return np.asarray(np.expm1(np.nan_to_num(longer)) @ self.total_us / self.total_us.sum())


def _least(longer: FloatArray, scatter: FloatArray) -> FloatArray:
    """How much longer all types (R, T) may take on each rank (R,), given their scatter (T,)."""
    return np.asarray(np.fmin.reduce(longer + CLEAR_SIGMAS * scatter, axis=1, initial=np.inf))


def kernels_of(calls: KernelCalls, role: IntArray) -> Kernels | None:
    """Return calls of all ranks, compared within each `role` (R,); None if none can be compared."""
    spent = calls.spent_us
    with np.errstate(divide="ignore", invalid="ignore"):
        call_us = (spent - calls.of_other_calls_us(role)) / group_medians(calls.n_calls, role)
        shortest = np.log(calls.shortest_us) - group_medians(np.log(calls.shortest_us), role)
        often = np.abs(calls.n_calls / group_medians(calls.n_calls, role) - 1.0)
    # Other numbers of calls are other work; a few are lost with their records. Calls of no time say nothing.
    call_us[~(often <= TOLERANCE_SHARE) | (spent <= 0)] = np.nan
    matters = (np.isfinite(call_us).sum(0) > FEWEST_PEERS) & (spent.sum(0) > 0)
    if not matters.any():
        return None
    types = [calls.types[one] for one in np.flatnonzero(matters).tolist()]
    longer = np.log(call_us) - group_medians(np.log(call_us), role)
    return Kernels(types, *(one[:, matters] for one in (longer, shortest, call_us, spent)))


def _chance(view: JobView) -> float:
    """How much the totals of ranks differ because each step has new samples, as a logarithm.

    Infinite with too few steps to tell.
    """
    n_steps = len(view.steps)
    if n_steps < FEWEST_PEERS:
        return math.inf
    series = longer_than_peers(view.computing_us, view)
    return float(np.nan_to_num(sigma(series - median(series, 1)[:, None]))) / math.sqrt(n_steps)
