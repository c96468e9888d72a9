"""What runs beside computing at all, told from the step totals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import begins
from cluster_analysis.thresholds.common import HALFWAY
from cluster_analysis.thresholds.streams import REGULAR_CALLS, TOLERANCE_US
from cluster_analysis.thresholds.trace import FREE_DATA_SHARE, OTHER_CALLS_SHARE
from cluster_analysis.trace.calls import Calls, numbers
from cluster_analysis.trace.streams.joins import running_maxima
from cluster_analysis.trace.streams.streams import Sequence, moves_data


def sends_are_free(calls: Calls, steps: pa.Table) -> bool:
    """Return whether sends run beside computing: then about their time appears as overlapped."""
    sends = calls.is_send
    if not sends.any() or not steps.num_rows:
        return False
    overlapped = float(np.nansum(numbers(steps["overlapped_us"])))
    return overlapped > HALFWAY * float(np.median(calls.elapse_us[sends])) * int(sends.sum())


def data_is_free(calls: Calls, data_groups: frozenset[str], shortest_us: FloatArray, steps: pa.Table) -> bool:
    """Return whether gradients and parameters move beside computing: more is overlapped than sends can be.

    Args:
        calls: the step's calls.
        data_groups: groups known to be data-parallel.
        shortest_us: the shortest elapse of each call's operator (V,): what it takes without waiting.
        steps: the step's totals.
    """
    is_data = moves_data(calls, data_groups)
    # With hardly a call beside them that computing waits for, nothing shows where it waits for gradients.
    n_others = int((~is_data & ~calls.is_send).sum())
    if not is_data.any() or n_others < OTHER_CALLS_SHARE * is_data.sum() or not steps.num_rows:
        return False
    overlapped = float(np.nansum(numbers(steps["overlapped_us"])))
    sends = calls.elapse_us[calls.is_send]
    of_sends = float(np.median(sends)) * len(sends) if len(sends) else 0.0
    return overlapped - of_sends > FREE_DATA_SHARE * float(shortest_us[is_data].sum())


def is_one_queue(calls: Calls, local: Sequence) -> bool:
    """Return whether all calls are collectives of which a rank hardly ever has two at a time.

    Sums of gradients may go on beside those that fetch weights.
    """
    if not calls.has_clock or calls.is_point_to_point.any():
        return False
    if local.is_side.any() and not local.fetches:
        return False
    own = np.flatnonzero(~local.is_side)
    is_early = ~begins(calls.rank[own])[1:] & (
        calls.start_us[own[1:]] < calls.end_us[own[:-1]] - TOLERANCE_US
    )
    return int(is_early.sum()) < REGULAR_CALLS * len(own)


def outside_us(calls: Calls, is_side: BoolArray) -> FloatArray:
    """Return how long calls of the second stream go on while no call of the main one does (ranks,)."""
    every, main = np.arange(len(calls)), np.flatnonzero(~is_side)
    return _busy_us(calls, every) - _busy_us(calls, main)


def _busy_us(calls: Calls, own: IntArray) -> FloatArray:
    """How long at least one of some calls (sorted) of a rank goes on (ranks,)."""
    start, end = calls.start_us[own], calls.end_us[own]
    done = np.r_[-np.inf, running_maxima(end, calls.rank[own])[:-1]]
    done[begins(calls.rank[own])] = -np.inf
    more = np.maximum(end - np.maximum(start, done), 0.0)
    return np.bincount(calls.rank[own], more, len(calls.ranks)).astype(np.float64)
