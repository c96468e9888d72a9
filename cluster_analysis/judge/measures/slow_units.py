"""Which units of the network are slow: directed links, or teams of ranks, each against the like of it.

Bandwidth depends on transport, operator and size, so averages over them compare nothing. 3 % of single
observations are 40 % slow on healthy links; the median over a unit's independent observations is not.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.grouped import medians_of, quantiles_of
from cluster_analysis.numeric.sorting import combined, first_positions
from cluster_analysis.numeric.tails import binomial_tail
from cluster_analysis.thresholds.common import HALFWAY, TWICE
from cluster_analysis.thresholds.limits import Thresholds
from cluster_analysis.thresholds.network import HEALTHY_QUANTILE, SMALL_BYTES


class Observations(Struct, frozen=True):
    """What was seen of units: entries of links, or operators of teams; one entry each (N,).

    `unit` is whose it is, `kind` and `group` what was observed, in the step at a position. `excess` is
    ln(time per byte) beyond the like of it, NaN where it compares nothing.

    Units (U,): `members` are sender and receiver, or all ranks of a group in order (`is_group`), `transport`
    what carries their data.
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

    def are_of(self, group: str, kind: str | None = None) -> BoolArray:
        """Which are of a group, and of a kind if one is given."""
        are_own = (np.array(self.groups) == group)[self.group]
        return np.asarray(are_own & (True if kind is None else (np.array(self.kinds) == kind)[self.kind]))

    def are_events(self, limits: Thresholds) -> BoolArray:
        """Which last longer than contention makes of what is usual, and by so much: an event."""
        usual_us = self.time_us * np.exp(-self.excess)
        is_long = self.time_us - usual_us > limits.retransmission_us
        return np.asarray(is_long & (self.excess > np.log(TWICE)))


class Units(Struct, frozen=True):
    """The units of observations, one entry each (U,).

    `level` is the median excess of `n` observations, NaN where they compare nothing. `slow` says which are,
    and `chance` how probable so many slow observations are on a healthy unit, some of whose are; 1 of those
    that are not.
    """

    members: tuple[tuple[int, ...], ...]
    is_group: BoolArray
    transport: tuple[str, ...]
    level: FloatArray
    n: IntArray
    slow: BoolArray
    chance: FloatArray


def beyond_class(
    unit: IntArray, classes: tuple[IntArray, ...], slowness: FloatArray, effect: float
) -> FloatArray:
    """Return ln(time per byte) minus that of the class's middle healthy unit (N,).

    A slow uplink makes up to half of all links slow, so that their median would be no reference. What lies
    within the least effect of the 30 % quantile is healthy, and the middle of that is the reference.

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


def judged(seen: Observations, limits: Thresholds) -> Units:
    """Find the slow units, those that are slower by the effect in the middle, and by what chance each is.

    Small messages are all latency, and say nothing. Contention slows some transfers of any link for a moment:
    chance is how probable so many slow ones are on a healthy unit, some of whose are, as often as those of
    the others show.
    """
    n_units, least = len(seen.members), np.log1p(limits.link_effect)
    unit, known = seen.unit, np.isfinite(seen.excess) & (seen.size_bytes >= SMALL_BYTES)
    middle = medians_of(np.where(known, seen.excess, np.nan), unit)
    level = np.r_[middle, np.full(n_units - len(middle), np.nan)]
    is_slow = known & (seen.excess > HALFWAY * least)
    n, n_slow = (np.bincount(unit[one], minlength=n_units) for one in (known, is_slow))
    slow = np.nan_to_num(level, nan=-np.inf) >= least
    healthy = known & ~slow[unit]
    largest = np.sort(seen.excess[healthy & is_slow])
    chance = np.ones(n_units)
    for at in np.flatnonzero(slow).tolist():
        n_as_slow = len(largest) - int(np.searchsorted(largest, HALFWAY * level[at], side="right"))
        rate = (n_as_slow + 0.5) / (int(healthy.sum()) + 1)
        chance[at] = binomial_tail(int(n_slow[at]), int(n[at]), rate)
    return Units(seen.members, seen.is_group, seen.transport, level, n, slow, chance)
