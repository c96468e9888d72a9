"""Find the call of one stream that a call of the other waits for, by the gaps of peers.

Peers compute for the same time at the same place. Their gaps agree if they are counted from where computing
really began; counted from elsewhere they scatter as the waiting does.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.grouped import medians_of
from cluster_analysis.numeric.sorting import begins, combined, distinct, searchsorted_within
from cluster_analysis.numeric.stats import medians_by, running_maxima, scatter
from cluster_analysis.thresholds.calls import (
    ALIKE_SCATTER_FACTOR,
    CHANCE_P_VALUE,
    ENOUGH_PEERS,
    FEW_SHARE,
    MOST_OVERLAPPED,
    QUEUE_US,
    REGULAR_CALLS,
    TOLERANCE_US,
    WAIT_SCATTER,
)
from cluster_analysis.trace.calls import Calls


def begins_with(calls: Calls, join: IntArray) -> BoolArray:
    """Calls (V,) that begin when the one in `join` ends: that is what they had waited for."""
    found, at = np.zeros(len(calls), bool), np.flatnonzero(join >= 0)
    found[at] = calls.start_us[at] <= calls.end_us[join[at]] + QUEUE_US
    return found


def are_queued(calls: Calls, after: IntArray, join: IntArray) -> BoolArray:
    """Calls (V,) that waited in a queue for the one in `join`, and not for the rank to come from `after`.

    They begin when that one ends, or so little later that a rank which works since `after` hits it by chance
    less often than is believed.
    """
    found, at = begins_with(calls, join), np.flatnonzero(join >= 0)
    since = calls.start_us[at] - np.where(after[at] >= 0, calls.end_us[after[at]], 0.0)
    found[at] |= calls.start_us[at] - calls.end_us[join[at]] <= CHANCE_P_VALUE * since
    return found


def split(calls: Calls, is_side: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """Dependencies with two streams a rank: `after`, `join`, and the last side call that had ended."""
    main, side = np.flatnonzero(~is_side), np.flatnonzero(is_side)
    sends = calls.is_send[side]
    after = np.full(len(calls), -1, np.int32)
    join = np.full(len(calls), -1, np.int32)
    latest = np.full(len(calls), -1, np.int32)
    chain(calls, main, after)
    receives = calls.is_receive[side]
    for queue in (side[sends], side[receives], side[~sends & ~receives]):
        chain(calls, queue, join)
    if len(main):
        # One that begins with it has not ended before it, however short it is.
        least = calls.start_us[main] + 2.0 * TOLERANCE_US
        main_end = running_maxima(np.maximum(calls.surely_ended_us[main], least), calls.rank[main])
        begin, end = _own_slices(calls, main, side)
        begun = calls.start_us[side] + TOLERANCE_US
        ended = searchsorted_within(main_end, begin, end, begun, side="right") - 1
        after[side] = np.where(ended >= begin, main[np.maximum(ended, 0)], -1)
        _join_waits(calls, main, side[~sends], join, latest)
    return after, join, latest


def issue_as_peers(calls: Calls, is_side: BoolArray, after: IntArray, stage: IntArray) -> None:
    """Let side calls that were filled in, or lie beside such calls, count from where peers issue them.

    When a call that was filled in began and ended is known to some µs or ms only. So what was issued at its
    end may seem to have been issued before, and all that the rank waited in it to be work.
    """
    side = np.flatnonzero(is_side & ~calls.is_send)
    main = np.flatnonzero(~is_side)
    is_filled = calls.rows < 0
    if not is_filled.any():
        return
    place = np.full(len(calls) + 1, -1)  # of a main call among its rank's
    for instances, sides in _peers(calls, stage, main, side):
        n_places = instances.shape[1]
        place[instances] = np.arange(n_places)
        before = np.where(after[sides] >= 0, place[after[sides]], -1)
        # Nothing was filled in before the first call and behind the last.
        unsure = np.pad(is_filled[instances], ((0, 0), (1, 1)))
        rows = np.arange(len(before))[:, None]
        unsure = is_filled[sides] | unsure[rows, before + 1] | unsure[rows, before + 2]
        for number in np.flatnonzero(unsure.any(axis=0)).tolist():
            known, lost = before[~unsure[:, number], number], unsure[:, number]
            if len(known) < ENOUGH_PEERS:
                continue
            usual, count = np.unique(known, return_counts=True)
            if count.max() > FEW_SHARE * len(known):
                at = int(usual[np.argmax(count)])
                after[sides[lost, number]] = instances[lost, at] if at >= 0 else -1


def chain(calls: Calls, queue: IntArray, before: IntArray) -> None:
    """Say of calls (sorted) which one of their rank stands before them in their queue.

    Where calls regularly begin while the one before still goes on, there are several queues, one for each
    neighbour say: then it is the one that had ended last.
    """
    same = ~begins(calls.rank[queue])[1:]
    here, other = queue[1:][same], queue[:-1][same]
    before[here] = other
    ended = calls.surely_ended_us
    goes_on = ended[other] > calls.start_us[here] + TOLERANCE_US
    if not goes_on.any() or int(goes_on.sum()) < REGULAR_CALLS * len(queue):
        return
    before[here[goes_on]] = -1
    latest = np.full(len(queue), -np.inf)
    for back in range(1, min(MOST_OVERLAPPED + 2, len(queue))):
        here, other = queue[back:], queue[:-back]
        fits = (calls.rank[here] == calls.rank[other]) & (ended[other] <= calls.start_us[here] + TOLERANCE_US)
        fits &= ended[other] > latest[back:]
        before[here[fits]] = other[fits]
        latest[back:][fits] = ended[other[fits]]


def _own_slices(calls: Calls, main: IntArray, side: IntArray) -> tuple[IntArray, IntArray]:
    """For each side call, where the calls of its rank begin and end in `main`."""
    bounds = np.searchsorted(calls.rank[main], np.arange(len(calls.ranks) + 1))
    return bounds[calls.rank[side]], bounds[calls.rank[side] + 1]


def _join_waits(calls: Calls, main: IntArray, side: IntArray, join: IntArray, ended: IntArray) -> None:
    """Candidates: the latest side call that ended in the gap before a main call.

    `keep_likely_joins` decides which of them the main stream really waited for. `ended` is the latest one
    that had ended when a main call began, wherever it began.
    """
    if not len(side):
        return
    end = calls.end_us[side]
    # Each has ended when the first main call that begins later does, and when all others behind that do.
    slices = _own_slices(calls, main, side)
    next_main = searchsorted_within(calls.start_us[main] + TOLERANCE_US, *slices, end, side="left")
    is_followed = next_main < slices[1]
    latest = np.full(len(main), -1)
    latest[next_main[is_followed]] = np.flatnonzero(is_followed)
    latest = np.maximum.accumulate(latest)
    follows = (latest >= 0) & (calls.rank[side[latest]] == calls.rank[main])
    ended[main[follows]] = side[latest[follows]]
    here = np.flatnonzero(follows & ~begins(calls.rank[main]))
    chosen = latest[here]
    has = end[chosen] > calls.end_us[main[here - 1]]
    join[main[here[has]]] = side[chosen[has]]


def _issued_us(calls: Calls, side: IntArray) -> FloatArray:
    """Return when calls of a second stream (sorted) had been issued (V,): by the begin of their run."""
    issued, start = np.full(len(calls), -np.inf), calls.start_us[side]
    queued = ~begins(calls.rank[side])
    queued[1:] &= start[1:] <= calls.end_us[side][:-1] + QUEUE_US
    if len(side):
        issued[side] = start[np.maximum.accumulate(np.where(queued, 0, np.arange(len(side))))]
    return issued


def keep_likely_joins(
    calls: Calls, is_side: BoolArray, links: tuple[IntArray, IntArray, IntArray], stage: IntArray
) -> BoolArray:
    """Say which side call each place of the main stream waits for: the same one on all peers, or none.

    Peers compute for the same time at the same place. Counted from where the computing really began,
    the gaps of peers agree; counted from elsewhere they scatter as the waiting does. A rank's time before
    it issues the call is work, and the call counts from there. Where most of them begin
    just when the side call ends, computing came first, and then the waiting: these calls are returned.

    Args:
        is_side: those of a second stream.
        links: `after`, `join` (both change), and the last side call that had ended before each call.
        stage: pipeline stage of each rank (ranks,).
    """
    after, join, ended = links
    waits_last = np.zeros(len(calls), bool)
    main, side = np.flatnonzero(~is_side), np.flatnonzero(is_side & ~calls.is_send)
    awaited = begins_with(calls, ended)
    at = np.flatnonzero(awaited)
    awaited[at] = calls.end_us[ended[at]] > np.where(after[at] >= 0, calls.end_us[after[at]], -np.inf)
    has, number = np.zeros(len(calls), bool), np.zeros(len(calls), np.intp)
    has[main], number[side] = join[main] >= 0, np.arange(len(side))
    join[main] = -1
    if not awaited.any() and not has.any():
        return waits_last
    is_sum, issued = calls.moves_gradients, _issued_us(calls, side)
    lonely = np.zeros(len(calls), bool)
    lonely[main] = True
    for instances, sides in _peers(calls, stage, main, side):
        lonely[instances] = False
        for place in np.flatnonzero(awaited[instances].mean(axis=0) >= FEW_SHARE):
            here = instances[:, place]
            join[here] = ended[here]
            waits_last[here] = ended[here] >= 0
        # How many side calls of its rank had ended when each one began.
        n_ended = np.where(ended[instances] >= 0, 1 + number[ended[instances]] - number[sides[:, :1]], 0)
        reduces = is_sum[sides[0]]
        for place in np.flatnonzero(has[instances].any(axis=0)):
            here = instances[:, place]
            if place and not waits_last[here].any():
                candidates = np.arange(n_ended[:, place - 1].min(), n_ended[:, place].max())
                fetches = candidates[~reduces[candidates]]
                # Weights fetched first are needed first; sums of gradients are needed together, after that.
                candidates = fetches if len(fetches) else candidates[::-1]
                join[here] = _awaited(calls, after[here], here, sides[:, candidates], issued)
    if lonely.any():
        here = np.flatnonzero(lonely)
        waits_last[here] = _others_wait(calls, main, awaited)[here] & (ended[here] >= 0)
        by_members = _joined_by_members(calls, main, side, here, join)
        join[here] = np.where(waits_last[here], ended[here], by_members)
    return waits_last


def _peers(calls: Calls, stage: IntArray, *streams: IntArray) -> Iterator[tuple[IntArray, ...]]:
    """Calls of ranks that run one program, side by side (ranks, places), of each of some streams (sorted)."""
    counts = [np.bincount(calls.rank[one], minlength=len(calls.ranks)) for one in streams]
    begin = [np.r_[0, np.cumsum(one)[:-1]] for one in counts]
    for one, *places in sorted(set(zip(stage.tolist(), *(n.tolist() for n in counts), strict=True))):
        ranks = np.flatnonzero(
            np.all([stage == one, *(n == m for n, m in zip(counts, places, strict=True))], 0)
        )
        if all(places) and len(ranks) >= ENOUGH_PEERS:
            yield tuple(
                own[first[ranks][:, None] + np.arange(n)]
                for own, first, n in zip(streams, begin, places, strict=True)
            )


def _awaited(
    calls: Calls, before: IntArray, here: IntArray, sides: IntArray, issued_us: FloatArray
) -> IntArray:
    """Which of some side calls (ranks, candidates) peers wait for `here` (ranks,): all for one; -1 for none.

    Among equally good explanations it is the first candidate. A rank that does not wait for it works on since
    it issued the call, or since the call before on the main stream.
    """
    start, begun = calls.start_us[here], np.where(before >= 0, calls.end_us[before], 0.0)
    together = distinct(calls.group[here])[1]
    found = []
    for number in range(sides.shape[1]):
        ended = calls.end_us[sides[:, number]]
        from_main = _unlikeness(start - np.maximum(begun, issued_us[sides[:, number]]), together)
        shown = float(((ended > begun) & (ended <= start + TOLERANCE_US)).mean())
        own = _unlikeness(start - np.maximum(begun, ended), together)
        # Those few that show it have waited for long, or it is chance.
        if own < (from_main if shown >= FEW_SHARE else WAIT_SCATTER * from_main):
            found.append((own, number))
    if not found:
        return np.full(len(here), -1)
    least = min(found)[0]
    chosen = sides[:, next(number for one, number in found if one <= ALIKE_SCATTER_FACTOR * least)]
    # A rank without some records may seem to begin before.
    return np.where(calls.end_us[chosen] <= start + TOLERANCE_US, chosen, -1)


def _unlikeness(gap_us: FloatArray, together: IntArray) -> float:
    """How far gaps (ranks,) scatter, over all ranks and among those that are `together`: the geometric mean.

    Members of the call have the same samples; over all ranks unequal ones hide how waits differ.
    """
    of_all, inside = scatter(gap_us), gap_us - medians_by(gap_us, together)[together]
    return float(np.sqrt(of_all * np.mean(np.abs(inside)))) if inside.any() else of_all


def _others_wait(calls: Calls, main: IntArray, awaited: BoolArray) -> BoolArray:
    """Calls (V,) of collectives for which most ranks had waited for a side call, by those in `main` (sorted).

    These decide for ranks without peers: all members of a collective are in the same line of one program.
    """
    found = np.zeros(len(calls), bool)
    own, line = _lines(calls, main)
    n_calls, n_awaited = np.bincount(line), np.bincount(line, awaited[own])
    is_known = (n_calls >= ENOUGH_PEERS) & (n_awaited >= FEW_SHARE * n_calls)
    found[own] = is_known[line]
    return found


def _joined_by_members(
    calls: Calls, main: IntArray, side: IntArray, here: IntArray, join: IntArray
) -> IntArray:
    """Which side calls others wait for before calls `here` (N,) of ranks without peers; -1 for none.

    All count the side calls of their ranks. `join` (V,) is what ranks with peers wait for, -1 for nothing.
    """
    first = np.searchsorted(calls.rank[side], np.arange(len(calls.ranks) + 1))
    own, line = _lines(calls, main)
    place, has = np.full(len(own), np.nan), join[own] >= 0
    place[has] = np.searchsorted(side, join[own[has]]) - first[calls.rank[own[has]]]
    usual, n_others = medians_of(place, line), np.bincount(line, ~np.isin(own, here))
    usual[np.bincount(line, has) <= FEW_SHARE * n_others] = np.nan
    wanted, rank = np.full(len(calls), -1), calls.rank[here]
    wanted[own] = np.nan_to_num(usual, nan=-1.0)[line]
    at = first[rank] + wanted[here]
    chosen = side[np.minimum(at, len(side) - 1)]
    is_own = (wanted[here] >= 0) & (at < first[rank + 1])
    return np.where(is_own & (calls.end_us[chosen] <= calls.start_us[here] + TOLERANCE_US), chosen, -1)


def _lines(calls: Calls, main: IntArray) -> tuple[IntArray, IntArray]:
    """Collectives among `main` (sorted), and a number for the line of its program that each stands in."""
    own = main[~calls.is_point_to_point[main] & (calls.number[main] >= 0)]
    return own, combined(calls.group[own], calls.kind[own], calls.number[own])[1]


def count_from_wait(
    calls: Calls, is_side: BoolArray, after: IntArray, join: IntArray, stage: IntArray
) -> None:
    """Let a side call count from the side call before it where the main stream had waited for that one.

    An optimizer waits for its gradients and then gathers the weights on the same stream: the time between the
    two is work, and that since the main stream's last call is mostly waiting. Peers tell, as in
    `keep_likely_joins`.
    """
    for (instances,) in _peers(calls, stage, np.flatnonzero(is_side & ~calls.is_send)):
        for place in range(1, instances.shape[1]):
            here = instances[:, place]
            waited_until = np.where(join[here] >= 0, calls.end_us[join[here]], -np.inf)
            begun = np.where(after[here] >= 0, calls.end_us[after[here]], -np.inf)
            from_side = calls.start_us[here] - waited_until
            if not (
                np.isfinite(begun).all() and (waited_until > begun).all() and (from_side > QUEUE_US).all()
            ):
                continue
            if scatter(from_side) < WAIT_SCATTER * scatter(calls.start_us[here] - begun):
                after[here], join[here] = join[here], after[here]
