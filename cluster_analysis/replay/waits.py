"""Who waits for whom in one step of the replay: at each moment, for the rank at work at the chain's end.

A rank that waits in an operator waits for whoever comes last to it. Where that rank waits itself at this
moment, both wait for whom it waits for, and so on, up to a rank that works. That one is the cause: those
between are held up, and are never named. Where the chain ends in a transfer, the network is the cause.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.sorting import ranges
from cluster_analysis.replay.lanes import SAME_US, WAIT, WORK, Lanes, Span, bounds_of
from cluster_analysis.tables.described import WAITS


def waits_of(lanes: Lanes, span: Span) -> tuple[IntArray, IntArray, FloatArray]:
    """Return who waits, for whom and how long in µs, each (P,): positions among ranks, -1 is the network."""
    n_ranks, n_cells = lanes.cells.shape
    at, ahead = np.arange(n_cells), _ahead(lanes, span)
    # Each round doubles how far everybody looks; ranks that wait for each other in a circle stay held up.
    for _ in range(n_ranks.bit_length()):
        is_held_up = (ahead >= 0) & (lanes.cells[ahead, at] == WAIT)
        if not is_held_up.any():
            break
        ahead = np.where(is_held_up, ahead[ahead, at], ahead)
    works = (ahead >= 0) & (lanes.cells[ahead, at] == WORK)
    waiting, cell = np.nonzero(lanes.cells == WAIT)
    pair = waiting * (n_ranks + 1) + np.where(works, ahead, n_ranks)[waiting, cell]
    pairs, n = np.unique(pair, return_counts=True)
    whom = pairs % (n_ranks + 1)
    wait_us = np.asarray(n * lanes.cell_us, np.float64)
    return pairs // (n_ranks + 1), np.where(whom == n_ranks, -1, whom), wait_us


def _ahead(lanes: Lanes, span: Span) -> IntArray:
    """Return whom each rank waits for directly, by rank and cell; -1 where it waits for nobody."""
    n_ranks, n_cells = lanes.cells.shape
    graph, begin = span.graph, span.begin
    last, bounds = _last_to_come(span), bounds_of(span)
    ahead = np.full((n_ranks, n_cells), -1, np.int32)
    own_rank = graph.rank[begin : span.end]
    whom = np.where(last >= 0, own_rank[last], -1)
    is_known = (last != np.arange(len(last))) & ~graph.is_side[begin : span.end]
    cells = np.clip(np.ceil(bounds[:, 1:3] / lanes.cell_us - 0.5), 0, n_cells).astype(np.int64)
    known = np.flatnonzero(is_known & (cells[:, 1] > cells[:, 0]))
    first, n_each = own_rank[known] * np.int64(n_cells) + cells[known, 0], cells[known, 1] - cells[known, 0]
    ahead.ravel()[ranges(first, n_each)] = np.repeat(whom[known], n_each)
    return ahead


def waits_table(lanes: Lanes, span: Span) -> pa.Table:
    """Return WAITS: a row a rank that waits and a rank that it waits for, without one for the network."""
    waiting, whom, us = waits_of(lanes, span)
    ranks = lanes.ranks.astype(np.int32)
    for_rank = pa.array(ranks[np.maximum(whom, 0)], pa.int32(), mask=whom < 0)
    return pa.table({"rank": ranks[waiting], "for_rank": for_rank, "wait_us": us}, WAITS)


def _last_to_come(span: Span) -> IntArray:
    """Return for each call who of its operator, or of the two ends of its message, came last (n,)."""
    graph, inside, n = span.graph, slice(span.begin, span.end), span.end - span.begin
    operator = graph.operator[inside]
    order = np.lexsort((span.arrive_us, operator))
    is_last = np.append(operator[order][1:] != operator[order][:-1], True)[:n]
    last_of = np.zeros(int(operator.max(initial=-1)) + 1, np.int64)
    last_of[operator[order][is_last]] = order[is_last]
    own = np.arange(n)
    found = _in_time(span, own, last_of[operator])
    for ends, counts in (
        (graph.sender, np.ones(n, bool)),
        (graph.receiver, graph.waits_for_receiver[inside]),
    ):
        other = ends[inside].astype(np.int64) - span.begin
        is_here = counts & (other >= 0) & (other < n)
        later = _in_time(span, own, np.where(is_here, other, own))
        found = np.where(span.arrive_us[later] > span.arrive_us[found], later, found)
    return found


def _in_time(span: Span, own: IntArray, other: IntArray) -> IntArray:
    """Return the other call where it came before one's own ended, else one's own."""
    return np.where(span.arrive_us[other] <= span.end_us[own] + SAME_US, other, own)
