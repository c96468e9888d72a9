"""What each call of a rank waits for locally: the call before it, or a call on another stream.

Calls that do not overlap in time form one sequence: the time between two of them is local work. Where
the groups of a rank do overlap, the groups with fewer calls run on a second stream. A call there begins
when the main stream has got far enough; where the main stream waits for one, the gaps of peers tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cluster_analysis.calls import Calls
from cluster_analysis.evidence import BoolArray, FloatArray, IntArray
from cluster_analysis.sorting import begins, distinct, searchsorted_within

#: Ends and starts closer than this are the resolution of the time stamps, not an overlap.
TOLERANCE_US = 5.0
#: A host's clock and its device's counter drift apart: long calls end that much later on paper.
_DRIFT = 1e-4
#: A side call that begins this soon after another one's end was queued behind it.
_QUEUE_US = 100.0
#: Peers that it takes to tell a join from a coincidence, and the share of them that must show it.
_ENOUGH_PEERS = 4
_FEW = 0.5
#: Counted from where computing began, gaps of peers scatter by less than this share of what waiting does.
_DRAIN_SCATTER = 0.5
#: Up to this many times as much they scatter alike.
_ALIKE_SCATTER = 1.2
#: Share of a kind's ranks, and of its calls, that must overlap others for it to be on a stream of its own.
_REGULAR_RANKS = 0.2
_REGULAR_CALLS = 0.1


@dataclass(frozen=True)
class Sequence:
    """Local dependencies of calls, each (V,): positions of calls, -1 for none.

    `after` is the call that the gap counts from; `join` a call of the other stream that must have
    ended too. `gap_us` is the local time from the later of the two, or from `after` on a side stream.
    """

    after: IntArray
    join: IntArray
    gap_us: FloatArray
    is_side: BoolArray


def sequence(
    calls: Calls, stage: IntArray, data_groups: frozenset[str] = frozenset(), *, sends_are_free: bool = False,
    data_is_free: bool = False,
) -> Sequence:  # fmt: skip
    """Find the streams of each rank; without time stamps all gaps are unknown (NaN).

    Args:
        calls: the step's calls.
        stage: pipeline stage of each rank (ranks,), any equal numbers where unknown.
        data_groups: groups known to be data-parallel, which frameworks put on a stream of their own.
        sends_are_free: sends run beside computing, as the step's overlapped time shows.
        data_is_free: so do the collectives of `data_groups`.
    """
    n = len(calls)
    after: IntArray = np.where(begins(calls.rank), -1, np.arange(-1, n - 1, dtype=np.int32))
    join: IntArray = np.full(n, -1, np.int32)
    if not calls.has_clock:
        return Sequence(after, join, np.full(n, np.nan), np.zeros(n, bool))
    sends = calls.is_send
    is_side = sends if (sends_are_free or _overlap_others(calls, sends)) else np.zeros(n, bool)
    if data_is_free:
        is_data = np.array([name in data_groups for name in calls.groups], bool)[calls.group]
        is_side = is_side | (is_data & ~calls.is_point_to_point)
    else:
        is_side = is_side | _side_calls(calls, is_side, data_groups)
    if is_side.any():
        is_side &= ~_awaited_at_begin(calls, is_side, stage)
        after, join = _split(calls, is_side)
        _keep_likely_joins(calls, is_side, after, join, stage)
        _count_from_drain(calls, is_side, after, join, stage)
    begun = np.where(after >= 0, calls.end_us[after], 0.0)
    joined = np.where((join >= 0) & ~is_side, calls.end_us[join], -np.inf)
    gap = calls.start_us - np.maximum(begun, joined)
    gap = np.where(after < 0, 0.0, np.maximum(gap, 0.0))
    # A side call behind another one had been issued before: it waited for the queue, not for local work.
    queued = (
        is_side & (join >= 0) & (calls.start_us <= np.where(join >= 0, calls.end_us[join], 0.0) + _QUEUE_US)
    )
    gap[queued] = 0.0
    return Sequence(after, join, gap, is_side)


def _awaited_at_begin(calls: Calls, is_side: BoolArray, stage: IntArray) -> BoolArray:
    """A rank's first call, on a second stream, if its main stream had to wait for it: the first weights.

    So far there is one sequence: what a rank does before it is the begin of its step. Peers tell, as in
    `_keep_likely_joins`; where they all come at once, either way explains them, and it is taken for awaited.
    """
    awaited = np.zeros(len(calls), bool)
    main = np.flatnonzero(~is_side)
    first_main = main[begins(calls.rank[main])]
    first = np.searchsorted(calls.rank, calls.rank[first_main])
    at = stage[calls.rank[first_main]]
    for one in np.unique(at).tolist():
        inside = (at == one) & (first < first_main)
        here, start = first[inside], calls.start_us[first_main[inside]]
        end = calls.end_us[here]
        if len(here) < _ENOUGH_PEERS or (end > start + TOLERANCE_US).any():
            continue
        if (calls.is_send[here] | _moves_gradients(calls)[here]).any():
            continue
        if _scatter(start - end) <= _ALIKE_SCATTER * _scatter(start - calls.start_us[here]) + TOLERANCE_US:
            awaited[here] = True
    return awaited


def _moves_gradients(calls: Calls) -> BoolArray:
    """Calls that add up what the ranks have computed: none of them has anything to send before."""
    return np.array(["reduce" in name for name in calls.types], bool)[calls.kind]


def _overlap_others(calls: Calls, sends: BoolArray) -> bool:
    """Whether any send was still going on when the rank began its next call."""
    begun_early = calls.start_us < _latest_end_before(calls, sends) - TOLERANCE_US
    return bool((begun_early & ~sends).any())


def _side_calls(calls: Calls, known: BoolArray, data_groups: frozenset[str]) -> BoolArray:
    """Calls on a second stream: data-parallel ones that overlap others, or groups with fewer calls."""
    rest = ~known & ~calls.is_point_to_point
    is_data = np.array([name in data_groups for name in calls.groups], bool)
    hit = _beside_messages(calls, ~known, rest & is_data[calls.group])
    begun_early = rest & (calls.start_us < _latest_end_before(calls, rest) - TOLERANCE_US)
    if not begun_early.any() and not hit.any():
        return np.zeros(len(calls), bool)
    n_calls = np.bincount(calls.group, minlength=len(calls.groups))
    per_rank = n_calls / np.maximum(_ranks_of_groups(calls), 1)
    for here in np.flatnonzero(begun_early).tolist():
        before = here - 1
        while before > 0 and not (
            rest[before]
            and calls.end_us[before] - _DRIFT * calls.elapse_us[before] >= calls.start_us[here] + TOLERANCE_US
        ):
            before -= 1
        if calls.group[before] != calls.group[here]:
            groups = {int(calls.group[call]): call for call in (before, here)}
            hit[groups[min(groups, key=lambda group: (not is_data[group], per_rank[group], group))]] = True
    # A kind of call is on another stream when it is there regularly, not when one record overlaps.
    # Data-parallel calls are of one stream, whatever they move.
    unit = np.where(is_data[calls.group], 0, 1 + calls.group * len(calls.types) + calls.kind)
    unit = distinct(unit)[1].astype(np.int64)
    n_units = int(unit.max(initial=-1)) + 1
    pairs = unit * len(calls.ranks) + calls.rank
    ranks_with = np.bincount(np.unique(pairs) // len(calls.ranks), minlength=n_units)
    ranks_hit = np.bincount(np.unique(pairs[hit]) // len(calls.ranks), minlength=n_units)
    n_hit, n_calls_of = np.bincount(unit[hit], minlength=n_units), np.bincount(unit[rest], minlength=n_units)
    enough = n_hit >= _REGULAR_CALLS * n_calls_of
    enough[unit[is_data[calls.group]]] = True  # some gradients and weights overlap, the others do not
    regular = (ranks_hit >= _REGULAR_RANKS * ranks_with) & enough
    return np.asarray(regular[unit] & rest)


def _beside_messages(calls: Calls, known_main: BoolArray, data: BoolArray) -> BoolArray:
    """Data-parallel calls that begin during a message of the main stream, or during which one begins."""
    message = known_main & calls.is_point_to_point
    hit = data & (calls.start_us < _latest_end_before(calls, message) - TOLERANCE_US)
    early = np.flatnonzero(message & (calls.start_us < _latest_end_before(calls, data) - TOLERANCE_US))
    if len(early):
        positions = np.flatnonzero(data)
        hit[positions[np.searchsorted(positions, early) - 1]] = True
    return hit


def _ranks_of_groups(calls: Calls) -> IntArray:
    """How many ranks each group's calls come from (groups,)."""
    group, rank = calls.group[calls.by_group], calls.rank[calls.by_group]
    first = begins(group) | begins(rank)
    # A rank that has both collectives and messages in a group is there twice.
    pairs = np.unique(group[first].astype(np.int64) * len(calls.ranks) + rank[first])
    return np.bincount(pairs // len(calls.ranks), minlength=len(calls.groups))


def _latest_end_before(calls: Calls, among: BoolArray) -> FloatArray:
    """The latest end among a rank's earlier calls (V,), -inf where there is none."""
    end = np.where(among, calls.end_us - _DRIFT * calls.elapse_us, -np.inf)
    latest: FloatArray = np.r_[-np.inf, _running_maxima(end, calls.rank)[:-1]]
    latest[begins(calls.rank)] = -np.inf
    return latest


def _running_maxima(values: FloatArray, rank: IntArray) -> FloatArray:
    """The largest value of a rank so far; the ranks are sorted."""
    found = np.empty_like(values)
    bounds = np.r_[np.flatnonzero(begins(rank)), len(rank)]
    for begin, end in pairwise(bounds.tolist()):
        np.maximum.accumulate(values[begin:end], out=found[begin:end])
    return found


def _split(calls: Calls, is_side: BoolArray) -> tuple[IntArray, IntArray]:
    """Dependencies with two streams a rank."""
    main, side = np.flatnonzero(~is_side), np.flatnonzero(is_side)
    sends = calls.is_send[side]
    after = np.full(len(calls), -1, np.int32)
    join = np.full(len(calls), -1, np.int32)
    _chain(calls, main, after)
    for queue in (side[sends], side[~sends]):
        _chain(calls, queue, join)
    if len(main):
        main_end = _running_maxima(calls.end_us[main] - _DRIFT * calls.elapse_us[main], calls.rank[main])
        begin, end = _own_slices(calls, main, side)
        begun = calls.start_us[side] + TOLERANCE_US
        ended = searchsorted_within(main_end, begin, end, begun, side="right") - 1
        after[side] = np.where(ended >= begin, main[np.maximum(ended, 0)], -1)
        _join_drained(calls, main, side[~sends], join)
    return after, join


def _chain(calls: Calls, queue: IntArray, before: IntArray) -> None:
    """Say of the calls of a queue (sorted) which one of their rank stands before them in it."""
    same = ~begins(calls.rank[queue])[1:]
    before[queue[1:][same]] = queue[:-1][same]


def _own_slices(calls: Calls, main: IntArray, side: IntArray) -> tuple[IntArray, IntArray]:
    """For each side call, where the calls of its rank begin and end in `main`."""
    bounds = np.searchsorted(calls.rank[main], np.arange(len(calls.ranks) + 1))
    return bounds[calls.rank[side]], bounds[calls.rank[side] + 1]


def _join_drained(calls: Calls, main: IntArray, side: IntArray, join: IntArray) -> None:
    """Candidates: the latest side call that ended in the gap before a main call and began before it.

    `_keep_likely_joins` decides which of them the main stream really waited for.
    """
    if not len(side):
        return
    start, end = calls.start_us[side], calls.end_us[side]
    queued = ~begins(calls.rank[side])
    queued[1:] &= start[1:] <= end[:-1] + _QUEUE_US
    # A call that was queued behind another one had been issued by the begin of the run.
    issued = start[np.maximum.accumulate(np.where(queued, 0, np.arange(len(side))))]
    # Each has ended when the first main call that begins later does, and when all others behind that do.
    slices = _own_slices(calls, main, side)
    next_main = searchsorted_within(calls.start_us[main] + TOLERANCE_US, *slices, end, side="left")
    is_followed = next_main < slices[1]
    latest = np.full(len(main), -1)
    latest[next_main[is_followed]] = np.flatnonzero(is_followed)
    latest = np.maximum.accumulate(latest)
    follows = ~begins(calls.rank[main]) & (latest >= 0)
    follows &= calls.rank[side[latest]] == calls.rank[main]
    here = np.flatnonzero(follows)
    chosen, before = latest[here], calls.end_us[main[here - 1]]
    has = (end[chosen] > before) & (issued[chosen] <= before + _QUEUE_US)
    join[main[here[has]]] = side[chosen[has]]


def _keep_likely_joins(
    calls: Calls, is_side: BoolArray, after: IntArray, join: IntArray, stage: IntArray
) -> None:
    """Drop joins that are a coincidence: computing went on while the side call ended.

    Peers compute for the same time at the same place. Counted from where the computing really began,
    the gaps of peers agree; counted from elsewhere they scatter as the waiting does.
    """
    main = np.flatnonzero(~is_side)
    count = np.bincount(calls.rank[main], minlength=len(calls.ranks))
    begin = np.r_[0, np.cumsum(count)[:-1]]
    for one, places in sorted(set(zip(stage.tolist(), count.tolist(), strict=True))):
        ranks = np.flatnonzero((stage == one) & (count == places))
        if not places:
            continue
        visits = main[begin[ranks][:, None] + np.arange(places)]
        has = join[visits] >= 0
        used = np.flatnonzero(has.mean(axis=0) >= _FEW)
        for place in np.flatnonzero(has.any(axis=0)):
            here = visits[:, place]
            if place in used and len(ranks) >= _ENOUGH_PEERS:
                begun = np.where(after[here] >= 0, calls.end_us[after[here]], 0.0)
                joined = np.where(join[here] >= 0, calls.end_us[join[here]], -np.inf)
                from_main = calls.start_us[here] - begun
                from_both = calls.start_us[here] - np.maximum(begun, joined)
                keep = _scatter(from_both) < _scatter(from_main)
            else:
                keep = False
            if not keep:
                join[here] = -1


def _count_from_drain(
    calls: Calls, is_side: BoolArray, after: IntArray, join: IntArray, stage: IntArray
) -> None:
    """Let a side call count from the side call before it where the main stream had waited for that one.

    An optimizer waits for its gradients and then gathers the weights on the same stream: the time between the
    two is work, and that since the main stream's last call is mostly waiting. Peers tell, as in
    `_keep_likely_joins`.
    """
    side = np.flatnonzero(is_side & ~calls.is_send)
    count = np.bincount(calls.rank[side], minlength=len(calls.ranks))
    begin = np.r_[0, np.cumsum(count)[:-1]]
    for one, places in sorted(set(zip(stage.tolist(), count.tolist(), strict=True))):
        ranks = np.flatnonzero((stage == one) & (count == places))
        if not places or len(ranks) < _ENOUGH_PEERS:
            continue
        visits = side[begin[ranks][:, None] + np.arange(places)]
        for place in range(1, places):
            here = visits[:, place]
            drained = np.where(join[here] >= 0, calls.end_us[join[here]], -np.inf)
            begun = np.where(after[here] >= 0, calls.end_us[after[here]], -np.inf)
            from_side = calls.start_us[here] - drained
            if not (np.isfinite(begun).all() and (drained > begun).all() and (from_side > _QUEUE_US).all()):
                continue
            if _scatter(from_side) < _DRAIN_SCATTER * _scatter(calls.start_us[here] - begun):
                after[here], join[here] = join[here], after[here]


def _scatter(values: FloatArray) -> float:
    """Mean distance from the middle: a few ranks that waited tell the most, and count therefore."""
    return float(np.mean(np.abs(values - np.median(values))))
