"""Find the communication that runs during computing, from the step totals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray, numbers
from cluster_analysis.numeric.sorting import begins
from cluster_analysis.numeric.stats import median, running_maxima
from cluster_analysis.thresholds.calls import FREE_DATA_SHARE, OTHER_CALLS_SHARE, REGULAR_CALLS, TOLERANCE_US
from cluster_analysis.thresholds.common import HALFWAY, TOLERANCE_SHARE
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.streams.streams import Streams, moves_data, sequence
from cluster_analysis.trace.streams.waits import most_waited_us, waited_first_us


def sends_may_be_free(calls: Calls, steps: pa.Table) -> bool:
    """Return whether sends may run during computing: then about their time appears as overlapped."""
    sends = calls.is_send
    if not sends.any() or not steps.num_rows:
        return False
    overlapped = float(np.nansum(numbers(steps["overlapped_us"])))
    return overlapped > HALFWAY * float(np.median(calls.elapse_us[sends])) * int(sends.sum())


def data_is_free(calls: Calls, data_groups: frozenset[str], shortest_us: FloatArray, steps: pa.Table) -> bool:
    """Return whether gradients and parameters move during computing: more is overlapped than sends can be.

    Args:
        data_groups: groups known to be data-parallel.
        shortest_us: the shortest elapse of each call's operator (V,): what it takes without waiting.
    """
    is_data = moves_data(calls, data_groups)
    # With hardly a call beside them that computing waits for, nothing shows where it waits for gradients.
    n_others = int((~is_data & ~calls.is_send).sum())
    if not is_data.any() or n_others < OTHER_CALLS_SHARE * is_data.sum() or not steps.num_rows:
        return False
    overlapped = float(np.nansum(numbers(steps["overlapped_us"])))
    sends = calls.elapse_us[calls.is_send]
    of_sends = float(np.median(sends)) * len(sends) if len(sends) else 0.0
    # If more is covered than these calls last, it is others that are.
    covered, most = overlapped - of_sends, (1.0 + TOLERANCE_SHARE) * float(calls.elapse_us[is_data].sum())
    return FREE_DATA_SHARE * float(shortest_us[is_data].sum()) < covered <= most


def is_one_queue(calls: Calls, local: Streams) -> bool:
    """Return whether all calls are collectives, and a rank's main stream hardly ever has two at a time.

    Calls of a second stream may go on beside them.
    """
    if not calls.has_clock or calls.is_point_to_point.any():
        return False
    own = np.flatnonzero(~local.is_side)
    is_early = ~begins(calls.rank[own])[1:] & (
        calls.start_us[own[1:]] < calls.end_us[own[:-1]] - TOLERANCE_US
    )
    return int(is_early.sum()) < REGULAR_CALLS * len(own)


def likely_streams(
    calls: Calls, stage: IntArray, data_groups: frozenset[str], shortest_us: FloatArray, steps: pa.Table,
    exposed_us: FloatArray,
) -> Streams:  # fmt: skip
    """Return the streams of each rank, with messages on the stream that the totals agree with best.

    Uncovered time is the time of calls of the main stream and its waiting for the others. Where they agree
    with several, computing waits for its messages. What is covered may be gradients as well as sends.

    Args:
        stage: pipeline stage of each rank (ranks,).
        data_groups: groups known to be data-parallel.
        shortest_us: the shortest elapse of each call's operator (V,).
        exposed_us: communication of each rank that no computing covers (ranks,).
    """
    data = data_is_free(calls, data_groups, shortest_us, steps)

    def seen(*, are_free: bool, may_ask_ahead: bool) -> Streams:
        return sequence(
            calls, stage, data_groups, sends_are_free=are_free, data_is_free=data, may_ask_ahead=may_ask_ahead
        )

    def off_us(one: Streams) -> float:
        most = np.nan_to_num(most_waited_us(calls, one))
        taken = np.where(one.is_side, 0.0, calls.elapse_us)
        more = exposed_us - np.bincount(calls.rank, taken, len(exposed_us))
        waited = waited_first_us(calls, one) + np.bincount(calls.rank, most, len(exposed_us))
        off = np.maximum(more - waited, 0.0) + np.maximum(-more, 0.0)
        return max(float(median(off)), TOLERANCE_SHARE * float(median(exposed_us)))

    frees = (False, True) if sends_may_be_free(calls, steps) else (False,)
    ways = [seen(are_free=one, may_ask_ahead=True) for one in frees]
    if (ways[-1].is_side & calls.is_receive).any():
        ways = [*(seen(are_free=one, may_ask_ahead=False) for one in frees), *ways]
    return min(ways, key=off_us) if len(ways) > 1 and np.isfinite(exposed_us).any() else ways[-1]


def outside_us(calls: Calls, is_side: BoolArray) -> FloatArray:
    """Return how long calls of the second stream go on while no call of the main one does (ranks,)."""
    every, main = np.arange(len(calls)), np.flatnonzero(~is_side)
    return busy_us(calls, every) - busy_us(calls, main)


def busy_us(calls: Calls, own: IntArray) -> FloatArray:
    """Return how long at least one of some calls (sorted) of a rank goes on (ranks,)."""
    start, end = calls.start_us[own], calls.end_us[own]
    done = np.r_[-np.inf, running_maxima(end, calls.rank[own])[:-1]]
    done[begins(calls.rank[own])] = -np.inf
    more = np.maximum(end - np.maximum(start, done), 0.0)
    return np.bincount(calls.rank[own], more, len(calls.ranks)).astype(np.float64)
