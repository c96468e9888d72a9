"""The step that reports show as lanes: what each rank does when, the critical path, and who waits for whom.

A lane has cells of one length. A rank's own work lies between its calls: it computes, or its device idles.
The path is walked back from the last call to end: whoever came last to an operator set its end, and what that
rank did before is what everybody waited for.

A rank that waits in an operator waits for whoever comes last to it. If that rank waits itself at this moment,
both wait for the rank that it waits for, and so on, up to a rank that works. That one is the cause: those
between are held up, and are never named. Where the chain ends in a transfer, the network is the cause.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
from msgspec import Struct

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.sorting import ranges
from cluster_analysis.replay.replay import Graph
from cluster_analysis.tables import columns_described as described
from cluster_run.findings import Finding
from cluster_run.ids import Step

#: Content of a cell.
ENDED, WORK, WAIT, TRANSFER = 0, 1, 2, 3
KINDS = ("ended", "work", "wait", "transfer")
#: Between the bounds of a call: its own work, its waiting, its transfer, and what follows up to the next one.
_BETWEEN = np.array([WORK, WAIT, TRANSFER, WAIT], np.uint8)
#: Cells of all lanes together, and of one at most and at least.
_ALL_CELLS = 1 << 20
_MOST_CELLS = 1024
_FEWEST_CELLS = 64
#: Calls that a path goes through; a longer one is cut at its begin.
_LONGEST_PATH = 1 << 14
#: Times of the replay that differ by less are one.
SAME_US = 0.5


class Lanes(Struct, frozen=True):
    """`cells` (R, N): what each rank does, `cell_us` each. The path in order: whose, from, to, what."""

    ranks: IntArray
    cell_us: float
    cells: np.ndarray[tuple[int, int], np.dtype[np.uint8]]
    path_rank: IntArray
    path_begin_us: FloatArray
    path_end_us: FloatArray
    path_kind: IntArray


class Span(Struct, frozen=True, dict=True):
    """The instances of one step, `begin` to `end`: when each comes to its operator, and when it leaves it."""

    graph: Graph
    begin: int
    end: int
    arrive_us: FloatArray
    end_us: FloatArray

    @cached_property
    def last_to_come(self) -> IntArray:
        """For each call the one of its operator, or of the two ends of its message, that came last (n,).

        Ranks that one operator releases come to the next together. Whoever came last to the one before is it:
        the others could not come earlier.
        """
        graph, inside, n = self.graph, slice(self.begin, self.end), self.end - self.begin
        operator, own = graph.operator[inside], np.arange(n)
        after = graph.after[inside].astype(np.int64) - self.begin
        came_before_us = np.where(
            (after >= 0) & (after < n), self.arrive_us.take(after, mode="clip"), -np.inf
        )
        order = np.lexsort((-own, came_before_us, self.arrive_us, operator))
        is_last = np.append(operator[order][1:] != operator[order][:-1], True)[:n]
        last_of = np.zeros(int(operator.max(initial=-1)) + 1, np.int64)
        last_of[operator[order][is_last]] = order[is_last]
        found = self._in_time(own, last_of[operator])
        for ends, counts in (
            (graph.sender, np.ones(n, bool)),
            (graph.receiver, graph.waits_for_receiver[inside]),
        ):
            other = ends[inside].astype(np.int64) - self.begin
            is_here = counts & (other >= 0) & (other < n)
            later = self._in_time(own, np.where(is_here, other, own))
            found = np.where(self.arrive_us[later] > self.arrive_us[found], later, found)
        return found

    def _in_time(self, own: IntArray, other: IntArray) -> IntArray:
        """Return the other call where it came before one's own ended, else one's own."""
        return np.where(self.arrive_us[other] <= self.end_us[own] + SAME_US, other, own)


def span_of(graph: Graph, step: int) -> Span:
    """Return the calls of a step, by its position among the steps; all ranks begin it together."""
    begin, end = (int(graph.cell_begin[(step + one) * len(graph.ranks)]) for one in (0, 1))
    return Span(graph, begin, end, *graph.call_times(begin, end))


def lanes_of(span: Span, step: int) -> Lanes:
    """Return the lanes of a step, by its position among the steps."""
    graph, begin, end_us = span.graph, span.begin, span.end_us
    n_ranks = len(graph.ranks)
    n_cells = int(np.clip(_ALL_CELLS // n_ranks, _FEWEST_CELLS, _MOST_CELLS))
    cell_us = max(float(end_us.max(initial=0.0)), 1.0) / n_cells
    cells = np.zeros((n_ranks, n_cells), np.uint8)
    at = (np.arange(n_cells) + 0.5) * cell_us
    bounds = bounds_of(span)
    is_main = ~graph.is_side[begin : span.end]
    for rank in range(n_ranks):
        first, last = (int(graph.cell_begin[step * n_ranks + rank + one]) - begin for one in (0, 1))
        own = bounds[first:last][is_main[first:last]].ravel()
        if len(own):
            found = np.searchsorted(np.maximum.accumulate(own), at, "right") - 1
            is_in = (found >= 0) & (found < len(own) - 1)
            cells[rank, is_in] = _BETWEEN[found[is_in] % len(_BETWEEN)]
    return Lanes(graph.ranks, cell_us, cells, *_path(span))


def bounds_of(span: Span) -> FloatArray:
    """When each instance begins its own work, arrives, begins to transfer, and ends (n, 4)."""
    inside = slice(span.begin, span.end)
    transfer_us = span.graph.transfer_us[span.graph.operator[inside]]
    moves = np.maximum(span.arrive_us, span.end_us - transfer_us)
    return np.stack([span.arrive_us - span.graph.gap_us[inside], span.arrive_us, moves, span.end_us], axis=1)


def _path(span: Span) -> tuple[IntArray, FloatArray, FloatArray, IntArray]:
    """Walk back from the last call to end."""
    parts: list[tuple[int, float, float, int]] = []
    if span.begin < span.end:
        came_last, at = span.last_to_come, int(np.argmax(span.end_us))
        while at >= 0 and len(parts) < _LONGEST_PATH:
            last = int(came_last[at])
            rank, came_us = int(span.graph.rank[span.begin + last]), float(span.arrive_us[last])
            began_us = came_us - float(span.graph.gap_us[span.begin + last])
            _put(parts, (rank, came_us, float(span.end_us[at]), TRANSFER))
            _put(parts, (rank, began_us, came_us, WORK))
            before = _before(span, last, began_us) if began_us > SAME_US else -1
            at = before if before < 0 or span.end_us[before] < span.end_us[at] else -1
    parts.reverse()
    rank_of, begins, ends, kinds = zip(*parts, strict=True) if parts else ((), (), (), ())
    ranks = span.graph.ranks[np.array(rank_of, np.int32)]
    return ranks, np.array(begins, np.float64), np.array(ends, np.float64), np.array(kinds, np.int32)


def _put(parts: list[tuple[int, float, float, int]], one: tuple[int, float, float, int]) -> None:
    """Add a part in front of those that are known; nothing for one that takes no time."""
    if one[2] - one[1] > SAME_US:
        parts.append(one)


def _before(span: Span, at: int, began_us: float) -> int:
    """The call of the same rank that ended when the work before `at` began; -1 for none."""
    graph = span.graph
    after = int(graph.after[span.begin + at]) - span.begin
    if 0 <= after < len(span.end_us) and abs(float(span.end_us[after]) - began_us) <= SAME_US:
        return after
    rank, n_ranks = int(graph.rank[span.begin + at]), len(graph.ranks)
    cell = int(graph.step[span.begin]) * n_ranks + rank
    first, last = (int(graph.cell_begin[cell + one]) - span.begin for one in (0, 1))
    own = span.end_us[first:last]
    in_time = np.flatnonzero(own <= began_us + SAME_US)
    in_time = in_time[in_time + first != at]
    return -1 if not len(in_time) else int(in_time[np.argmax(own[in_time])]) + first


def lanes_tables(
    graph: Graph | None, steps: Sequence[Step], findings: Sequence[Finding]
) -> dict[str, pa.Table]:
    """Return lanes, critical path and waits of a step that shows the costliest alarm, else of a usual one.

    All are empty where nothing can be replayed.
    """
    if graph is None or not len(graph.operator) or graph.n_steps != len(steps):
        tables = {"lanes": described.Lanes, "critical_path": described.CriticalPath, "waits": described.Waits}
        return {name: one.schema.empty_table() for name, one in tables.items()}
    at = _shown_step(graph, steps, findings)
    span = span_of(graph, at)
    found = lanes_of(span, at)
    n_ranks = len(found.ranks)
    lanes = {
        "rank": found.ranks.astype(np.int32),
        "step": np.full(n_ranks, steps[at], np.int64),
        "cell_us": np.full(n_ranks, found.cell_us),
        "cells": pa.array([row.tobytes() for row in found.cells], pa.binary()),
    }
    path = {
        "rank": found.path_rank.astype(np.int32),
        "begin_us": found.path_begin_us,
        "end_us": found.path_end_us,
        "kind": [KINDS[one] for one in found.path_kind.tolist()],
    }
    return {
        "lanes": pa.table(lanes, described.Lanes.schema),
        "critical_path": pa.table(path, described.CriticalPath.schema),
        "waits": waits_table(found, span),
    }


def _shown_step(graph: Graph, steps: Sequence[Step], findings: Sequence[Finding]) -> int:
    worst = next((one for one in findings if one.is_alarm and one.steps), None)
    if worst is not None and len(worst.steps) < len(steps) and worst.steps[0] in steps:
        return steps.index(worst.steps[0])
    longest = np.nan_to_num(graph.measured_us).max(axis=1)
    return int(np.argsort(longest, kind="stable")[len(longest) // 2])


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
    """Return whom each rank waits for directly, by rank and cell; -1 where it does not wait."""
    n_ranks, n_cells = lanes.cells.shape
    graph, begin = span.graph, span.begin
    last, bounds = span.last_to_come, bounds_of(span)
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
    """Return `Waits`: a row a rank that waits and a rank that it waits for, without one for the network."""
    waiting, whom, us = waits_of(lanes, span)
    ranks = lanes.ranks.astype(np.int32)
    for_rank = pa.array(ranks[np.maximum(whom, 0)], pa.int32(), mask=whom < 0)
    return pa.table({"rank": ranks[waiting], "for_rank": for_rank, "wait_us": us}, described.Waits.schema)
