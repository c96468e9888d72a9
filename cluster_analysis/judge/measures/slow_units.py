"""Which units of the network are slow: directed links, or teams of ranks, each compared with similar ones.

Bandwidth depends on transport, operator and size, so averages over them compare nothing. 3 % of single
observations are 40 % slow on healthy links; the median over a unit's independent observations is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import compress

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.grouped import medians_of, order_by, quantiles_of
from cluster_analysis.numeric.sorting import combined, first_positions, searchsorted_within
from cluster_analysis.numeric.stats import shortest_half_sigma, sigma
from cluster_analysis.numeric.tails import binomial_tail, student_tail
from cluster_analysis.thresholds.common import HALFWAY, TWICE
from cluster_analysis.thresholds.judging import HEALTHY_QUANTILE, SMALL_BYTES
from cluster_analysis.thresholds.limits import Thresholds


class Observations(Struct, frozen=True):
    """Observations of units: entries of links, or operators of teams; one entry each (N,).

    `unit` is whose it is, `kind` and `group` what was observed, in the step at a position. `excess` is
    ln(time per byte) beyond that of similar ones, NaN where there is none to compare with.

    Units (U,): `members` are sender and receiver, or all ranks of a group in order (`is_group`), `transport`
    what carries their data. `is_link`: a file shows this link alone.
    """

    unit: IntArray
    step: IntArray
    kind: IntArray
    group: IntArray
    size_bytes: FloatArray
    time_us: FloatArray
    excess: FloatArray
    kinds: tuple[str, ...]
    groups: tuple[str, ...]
    members: tuple[tuple[int, ...], ...]
    is_group: BoolArray
    transport: tuple[str, ...]
    is_link: BoolArray

    def beside(self, links: Observations, kept: BoolArray) -> Observations:
        """Put the units `kept` (U,) of these behind those of links, whose names they have, too."""
        rows, number = np.flatnonzero(kept[self.unit]), len(links.members) + np.cumsum(kept) - 1
        own, of_rows = replace(self, unit=number[self.unit]), "unit step kind group size_bytes time_us excess"
        return replace(
            links,
            members=(*links.members, *compress(self.members, kept)),
            transport=(*links.transport, *compress(self.transport, kept)),
            is_group=np.r_[links.is_group, self.is_group[kept]],
            is_link=np.r_[links.is_link, self.is_link[kept]],
            **{name: np.r_[getattr(links, name), getattr(own, name)[rows]] for name in of_rows.split()},
        )

    def are_events(self, least_us: float) -> BoolArray:
        """Which observations are events: longer than contention makes a usual one, and by a least time."""
        usual_us = self.time_us * np.exp(-self.excess)
        return np.asarray((self.time_us - usual_us > least_us) & (self.excess > np.log(TWICE)))


class Units(Struct, frozen=True, dict=True):
    """The units of observations, one entry each (U,).

    `level` is the median excess of `n` observations, NaN where they compare nothing. `slow` says which are,
    and `chance` how probable that is of a healthy unit; 1 of those that are not. `rate` is how many bytes a
    link moves in a µs, infinite of groups.
    """

    members: tuple[tuple[int, ...], ...]
    is_group: BoolArray
    transport: tuple[str, ...]
    level: FloatArray
    n: IntArray
    slow: BoolArray
    chance: FloatArray
    rate: FloatArray
    is_link: BoolArray

    @cached_property
    def healthy(self) -> Mapping[str, tuple[int, float]]:
        """How many healthy units each transport has, and the spread of their levels."""
        carrier, known = np.array(self.transport), np.isfinite(self.level) & ~self.slow
        levels = {one: self.level[known & (carrier == one)] for one in set(self.transport)}
        return {one: (len(own), float(np.nan_to_num(sigma(own)))) for one, own in levels.items()}


def beyond_class(
    unit: IntArray, classes: tuple[IntArray, ...], slowness: FloatArray, effect: float
) -> FloatArray:
    """Return ln(time per byte) minus that of the class's middle healthy unit (N,).

    A slow uplink makes up to half of all links slow, so that their median would be no reference. Units
    within the least effect of the 30 % quantile are healthy, and their median is the reference.

    A single one compares nothing: NaN.

    Args:
        unit: whose observation each one is (N,).
        classes: what it must share with others to be compared with them, each (N,).
        slowness: ln(time per byte) (N,).
        effect: the least effect, as a share of the time.
    """
    class_of = combined(*classes)[1]
    member = combined(class_of, unit)[1]
    own = medians_of(slowness, member)
    member_class = class_of[first_positions(member)]
    above = own - quantiles_of(own, member_class, HEALTHY_QUANTILE)[member_class]
    reference = medians_of(np.where(above <= np.log1p(effect), own, np.nan), member_class)
    reference[np.bincount(member_class, np.isfinite(own), len(reference)) < 2] = np.nan
    return slowness - reference[class_of]


def units_of(seen: Observations, limits: Thresholds) -> Units:
    """Find the slow units, whose median is slower by the effect, and the p-value of each.

    Small messages are all latency, and say nothing. Contention slows some transfers of any link for a moment:
    chance is how probable that many slow ones are on a healthy unit, some of whose are, as often as those of
    others of its transport show; or such a middle, where links are as unlike as their densest half.
    """
    n_units, least = len(seen.members), np.log1p(limits.link_effect)
    unit, known = seen.unit, np.isfinite(seen.excess) & (seen.size_bytes >= SMALL_BYTES)
    level = medians_of(np.where(known, seen.excess, np.nan), unit, n_units)
    is_slow = known & (seen.excess > HALFWAY * least)
    n, n_slow = (np.bincount(unit[one], minlength=n_units) for one in (known, is_slow))
    slow = np.nan_to_num(level, nan=-np.inf) >= least
    transport, chance = np.array(seen.transport), np.ones(n_units)
    for one in np.unique(transport[slow]):
        own = slow & (transport == one)
        healthy = known & ~slow[unit] & (transport == one)[unit]
        largest = np.sort(seen.excess[healthy & is_slow])
        n_as_slow = len(largest) - np.searchsorted(largest, HALFWAY * level[own], side="right")
        chance[own] = binomial_tail(n_slow[own], n[own], (n_as_slow + 0.5) / (int(healthy.sum()) + 1))
        levels = level[np.isfinite(level) & (transport == one)]
        beyond = level[own] / np.maximum(shortest_half_sigma(levels[:, None]), 1e-9)
        chance[own] = np.maximum(chance[own], student_tail(beyond, max(len(levels) // 2, 1)))
    rates = medians_of(seen.size_bytes / np.maximum(seen.time_us, 1.0), unit, n_units)
    rates = np.where(seen.is_group | np.isnan(rates), np.inf, rates)
    return Units(seen.members, seen.is_group, seen.transport, level, n, slow, chance, rates, seen.is_link)


def units_by_step(seen: Observations, usual: Units, limits: Thresholds) -> Iterator[tuple[int, Units]]:
    """Give each step in which units are slower than usual, as far as that is no even chance.

    A foreign job, or a flow that shares a link for some steps, shows in no median over steps. Each unit is
    compared with its own, over all steps: `level` is beyond that, and `chance` how often others are as slow
    in other steps.
    """
    at = np.flatnonzero(np.isfinite(seen.excess) & (seen.size_bytes >= SMALL_BYTES))
    cell = combined(seen.step[at], seen.unit[at])[1]
    first = at[first_positions(cell)]
    step, unit = seen.step[first], seen.unit[first]
    beyond = medians_of(seen.excess[at] - usual.level[seen.unit[at]], cell)
    chances = np.ones(len(first))
    carrier = np.unique(usual.transport, return_inverse=True)[1][unit]
    for own in (np.flatnonzero(carrier == one) for one in np.unique(carrier)):
        for group, across in ((step[own], unit[own]), (unit[own], step[own])):
            chances[own] = np.minimum(chances[own], _more_than_by_chance(beyond[own], group, across, limits))
    for one in np.unique(step[chances < 1.0]).tolist():
        here, at = np.flatnonzero(step == one), np.flatnonzero((step == one) & (chances < 1.0))
        level, n, slow = np.full(len(seen.members), np.nan), np.zeros_like(usual.n), np.zeros_like(usual.slow)
        chance = np.ones(len(seen.members))
        level[unit[here]], n[unit[here]] = beyond[here], np.bincount(cell)[here]
        slow[unit[at]], chance[unit[at]] = True, chances[at]
        rate = usual.rate * np.exp(-np.nan_to_num(level))
        yield one, replace(usual, level=level, n=n, slow=slow, chance=chance, rate=rate)


def _more_than_by_chance(
    beyond: FloatArray, group: IntArray, across: IntArray, limits: Thresholds
) -> FloatArray:
    """How often others are as slow (N,), in groups with more slow units than by chance; else 1.

    Slow is what is half as slow as the slowest of its group: that makes who waits for it slower, too. Others
    share neither the group with it nor, `across` groups, what is slow in this one: of step and unit (N,) one
    is the group, the other one lies across. `beyond` is ln(time per byte) beyond what is usual (N,).
    """
    most = np.full(int(group.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(most, group, beyond)
    half = np.maximum(np.log1p(limits.link_effect), HALFWAY * most)
    slow = np.flatnonzero(beyond >= half[group])
    own, n = group[slow], np.bincount(group)
    n_slow, n_across = np.bincount(own, minlength=len(n)), np.bincount(across)
    # Of those that share `across` with a slow one, just the slow ones are of its group, too.
    end, n_sharing = np.cumsum(n_across)[across[slow]], n_across[across[slow]]
    ordered = beyond[order_by(beyond, across)]
    below = searchsorted_within(ordered, end - n_sharing, end, half[own], side="left")
    n_others = len(beyond) - n + n_slow - np.bincount(own, n_sharing, len(n))
    n_as_slow = len(beyond) - np.searchsorted(np.sort(beyond), half) - np.bincount(own, end - below, len(n))
    rate = (n_as_slow + 0.5) / (n_others + 1)
    p_value, chance = binomial_tail(n_slow, n, rate) * np.count_nonzero(n), np.ones(len(beyond))
    chance[slow] = np.where(p_value <= HALFWAY, rate, 1.0)[own]
    return chance
