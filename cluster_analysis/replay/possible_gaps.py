"""No rank worked longer between its operators than its step totals say: the rest of its gaps is waiting.

Gaps are read off operators. Where a record is lost, or the main stream waits unseen for another one, a gap
holds waiting for other ranks. A replay would take it for the rank's own time, and hide what a repair saves.
"""

from __future__ import annotations

import numpy as np

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import stable_order
from cluster_analysis.numeric.stats import group_medians, median
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.replay import (
    CALM_SHARE,
    ENOUGH_PEERS,
    GAP_TOLERANCE,
    MOST_OFF_SHARE,
    MOST_PEERS,
    OWN_SHARE,
)
from cluster_analysis.trace.streams.points import POINT


def with_possible_gaps(graph: Graph, local_us: FloatArray, idle_us: FloatArray, role: IntArray) -> Graph:
    """Return the graph with gaps shortened towards their peers' where they exceed the rank's local time.

    Args:
        graph: the job's operators.
        local_us: µs that each of the graph's ranks spent outside operators, by step (R, S); NaN for unknown.
        idle_us: the part of it in which nothing was computed (R, S).
        role: ranks that do the same work (R,), -1 for unknown.
    """
    if POINT in graph.types:  # computing was told from the totals, and idle time beside calls is not in them
        return graph
    cell, main = graph.cell, ~graph.is_side
    over = _over(graph.main_gaps_us, local_us, role, has_one_stream=bool(main.all()))
    if not main.all():
        over[_idles_while(idle_us, over, role)] = 0.0
    # What a second stream is said to have waited for may not outlast all that the rank did either.
    is_long = ~main & (graph.gap_us > (1.0 + GAP_TOLERANCE) * local_us.ravel()[cell])
    is_off = over > 0
    is_off.ravel()[cell[is_long]] = True
    if not is_off.any():
        return graph
    order = stable_order(cell)
    count = np.bincount(cell, minlength=local_us.size)
    begin = (np.cumsum(count) - count).reshape(local_us.shape)
    count = count.reshape(local_us.shape)
    gap = graph.gap_us.copy()
    in_order = graph.gap_us[order]
    usual_of: dict[tuple[int, int, int], FloatArray | None] = {}
    for rank, step in np.argwhere(is_off).tolist():
        key = int(role[rank]), int(count[rank, step]), step
        if key not in usual_of:
            is_alike = ~is_off[:, step] & (count[:, step] == key[1]) & (role == key[0])
            usual_of[key] = _usual(in_order, begin[is_alike, step], key[1])
        usual = usual_of[key]
        own = order[begin[rank, step] + np.arange(key[1])]
        if usual is None:
            usual = _level(graph.gap_us[own], main[own], float(over[rank, step]))
        longer = np.maximum(graph.gap_us[own] - usual, 0.0)
        in_main = float(longer[main[own]].sum())
        gap[own] -= np.where(is_long[own], longer, 0.0)
        longer[is_long[own]] = 0.0
        if in_main > 0:
            gap[own] -= longer * min(1.0, float(over[rank, step]) / in_main)
    return graph.with_gaps(gap)


def _idles_while(idle_us: FloatArray, over: FloatArray, role: IntArray) -> BoolArray:
    """Ranks (R,) whose gaps are longer in most steps because they idle themselves.

    Idle time beside communication on a second stream counts as communication: totals show a part of it only.
    """
    own = median(idle_us - group_medians(idle_us, role), 1)
    with np.errstate(invalid="ignore"):
        return np.asarray(own >= np.maximum(OWN_SHARE * median(over, 1), 1e-9)) & (median(over, 1) > 0)


def _usual(gap_us: FloatArray, begin: IntArray, n_calls: int) -> FloatArray | None:
    """Usual gaps of ranks that make as many calls in the step, from where theirs `begin`; None of too few."""
    if len(begin) < ENOUGH_PEERS:
        return None
    return median(gap_us[begin[:MOST_PEERS, None] + np.arange(n_calls)], 0)


def _level(gap_us: FloatArray, main: BoolArray, over_us: float) -> FloatArray:
    """What is left of the longest main gaps of a rank that nobody is like: the same of each, `over_us` less.

    Waiting stands where a record is lost, and there one gap holds what peers wait for call by call.
    """
    longest = np.sort(gap_us[main])[::-1]
    if not len(longest):
        return gap_us
    less = np.cumsum(longest) - np.arange(1, len(longest) + 1) * np.r_[longest[1:], 0.0]
    n = min(int(np.searchsorted(less, over_us)), len(longest) - 1) + 1
    level = max((float(longest[:n].sum()) - over_us) / n, 0.0)
    return np.where(main, np.minimum(gap_us, level), gap_us)


def _over(
    total: FloatArray, local_us: FloatArray, role: IntArray, *, has_one_stream: bool = False
) -> FloatArray:
    """µs by which gaps exceed the local time, measured by what is usual for the role (R, S).

    With one stream never less than the local time: where all compute beside their calls, gaps are shorter
    than that, and those of a rank that never waits come nearest to it. Usual in that step; or, if that is
    more than the local time, in the calmest quarter of all: where most ranks wait unseen for one that
    pauses, the gaps of most are too long.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(local_us > 0, total / local_us, np.nan)
    usual = group_medians(ratio, role)
    if has_one_stream:
        usual = np.maximum(usual, 1.0)
    calm = np.full(ratio.shape, np.nan)
    off = np.zeros(ratio.shape)
    for one in np.unique(role[role >= 0]):
        inside = role == one
        known = ratio[inside][np.isfinite(ratio[inside])]
        if len(known):
            calm[inside] = max(1.0, float(np.quantile(known, CALM_SHARE)))
        off[inside] = (ratio[inside] > usual[inside] + GAP_TOLERANCE).mean(axis=0)
    with np.errstate(invalid="ignore"):
        usual = np.where(off <= MOST_OFF_SHARE, usual, np.nan)
        usual = np.fmin(usual, np.where(usual > calm + GAP_TOLERANCE, calm, np.inf))
        usual = np.where(np.isfinite(usual), usual, np.nan)
        is_over: BoolArray = ratio > usual + GAP_TOLERANCE
    return np.where(is_over, total - np.nan_to_num(usual) * np.nan_to_num(local_us), 0.0)
