"""Local dependency of each call of a rank: the call before it, or a call on another stream.

Calls that do not overlap in time form one sequence: the time between two of them is local work. If groups of
a rank overlap, those with fewer calls run on a second stream; if data-parallel calls of one group overlap,
those that were issued first do. A call there begins when the main stream has got far enough. The gaps of
peers show where the main stream waits for one.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import begins, distinct, searchsorted_within
from cluster_analysis.numeric.stats import running_maxima, scatter
from cluster_analysis.thresholds.calls import (
    ALIKE_SCATTER_FACTOR,
    ENOUGH_PEERS,
    QUEUE_US,
    REGULAR_CALLS,
    REGULAR_RANKS,
    TOLERANCE_US,
)
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.streams.joins import (
    are_queued,
    begins_with,
    chain,
    count_from_wait,
    issue_as_peers,
    keep_likely_joins,
    split,
)


class Streams(Struct, frozen=True):
    """Which stream each call runs on, and what it waits for; each (V,): positions of calls, -1 for none.

    `after` is the call that the gap counts from; `join` a call of the other stream that must have
    ended too. `gap_us` is the local time from the later of the two, or from `after` where the call
    `waits_last`: once its rank is done with what lies between, as on a side stream. A side call that is
    `queued` behind another one waited for that alone. Where the main stream `fetches` weights, the second
    one is that of the sums that run meanwhile.
    """

    after: IntArray
    join: IntArray
    gap_us: FloatArray
    is_side: BoolArray
    waits_last: BoolArray
    is_queued: BoolArray
    fetches: bool = False


def sequence(
    calls: Calls, stage: IntArray, data_groups: frozenset[str] = frozenset(), *, sends_are_free: bool = False,
    data_is_free: bool = False, may_ask_ahead: bool = True,
) -> Streams:  # fmt: skip
    """Find the streams of each rank; without time stamps all gaps are unknown (NaN).

    Args:
        stage: pipeline stage of each rank (ranks,), any equal numbers where unknown.
        data_groups: groups known to be data-parallel, which frameworks put on a stream of their own.
        sends_are_free: sends run during computing, as the step's overlapped time shows.
        data_is_free: so do the collectives of `data_groups`.
        may_ask_ahead: receives may be on a second stream.
    """
    n = len(calls)
    after: IntArray = np.where(begins(calls.rank), -1, np.arange(-1, n - 1, dtype=np.int32))
    join: IntArray = np.full(n, -1, np.int32)
    if not calls.has_clock:
        nothing = np.zeros(n, bool)
        return Streams(after, join, np.full(n, np.nan), nothing, nothing, nothing)
    sends = calls.is_send
    is_side = sends if (sends_are_free or _overlap_others(calls, sends, data_groups)) else np.zeros(n, bool)
    if may_ask_ahead and _asked_ahead(calls, data_groups):
        is_side = is_side | calls.is_receive
    if data_is_free:
        is_side = is_side | moves_data(calls, data_groups)
    else:
        is_side = is_side | _side_calls(calls, is_side, data_groups)
    sums = _sums_during_fetching(calls, data_groups)
    is_side = sums if sums is not None else _split_groups(calls, is_side, data_groups)
    waits_last = is_side
    if is_side.any():
        is_side &= ~_awaited_at_begin(calls, is_side, stage)
        after, join, ended = split(calls, is_side)
        issue_as_peers(calls, is_side, after, stage)
        waits_last = is_side | keep_likely_joins(calls, is_side, (after, join, ended), stage)
        count_from_wait(calls, is_side, after, join, stage)
    begun = calls.end_us[after]
    joined = np.flatnonzero((join >= 0) & ~waits_last)
    begun[joined] = np.maximum(begun[joined], calls.end_us[join[joined]])
    gap = np.maximum(calls.start_us - begun, 0.0)
    gap[after < 0] = 0.0
    # A side call behind another one had been issued before: it waited for the queue, not for local work.
    queued = is_side & are_queued(calls, after, join)
    gap[queued] = 0.0
    return Streams(after, join, gap, is_side, waits_last, queued, sums is not None)


def _sums_during_fetching(calls: Calls, data_groups: frozenset[str]) -> BoolArray | None:
    """Return sums of gradients (V,) that go on while another group fetches weights; None in any other job.

    Computing needs the weights, so that fetching them is the main stream's. No more is summed than was
    fetched.
    """
    fetches, sums = calls.moving("weights"), calls.moves_gradients
    if not fetches.any() or calls.is_point_to_point.any():
        return None
    n = len(calls.groups)
    n_ranks = np.maximum(_ranks_of_groups(calls), 1)
    n_fetched = np.bincount(calls.group[fetches], minlength=n)
    main = (n_fetched > 0)[calls.group]
    fetched = np.unique(calls.rank[main].astype(np.int64) * n + calls.group[main])
    if not (main | sums).all() or not np.array_equal(fetched // n, np.arange(len(calls.ranks))):
        return None  # calls of another kind, or ranks that fetch in several groups
    is_data = _are_data(calls, data_groups)
    n_calls = np.bincount(calls.group, minlength=n)
    n_early = np.bincount(calls.group[_concurrent(calls, main, ~main)], minlength=n)
    concurrent = is_data & (n_fetched == 0) & (n_early > 0) & (n_early >= REGULAR_CALLS * n_calls)
    concurrent &= n_calls / n_ranks <= (n_fetched / n_ranks).max()
    return concurrent[calls.group] if concurrent.any() else None


def _split_groups(calls: Calls, is_side: BoolArray, data_groups: frozenset[str]) -> BoolArray:
    """Put the calls of a data-parallel group on two streams where later ones do not wait for earlier ones.

    Gradients are sent during computing, as layers are done. Those that are held back follow all computing, on
    the main stream, and begin while the others still go on. So the ones issued before are on the second.
    """
    is_data = _are_data(calls, data_groups)
    own = calls.collectives_by_group
    own = own[is_data[calls.group[own]] & (calls.number[own] >= 0)]
    ended = calls.surely_ended_us - QUEUE_US
    same = (calls.rank[own[1:]] == calls.rank[own[:-1]]) & (calls.group[own[1:]] == calls.group[own[:-1]])
    overlaps = same & (calls.start_us[own[1:]] < ended[own[:-1]])
    if not overlaps.any():
        return is_side
    has_overlap = np.zeros(len(calls.groups), bool)
    has_overlap[calls.group[own[1:][overlaps]]] = True
    own = own[has_overlap[calls.group[own]]]
    own = own[np.lexsort((calls.number[own], calls.rank[own], calls.group[own]))]
    group, number = calls.group[own], calls.number[own]
    first = begins(calls.rank[own]) | begins(group)
    run = np.cumsum(first, dtype=np.int64)  # of one rank in one group
    overtakes = ~first[1:] & (calls.start_us[own[1:]] < running_maxima(ended[own], run)[:-1])
    latest = running_maxima(calls.start_us[own], run)[:-1]
    is_earlier = overtakes & (calls.start_us[own[1:]] < latest - TOLERANCE_US)
    n_ranks = np.bincount(group[first], minlength=len(calls.groups))
    # A code a group and number, those of one group side by side.
    width = int(number.max()) + 1
    code, n_overtaken = np.unique(
        group[1:][overtakes].astype(np.int64) * width + number[1:][overtakes], return_counts=True
    )
    sure, n_sure = np.unique(
        group[1:][is_earlier].astype(np.int64) * width + number[1:][is_earlier], return_counts=True
    )
    is_sure = np.isin(code, sure[n_sure > 1])
    often = code[is_sure | (n_overtaken >= REGULAR_RANKS * n_ranks[code // width])]
    groups, at = np.unique(often // width, return_index=True)
    is_split, since = np.zeros(len(calls.groups), bool), np.zeros(len(calls.groups), np.int64)
    is_split[groups], since[groups] = True, often[at] % width
    own, group, number = own[is_split[group]], group[is_split[group]], number[is_split[group]]
    is_side = is_side.copy()
    is_side[own] = number < since[group]
    return is_side


def _awaited_at_begin(calls: Calls, is_side: BoolArray, stage: IntArray) -> BoolArray:
    """A rank's first call, on a second stream, if its main stream had to wait for it: the first weights.

    So far there is one sequence: what a rank does before it is the begin of its step. Peers tell, as in
    `keep_likely_joins`; where they all come at once, either way explains them, and it is taken for awaited.
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
        if len(here) < ENOUGH_PEERS or (end > start + TOLERANCE_US).any():
            continue
        if (calls.is_send[here] | calls.moves_gradients[here]).any():
            continue
        if (
            scatter(start - end)
            <= ALIKE_SCATTER_FACTOR * scatter(start - calls.start_us[here]) + TOLERANCE_US
        ):
            awaited[here] = True
    return awaited


def _overlap_others(calls: Calls, sends: BoolArray, data_groups: frozenset[str]) -> bool:
    """Whether sends are regularly still going on when the rank begins its next call.

    One that is may be a call that was filled in a little too early. Gradients that have a stream of their
    own begin beside any send.
    """
    n_early = int(_begun_early(calls, ~sends & ~moves_data(calls, data_groups), sends).sum())
    return n_early > 0 and n_early >= REGULAR_CALLS * int(sends.sum())


def _asked_ahead(calls: Calls, data_groups: frozenset[str]) -> bool:
    """Whether receives are regularly asked for early: calls for the first computing begin at the same time.

    Gradients that have a stream of their own, and sends that queue behind others, begin beside any receive.
    """
    receives = calls.is_receive
    before = np.full(len(calls), -1, np.int32)
    chain(calls, np.flatnonzero(calls.is_send), before)
    others = ~receives & ~moves_data(calls, data_groups) & ~begins_with(calls, before)
    n_early = int(_begun_early(calls, others, receives).sum())
    return n_early > 0 and n_early >= REGULAR_CALLS * int(receives.sum())


def moves_data(calls: Calls, data_groups: frozenset[str]) -> BoolArray:
    """The collectives of data-parallel groups (V,)."""
    return _are_data(calls, data_groups)[calls.group] & ~calls.is_point_to_point


def _are_data(calls: Calls, data_groups: frozenset[str]) -> BoolArray:
    """Which groups (groups,) are data-parallel."""
    return np.array([name in data_groups for name in calls.groups], bool)


def _side_calls(calls: Calls, known: BoolArray, data_groups: frozenset[str]) -> BoolArray:
    """Calls on a second stream: data-parallel ones that overlap others, or groups with fewer calls."""
    rest = ~known & ~calls.is_point_to_point
    is_data = _are_data(calls, data_groups)
    hit = _concurrent(calls, ~known & calls.is_point_to_point, rest & is_data[calls.group])
    begun_early = _begun_early(calls, rest, rest)
    if not begun_early.any() and not hit.any():
        return np.zeros(len(calls), bool)
    n_calls = np.bincount(calls.group, minlength=len(calls.groups))
    per_rank = n_calls / np.maximum(_ranks_of_groups(calls), 1)
    exchanges = np.zeros(len(calls.groups), bool)
    exchanges[calls.group[calls.moving("tokens")]] = True
    for here in np.flatnonzero(begun_early).tolist():
        before = here - 1
        while before > 0 and not (
            rest[before] and calls.surely_ended_us[before] >= calls.start_us[here] + TOLERANCE_US
        ):
            before -= 1
        if calls.group[before] != calls.group[here]:
            groups = {int(calls.group[call]): call for call in (before, here)}
            # Computing needs the data that experts exchange at once.
            first = min(groups, key=lambda one: (not is_data[one], exchanges[one], per_rank[one], one))
            hit[groups[first]] = True
    # A kind of call is on another stream when it is there regularly, not when one record overlaps.
    # Data-parallel calls are of one stream, whatever they move.
    unit = np.where(is_data[calls.group], 0, 1 + calls.group * len(calls.types) + calls.kind)
    unit = distinct(unit)[1].astype(np.int64)
    n_units = int(unit.max(initial=-1)) + 1
    pairs = unit * len(calls.ranks) + calls.rank
    ranks_with = np.bincount(np.unique(pairs) // len(calls.ranks), minlength=n_units)
    ranks_hit = np.bincount(np.unique(pairs[hit]) // len(calls.ranks), minlength=n_units)
    n_hit, n_calls_of = np.bincount(unit[hit], minlength=n_units), np.bincount(unit[rest], minlength=n_units)
    enough = n_hit >= REGULAR_CALLS * n_calls_of
    enough[unit[is_data[calls.group]]] = True  # some gradients and weights overlap, the others do not
    regular = (ranks_hit >= REGULAR_RANKS * ranks_with) & enough
    return np.asarray(regular[unit] & rest)


def _concurrent(calls: Calls, main: BoolArray, data: BoolArray) -> BoolArray:
    """Data-parallel calls that begin during a call of the main stream, or during which one begins."""
    hit = _begun_early(calls, data, main)
    early = np.flatnonzero(_begun_early(calls, main, data))
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


def _begun_early(calls: Calls, here: BoolArray, among: BoolArray) -> BoolArray:
    """Calls of `here` that begin before an earlier one of `among` on their rank has ended, (V,) all three."""
    early = np.zeros(len(calls), bool)
    if not among.any():
        return early
    n, end = len(calls), calls.surely_ended_us - TOLERANCE_US
    # Calls of a rank stand by their start: those that begin before another one's end follow it.
    call = np.flatnonzero(among[:-1] & (calls.start_us[1:] < end[:-1]))
    call = call[calls.rank[call + 1] == calls.rank[call]]
    if not len(call):
        return early
    end = end[call]
    behind = np.searchsorted(calls.rank, calls.rank[call], side="right")
    last = searchsorted_within(calls.start_us, call + 1, behind, end, side="left")
    n_during = np.bincount(call + 1, minlength=n + 1) - np.bincount(last, minlength=n + 1)
    return np.asarray(here & (np.cumsum(n_during[:n]) > 0))
