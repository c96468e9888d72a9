"""The step that was replayed: its lanes and critical path, and who waits for whom in it."""

from __future__ import annotations

import numpy as np

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.reports.page.packing import Picture
from cluster_analysis.result import AnalysisResult
from cluster_run.ids import host_number

#: Most ranks that are drawn; with more, hosts are, where they are known. Most hosts or ranks in all.
MAX_RANKS, MAX_ENDS = 64, 128


def build_lanes(result: AnalysisResult) -> Picture:
    """Return the lanes, a byte a cell, and the critical path."""
    table = result.table("lanes")
    if not table.num_rows:
        return Picture({"lanes": None}, {})
    lanes = {
        "step": table["step"][0].as_py(),
        "cell_us": table["cell_us"][0].as_py(),
        "ranks": table["rank"].to_pylist(),
        "path": [
            [row["rank"], round(row["begin_us"], 1), round(row["end_us"], 1), row["kind"] == "work"]
            for row in result.table("critical_path").to_pylist()
        ],
    }
    cells = np.frombuffer(b"".join(table["cells"].to_pylist()), np.uint8)
    return Picture({"lanes": lanes}, {"lanes.cells": cells})


def build_who_waits(result: AnalysisResult) -> Picture:
    """Return the waiting of one step by the rank that waits and the rank whose work it waits for, as the mean
    over the former.

    The header names the ends of the matrix: `rows` wait for `columns`. Columns: from, to (-1: the network),
    µs a rank.
    """
    table = result.table("waits")
    if not table.num_rows:
        return Picture({"who_waits": None}, {})
    hosts = result.topology.hosts
    ranks = [int(rank) for rank in result.topology.ranks]
    by_host = len(ranks) > MAX_RANKS and len(set(hosts.values())) > 1
    names = {rank: hosts.get(rank, "") if by_host else rank for rank in result.topology.ranks}
    ends = sorted(set(names.values()), key=lambda end: host_number(str(end)))
    position = {end: number for number, end in enumerate(ends)}
    place = np.full(max(ranks) + 2, -1)
    for rank, name in names.items():
        place[rank] = position[name]
    sizes = np.bincount(place[ranks], minlength=len(ends))
    for_rank = table["for_rank"].to_numpy(zero_copy_only=False)
    waits = place[table["rank"].to_numpy()]
    whom = place[np.where(np.isnan(for_rank), -1, np.nan_to_num(for_rank)).astype(np.int64)]
    mean_us = table["wait_us"].to_numpy() / sizes[waits]
    rows, columns = (_most(one, mean_us, len(ends)) for one in (waits, whom))
    row, column = _position(rows, len(ends))[waits], _position(columns, len(ends))[whom]
    shown = (row >= 0) & ((whom < 0) | (column >= 0))
    width = len(columns) + 1
    drawn_us = np.bincount((row * width + column + 1)[shown], mean_us[shown], len(rows) * width)
    at = np.flatnonzero(drawn_us)
    header = {
        "step": result.tables["lanes"]["step"][0].as_py(),
        "rows": [ends[one] for one in rows],
        "columns": [ends[one] for one in columns],
        "of": len(ends),
        "by_host": by_host,
    }
    cells = {
        "who_waits.from": (at // width).astype(np.int32),
        "who_waits.to": (at % width - 1).astype(np.int32),
        "who_waits.us": drawn_us[at].astype(np.float32),
    }
    return Picture({"who_waits": header}, cells)


def _most(ends: IntArray, waited_us: FloatArray, n: int) -> IntArray:
    """The `MAX_ENDS` of n ends that wait, or are waited for, most, in their own order; -1 is passed over."""
    sums = np.bincount(ends + 1, waited_us, n + 1)[1:]
    return np.sort(np.argsort(-sums, kind="stable")[:MAX_ENDS])


def _position(chosen: IntArray, n: int) -> IntArray:
    """The position of each of n ends, and of -1, among the chosen ones; -1 if it is none."""
    position = np.full(n + 1, -1)
    position[chosen] = np.arange(len(chosen))
    return position
