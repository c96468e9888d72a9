"""Where computing and waiting for the second stream cannot be seen apart in a rank's own calls.

A main stream that waits after all computing has one gap that holds both. The computing went on at least until
the last call was issued to the second stream; the step totals of the rank say for how long. A call that
queues on the second stream was issued earlier: peers whose call did not queue show when.
"""

from __future__ import annotations

import numpy as np

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.grouped import medians_of
from cluster_analysis.numeric.sorting import begins, combined, places_in_runs
from cluster_analysis.numeric.stats import running_maxima
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.streams.joins import begins_with
from cluster_analysis.trace.streams.streams import Streams


def waited_us(calls: Calls, most_us: FloatArray, missing_us: FloatArray) -> FloatArray:
    """Return how long each call's main stream waited before it (V,), in µs.

    Args:
        most_us: how long it can have waited, NaN where it waited for nothing (V,).
        missing_us: communication of each rank that neither its records, nor computing, nor waits before that
            cover (ranks,), NaN where that is not known: then all is waiting that may be.
    """
    waited = np.zeros(len(calls))
    at = np.flatnonzero(most_us >= 0)
    if not len(at):
        return waited
    most, rank = most_us[at], calls.rank[at]
    total = np.bincount(rank, most, len(calls.ranks))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip(np.nan_to_num(missing_us / total, nan=1.0), 0.0, 1.0)
    waited[at] = most * share[rank]
    return waited


def most_waited_us(calls: Calls, local: Streams) -> FloatArray:
    """Return how long each call's main stream can have waited before it for the second one (V,), in µs.

    That is since it issued the last call there; NaN for calls that begin with no end of the second stream.
    """
    most = np.full(len(calls), np.nan)
    at = np.flatnonzero(local.waits_last & ~local.is_side & begins_with(calls, local.join))
    if not len(at):
        return most
    begun = np.where(local.after[at] >= 0, calls.end_us[local.after[at]], -np.inf)
    issued = np.where(local.is_side & ~local.is_queued, calls.start_us, -np.inf)
    begun = np.maximum(begun, running_maxima(issued, calls.rank)[at])  # the call itself is on the main stream
    most[at] = np.where(np.isfinite(begun), np.maximum(calls.start_us[at] - begun, 0.0), 0.0)
    return most


def waited_first_us(calls: Calls, local: Streams) -> FloatArray:
    """Return how long each rank's main stream waited for the second one before it computed (ranks,)."""
    at = np.flatnonzero((local.join >= 0) & (local.after >= 0) & ~local.waits_last)
    waited = np.maximum(calls.end_us[local.join[at]] - calls.end_us[local.after[at]], 0.0)
    return np.bincount(calls.rank[at], waited, len(calls.ranks)).astype(np.float64)


def with_issues(
    calls: Calls, local: Streams, gap_us: FloatArray, stage: IntArray, room_us: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Return what calls count from, and their gaps (V,), with those of queued side calls as their peers' are.

    A queued call was issued before it began. A peer that did not queue shows after which call of the main
    stream, and at which part of the gap behind that, or, where the main stream waits in it, how long after
    that call, as far as the totals have room; where all queue, calls are issued evenly.

    Args:
        local: their streams.
        gap_us: local times of all calls, 0 for queued ones.
        stage: pipeline stage of each rank (ranks,).
        room_us: how long each rank works before it waits for the second stream, NaN for unknown (ranks,).
    """
    side = np.flatnonzero(local.is_side & ~calls.is_send)
    queued = local.is_queued[side]
    if not queued.any():
        return local.after, gap_us
    main = np.flatnonzero(~local.is_side)
    place, side_place = _places(calls, main), _places(calls, side)[side]
    rank = calls.rank[side]
    first = np.searchsorted(calls.rank[main], np.arange(len(calls.ranks)))
    last = np.searchsorted(calls.rank[main], np.arange(len(calls.ranks)), side="right")
    before = np.where(local.after[side] >= 0, place[local.after[side]], -1)
    _, alike = combined(stage[rank] + 1, side_place, (last - first)[rank])
    shown = np.floor(medians_of(np.where(queued, np.nan, before), alike)[alike])
    known = np.where(queued, shown, before)
    # The last sum adds up what is computed last, whatever is fetched behind it.
    sums = np.flatnonzero(calls.moves_gradients[side])[::-1]
    ends = sums[np.unique(rank[sums], return_index=True)[1]]
    known[ends] = np.where(np.isnan(known[ends]), before[ends], known[ends])
    before = np.fmin(before, _evenly(rank, known, before)).astype(np.int64)
    after = local.after.copy()
    after[side] = np.where(before >= 0, main[np.minimum(first[rank] + before, len(main) - 1)], -1)
    # The main call that counts from the same one as the side call does.
    at = first[rank] + before + 1
    has = at < last[rank]
    side, queued, before, around = side[has], queued[has], before[has], main[at[has]]
    waits_first = (local.join[around] >= 0) & ~local.waits_last[around]
    whole = np.where(waits_first, 1.0, gap_us[around])
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.minimum(np.where(queued, np.nan, gap_us[side] / whole), np.where(waits_first, np.inf, 1.0))
    _, code = combined(stage[rank[has]] + 1, side_place[has], before + 1, waits_first.astype(np.int64))
    part = medians_of(part, code)[code]
    goes_last = local.waits_last[around] & calls.moves_gradients[side]
    if goes_last.any():
        part[goes_last] = _parts_evenly(around[goes_last], part[goes_last])
    begun = np.where(after[side] >= 0, calls.end_us[after[side]], -np.inf)
    issued = np.minimum(np.nan_to_num(part) * whole, calls.start_us[side] - begun)
    issued = np.fmin(issued, np.where(waits_first, room_us[calls.rank[side]], np.nan))
    gap = gap_us.copy()
    gap[side[queued]] = issued[queued]
    return after, gap


def _evenly(rank: IntArray, known: FloatArray, latest: IntArray) -> FloatArray:
    """Places (N,) after which side calls were issued, those that are not `known` (NaN) evenly between others.

    Gradients go as layers are done with. A rank issues its first and its last call at the `latest` place.
    `rank` is that of each side call, sorted; those of a rank are in their order.
    """
    is_given = np.flatnonzero(np.isfinite(known) | begins(rank) | np.r_[rank[1:] != rank[:-1], True])
    at = np.where(np.isfinite(known), known, latest)
    return np.interp(np.arange(len(rank)), is_given, at[is_given])


def _parts_evenly(around: IntArray, known: FloatArray) -> FloatArray:
    """Parts of the gap before the call `around` (N,) at which gradients were issued that `known` (NaN) lacks.

    Evenly too, the last one when all was computed: what computing is left goes before the gradients it makes.
    """
    first, run = begins(around), np.cumsum(begins(around))
    at = np.arange(len(around)) + run  # with the begin of each gap before its first call
    is_given = np.flatnonzero(np.isfinite(known) | np.r_[first[1:], True])
    edges = at[first] - 1
    where = np.r_[edges, at[is_given]]
    parts = np.r_[np.zeros(len(edges)), np.nan_to_num(known[is_given], nan=1.0)]
    order = np.argsort(where)
    return np.asarray(np.interp(at, where[order], parts[order]))


def _places(calls: Calls, chosen: IntArray) -> IntArray:
    """The running place of chosen calls (sorted) among their rank's, for all calls (V,); -1 for others."""
    place = np.full(len(calls), -1)
    place[chosen] = places_in_runs(begins(calls.rank[chosen]))
    return place
