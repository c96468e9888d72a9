"""The step that reports show: its lanes, its critical path, and who waits for whom.

A rank that waits in an operator waits for whoever comes last to it. Where that rank waits itself at this
moment, both wait for whom it waits for, and so on, up to a rank that works. That one is the cause: those
between are held up, and are never named. Where the chain ends in a transfer, the network is the cause.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.sorting import ranges
from cluster_analysis.replay.lanes import (
    KINDS,
    WAIT,
    WORK,
    Lanes,
    Span,
    bounds_of,
    lanes_of,
    last_to_come,
    span_of,
)
from cluster_analysis.replay.replay import Graph
from cluster_analysis.tables import columns_described as described
from cluster_run.findings import Finding
from cluster_run.ids import Step


def lanes_tables(
    graph: Graph | None, steps: Sequence[Step], findings: Sequence[Finding]
) -> dict[str, pa.Table]:
    """Return lanes, critical path and waits of a step that shows the costliest alarm, else of a usual one.

    All are empty where nothing can be replayed.
    """
    if graph is None or not len(graph.operator) or graph.n_steps != len(steps):
        return {
            "lanes": described.Lanes.schema.empty_table(),
            "critical_path": described.CriticalPath.schema.empty_table(),
            "waits": described.Waits.schema.empty_table(),
        }
    at = _shown_step(graph, steps, findings)
    span = span_of(graph, at)
    found = lanes_of(span, at)
    n_ranks = len(found.ranks)
    lanes = {
        "rank": found.ranks.astype(np.int32),
        "step": np.full(n_ranks, steps[at], np.int32),
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
    """Return whom each rank waits for directly, by rank and cell; -1 where it waits for nobody."""
    n_ranks, n_cells = lanes.cells.shape
    graph, begin = span.graph, span.begin
    last, bounds = last_to_come(span), bounds_of(span)
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
