"""Which calls of different ranks are one operator.

The members of a group issue the same operators in the same order, so the k-th call of one rank is the
k-th of another. Records do go missing, though, and then everything behind the hole would be compared
with the wrong partner. In order of trust:

1. same count and same kinds at every place: the place is the key;
2. running numbers with holes: the number is the key;
3. otherwise the shorter sequence is laid beside the longest so that kinds agree and the *ends* of
   calls that are laid together differ by one constant, the clocks' offset (all members of a
   synchronising operator leave it together).
"""

from __future__ import annotations

import numpy as np

from cluster_analysis.calls import Calls
from cluster_analysis.evidence import FloatArray, IntArray

#: More calls than this missing on one rank: the group's tail is left unmatched instead of searched.
_MAX_MISSING = 64


def match_calls(calls: Calls) -> tuple[IntArray, IntArray]:
    """Return for each call the operator it belongs to, and the operator's place in its group.

    Operators are numbered by group and place. Point-to-point calls are operators of their own; `messages`
    pairs them. Shapes: (V,) and (V,).
    """
    key = _places(calls)
    alone = calls.is_point_to_point
    for group in np.flatnonzero(_irregular_groups(calls, key)):
        members = np.flatnonzero((calls.group == group) & ~alone)
        if len(members):
            key[members] = _aligned_places(calls, members)
    longest = int(key.max(initial=0)) + 1
    # Each point-to-point call gets a key that no other has, behind those of the collectives.
    unique_key = np.where(alone, longest + np.arange(len(calls)), key)
    combined = calls.group.astype(np.int64) * (longest + len(calls)) + unique_key
    _, operator = np.unique(combined, return_inverse=True)
    return operator.ravel(), key


def _places(calls: Calls) -> IntArray:
    """The running place of each call among its rank's calls in the same group; calls are in order.

    Point-to-point calls are counted apart, so that they do not shift the collectives beside them.
    """
    alone = calls.is_point_to_point
    order = np.lexsort((np.arange(len(calls)), calls.rank, alone, calls.group))
    block = (2 * calls.group.astype(np.int64) + alone)[order] * (len(calls.ranks) + 1) + calls.rank[order]
    first = np.r_[True, block[1:] != block[:-1]] if len(block) else np.empty(0, bool)
    starts = np.maximum.accumulate(np.where(first, np.arange(len(block)), 0))
    places = np.empty(len(calls), np.int32)
    places[order] = np.arange(len(block)) - starts
    return places


def _irregular_groups(calls: Calls, key: IntArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """True for groups whose ranks differ in the number or the kinds of their calls."""
    n_groups, n_ranks = len(calls.groups), len(calls.ranks)
    together = ~calls.is_point_to_point
    count = np.bincount(
        (calls.group.astype(np.int64) * n_ranks + calls.rank)[together], minlength=n_groups * n_ranks
    ).reshape(n_groups, n_ranks)
    most = count.max(axis=1)
    irregular = ((count != most[:, None]) & (count > 0)).any(axis=1)
    slot = (np.r_[0, np.cumsum(most)][calls.group] + key)[together]
    low = np.full(int(most.sum()), np.iinfo(np.int32).max)
    high = np.full(int(most.sum()), -1)
    np.minimum.at(low, slot, calls.kind[together])
    np.maximum.at(high, slot, calls.kind[together])
    np.logical_or.at(irregular, calls.group[together], (low != high)[slot])
    return np.asarray(irregular)


def _aligned_places(calls: Calls, members: IntArray) -> IntArray:
    rank = calls.rank[members]
    by_rank = [members[rank == one] for one in np.unique(rank)]
    if _numbers_agree(calls, by_rank):
        return np.asarray(calls.number[members] - calls.number[members].min())
    reference = max(by_rank, key=len)
    places = np.empty(len(members), np.int32)
    extra = len(reference)
    for own in by_rank:
        found = _lay_beside(calls, reference, own)
        unmatched = found < 0
        found[unmatched] = extra + np.arange(int(unmatched.sum()))
        extra += int(unmatched.sum())
        places[np.searchsorted(members, own)] = found
    return places


def _numbers_agree(calls: Calls, by_rank: list[IntArray]) -> bool:
    """True when the running numbers have holes, and the same number always means the same kind.

    Numbers without holes tell nothing: they restart behind a missing record.
    """
    kinds: dict[int, int] = {}
    has_holes = False
    for own in by_rank:
        number = calls.number[own]
        if (number < 0).any() or len(np.unique(number)) != len(number):
            return False
        has_holes |= bool(number.max() - number.min() + 1 != len(number))
        for value, kind in zip(number.tolist(), calls.kind[own].tolist(), strict=True):
            if kinds.setdefault(value, kind) != kind:
                return False
    firsts = {int(calls.number[own].min()) for own in by_rank}
    return has_holes or len(firsts) > 1


def _lay_beside(calls: Calls, reference: IntArray, own: IntArray) -> IntArray:
    """Places of `own` in `reference`, -1 where a call has no partner."""
    missing = len(reference) - len(own)
    if missing > _MAX_MISSING:
        found = np.arange(len(own), dtype=np.int32)
        found[calls.kind[reference[: len(own)]] != calls.kind[own]] = -1
        return found
    found = np.full(len(own), -1, np.int32)
    offset = _clock_offset(calls, reference, own, missing)
    shift = 0
    for place in range(len(own)):
        choices = [
            other
            for other in range(place + shift, min(place + missing, len(reference) - 1) + 1)
            if calls.kind[reference[other]] == calls.kind[own[place]]
        ]
        if not choices:
            continue
        if calls.has_clock:
            best = min(
                choices,
                key=lambda other: abs(calls.end_us[reference[other]] - calls.end_us[own[place]] - offset),
            )
        else:
            best = choices[0]
        found[place] = best
        shift = best - place
    return found


def _clock_offset(calls: Calls, reference: IntArray, own: IntArray, missing: int) -> float:
    """The offset between two ranks' clocks under which most ends coincide."""
    if not calls.has_clock:
        return 0.0
    candidates: list[FloatArray] = [
        calls.end_us[reference[shift : shift + len(own)]] - calls.end_us[own] for shift in range(missing + 1)
    ]
    spread = [float(np.median(np.abs(one - np.median(one)))) for one in candidates]
    return float(np.median(candidates[int(np.argmin(spread))]))
