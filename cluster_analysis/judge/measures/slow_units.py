"""Which units of the network are slow: directed links, or groups of ranks, each against the like of it.

Bandwidth depends on transport, operator and size, so averages over them compare nothing. 3 % of single
observations are 40 % slow on healthy links; the median over a unit's independent observations is not.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.grouped import medians_of, quantiles_of
from cluster_analysis.numeric.sorting import combined, first_positions
from cluster_analysis.numeric.stats import binomial_tail
from cluster_analysis.thresholds.common import FEWEST_PEERS, HALFWAY, TWICE
from cluster_analysis.thresholds.network import HEALTHY_QUANTILE


class Units(Struct, frozen=True):
    """Directed links, and groups of ranks, one entry each (U,).

    `members`: sender and receiver, or all ranks of a group in order. `level` is the median excess of `n`
    observations, NaN where they compare nothing. `slow` says which are, and `chance` how probable so many
    slow observations are on a healthy unit, some of whose are; 1 of those that are not.
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

    Of two the slower one is known to be slow where contention could not make it so: else nobody knows how
    those of the class scatter, and they compare nothing: NaN. So does a single one.

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
    farthest = np.zeros(len(reference))
    np.maximum.at(farthest, member_class, above)
    is_few = np.bincount(member_class, minlength=len(reference)) < FEWEST_PEERS
    reference[is_few & (farthest < np.log(TWICE))] = np.nan
    return slowness - reference[class_of]


def judge_units(
    unit: IntArray,
    excess: FloatArray,
    members: tuple[tuple[int, ...], ...],
    is_group: BoolArray,
    transport: tuple[str, ...],
    effect: float,
) -> Units:
    """Find the slow units, those that are slower by the effect in the middle, and by what chance each is.

    Contention slows some transfers of any link for a moment: chance is how probable so many slow ones are on
    a healthy unit, some of whose are, as often as those of the others show.

    Args:
        unit: whose each observation is (N,).
        excess: each observation's (N,), NaN where it compares nothing.
        members: the ranks of each unit (U,).
        is_group: which units are no directed links (U,).
        transport: what carries each unit's data (U,).
        effect: the least effect, as a share of the time.
    """
    n_units, known, least = len(members), np.isfinite(excess), np.log1p(effect)
    level = np.full(n_units, np.nan)
    middle = medians_of(excess, unit)
    level[: len(middle)] = middle
    n = np.bincount(unit, known, n_units).astype(np.int32)
    n_slow = np.bincount(unit, np.where(known, excess, -np.inf) > HALFWAY * least, n_units).astype(np.int64)
    slow = np.nan_to_num(level, nan=-np.inf) >= least
    healthy = excess[~slow[unit] & known]
    largest = np.sort(healthy[healthy > HALFWAY * least])
    chance = np.ones(n_units)
    for at in np.flatnonzero(slow).tolist():
        n_as_slow = len(largest) - int(np.searchsorted(largest, HALFWAY * level[at], side="right"))
        chance[at] = binomial_tail(int(n_slow[at]), int(n[at]), (n_as_slow + 0.5) / (len(healthy) + 1))
    return Units(members, is_group, transport, level, n, slow, chance)
