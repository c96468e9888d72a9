"""How far ranks' clocks are apart, from the ends of collectives that they share.

Only used to find which of several messages was received, and where a lost call belongs.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import begins, distinct
from cluster_analysis.trace.calls import Calls


def clock_offsets(calls: Calls, operator: IntArray) -> FloatArray:
    """Offset of each rank's clock with which the members of a collective leave it together, µs (ranks,).

    Sets of ranks that no chain of shared collectives connects are settled one by one, each by the
    recorded clock of one of its ranks.

    Args:
        operator: the operator of each call (V,).
    """
    offset: FloatArray = calls.origin_us - calls.origin_us.min(initial=np.inf)
    if not calls.has_clock:
        return np.zeros(len(calls.ranks))
    settled = np.zeros(len(calls.ranks), bool)
    usable = calls.collectives_by_group  # ranks do not leave messages together
    inside = _by_group(calls, usable, calls.group[usable])
    group_of_member, member = members_of(calls)
    ranks_of = _by_group(calls, member, group_of_member)
    # The largest group first; of equal ones the last.
    waiting = sorted(
        (group for group, ranks in enumerate(ranks_of) if len(ranks) > 1),
        key=lambda group: (len(ranks_of[group]), group),
        reverse=True,
    )
    while waiting:
        later = []
        for group in waiting:
            known = settled[ranks_of[group]]
            if not known.any():
                later.append(group)
            elif not known.all():
                _settle(calls, operator, inside[group], offset, settled)
        if len(later) == len(waiting):  # no settled rank is in another group: the largest group begins anew
            _settle(calls, operator, inside[later.pop(0)], offset, settled)
        waiting = later
    return offset


def connected(group: IntArray, rank: IntArray, n_ranks: int) -> IntArray:
    """Number of the set of ranks (ranks,) that groups connect each rank to; they have members (M,)."""
    label: IntArray = np.arange(n_ranks)
    while True:
        least = np.full(int(group.max(initial=-1)) + 1, n_ranks, np.int64)
        np.minimum.at(least, group, label[rank])
        before = label.copy()
        np.minimum.at(label, rank, least[group])
        if (label == before).all():
            return label


def members_of(calls: Calls) -> tuple[IntArray, IntArray]:
    """(group, rank) of all ranks that make collectives in a group, sorted."""
    order = calls.collectives_by_group
    group, rank = calls.group[order], calls.rank[order]
    first = begins(group) | begins(rank)
    return group[first], rank[first]


def _by_group(calls: Calls, values: IntArray, group: IntArray) -> list[IntArray]:
    """Values by their group, (groups,) arrays; they are sorted by it."""
    bounds = np.searchsorted(group, np.arange(len(calls.groups) + 1)).tolist()
    return [values[begin:end] for begin, end in pairwise(bounds)]


def _settle(
    calls: Calls, operator: IntArray, inside: IntArray, offset: FloatArray, settled: BoolArray
) -> None:
    """Align the clocks of a group's ranks to the settled ones; without any, to the first rank's."""
    rank = calls.rank[inside]
    end = calls.end_us[inside] + offset[rank]
    ranks = np.unique(rank)
    known = ranks[settled[ranks]] if settled[ranks].any() else ranks[:1]
    _, code = distinct(operator[inside])
    reference = np.full(int(code.max()) + 1, np.nan)
    is_known = np.zeros(len(calls.ranks), bool)
    is_known[known] = True
    anchors = is_known[rank]
    reference[code[anchors]] = end[anchors]
    difference = reference[code] - end
    shared = np.flatnonzero(np.isfinite(difference) & ~anchors)
    # By rank, and in a rank by size: the median lies in the middle.
    shared = shared[np.lexsort((difference[shared], rank[shared]))]
    moved, begin, count = np.unique(rank[shared], return_index=True, return_counts=True)
    low, high = shared[begin + (count - 1) // 2], shared[begin + count // 2]
    offset[moved] += (difference[low] + difference[high]) / 2
    settled[ranks] = True
