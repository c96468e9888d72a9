"""Matches calls of different ranks that are one operator.

The members of a group issue the same operators in the same order, so the k-th call of one rank is the
k-th of another. Records do go missing, though, and then everything behind the hole would be compared
with the wrong partner. In order of trust:

1. same count and same kinds at every place: the place is the key;
2. running numbers with holes: the number is the key;
3. otherwise the shorter sequence is aligned with the longest so that kinds agree and the *ends* of
   calls that are aligned differ by one constant, the clocks' offset (all members of a
   synchronising operator leave it together).
"""

from __future__ import annotations

import numpy as np

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import begins, places_in_runs
from cluster_analysis.thresholds.calls import MAX_MISSING
from cluster_analysis.trace.calls import Calls


def match_calls(calls: Calls) -> tuple[IntArray, IntArray]:
    """Return for each call the operator it belongs to, and the operator's place in its group.

    Operators are numbered by group and place. Point-to-point calls are operators of their own; `messages`
    pairs them. Shapes: (V,) and (V,).
    """
    key = _places(calls)
    together = calls.collectives_by_group
    for group in np.flatnonzero(_irregular_groups(calls, key)).tolist():
        begin, end = np.searchsorted(calls.group[together], [group, group + 1])
        members = together[begin:end]
        key[members] = _aligned_places(calls, members)
    return _numbered(calls, key), key


def _numbered(calls: Calls, key: IntArray) -> IntArray:
    """Number the operators by group: in each the collectives by their keys, then the point-to-point calls."""
    n_groups = len(calls.groups)
    together, messages = calls.collectives_by_group, calls.messages_by_group
    longest = np.zeros(n_groups, np.int64)
    if len(together):
        first = np.flatnonzero(begins(calls.group[together]))
        longest[calls.group[together[first]]] = np.maximum.reduceat(key[together], first) + 1
    n_messages = np.bincount(calls.group[messages], minlength=n_groups)
    begin = np.r_[0, np.cumsum(longest + n_messages)]
    code = begin[calls.group] + key
    group = calls.group[messages]
    code[messages] = (begin[:-1] + longest)[group] + places_in_runs(begins(group))
    is_used = np.zeros(int(begin[-1]), bool)  # keys have holes where numbers have
    is_used[code] = True
    return np.asarray((np.cumsum(is_used, dtype=np.int32) - 1)[code])


def _places(calls: Calls) -> IntArray:
    """The running place of each call among its rank's calls in the same group.

    Point-to-point calls are counted apart, so that they do not shift the collectives.
    """
    found = np.empty(len(calls), np.int32)
    for order in (calls.collectives_by_group, calls.messages_by_group):
        found[order] = places_in_runs(_begins_of_ranks(calls, order))
    return found


def _begins_of_ranks(calls: Calls, order: IntArray) -> BoolArray:
    """Mark where another group or another rank begins in calls sorted by both."""
    return begins(calls.group[order]) | begins(calls.rank[order])


def _irregular_groups(calls: Calls, place: IntArray) -> BoolArray:
    """Groups (groups,) whose ranks differ in the number or the kinds of their calls.

    So do groups whose running numbers differ, if these have holes: two ranks that lack different calls make
    as many.
    """
    irregular = np.zeros(len(calls.groups), bool)
    order = calls.collectives_by_group
    if not len(order):
        return irregular
    group, kind, number = calls.group[order], calls.kind[order], calls.number[order]
    is_first = _begins_of_ranks(calls, order)
    begin = np.flatnonzero(is_first)
    of_rank, count = group[begin], np.diff(np.r_[begin, len(order)])
    # The group's first rank, which all others are compared with.
    lead = np.flatnonzero(begins(of_rank))
    n_ranks = np.diff(np.r_[lead, len(of_rank)])
    irregular[of_rank[count != np.repeat(count[lead], n_ranks)]] = True
    partner = np.repeat(np.repeat(begin[lead], n_ranks), count) + place[order]
    partner = np.minimum(partner, len(order) - 1)  # behind the last call where counts differ anyway
    irregular[group[kind != kind[partner]]] = True
    after_hole = ~is_first[1:] & (number[1:] != number[:-1] + 1) & (number[:-1] >= 0)
    has_hole = np.zeros(len(irregular), bool)
    has_hole[group[1:][after_hole]] = True
    irregular[group[(number != number[partner]) & has_hole[group]]] = True
    return irregular


def _aligned_places(calls: Calls, members: IntArray) -> IntArray:
    if _numbers_agree(calls, members):
        return np.asarray(calls.number[members] - calls.number[members].min())
    by_rank = np.split(members, np.flatnonzero(begins(calls.rank[members]))[1:])
    reference = max(by_rank, key=len)
    found_places = np.empty(len(members), np.int32)
    extra = len(reference)
    for own in by_rank:
        found = _align_with(calls, reference, own)
        unmatched = found < 0
        found[unmatched] = extra + np.arange(int(unmatched.sum()))
        extra += int(unmatched.sum())
        found_places[np.searchsorted(members, own)] = found
    return found_places


def _numbers_agree(calls: Calls, members: IntArray) -> bool:
    """True when the running numbers have holes or one that starts later overtakes another, and the same
    number always means the same kind.

    Else they tell nothing: profilers that count what they see restart behind a missing record.
    """
    rank, number, kind = calls.rank[members], calls.number[members], calls.kind[members]
    if (number < 0).any():
        return False
    by_number = np.lexsort((rank, number))
    is_same = ~begins(number[by_number])[1:]
    if (is_same & ~begins(rank[by_number])[1:]).any() or (is_same & begins(kind[by_number])[1:]).any():
        return False
    first = begins(rank)
    begin = np.flatnonzero(first)
    lowest = np.minimum.reduceat(number, begin)
    count = np.maximum.reduceat(number, begin) - lowest + 1
    has_holes = (count != np.diff(np.r_[begin, len(number)])).any()
    return bool(has_holes or (np.diff(number)[~first[1:]] < 0).any() or (lowest != lowest[0]).any())


def _align_with(calls: Calls, reference: IntArray, own: IntArray) -> IntArray:
    """Places of `own` in `reference`, -1 where a call has no partner."""
    missing = len(reference) - len(own)
    if missing > MAX_MISSING:
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
