"""The step that was replayed: its lanes and critical path, and who waits for whom in it."""

from __future__ import annotations

import numpy as np

from cluster_analysis.reports.page.picture import Picture
from cluster_analysis.result import AnalysisResult

#: A job with more ranks is drawn by its hosts, where they are known.
MAX_RANKS = 64


def build_lanes(result: AnalysisResult) -> Picture:
    """Return the lanes, a byte a cell, and the critical path."""
    table, path = result.tables.get("lanes"), result.tables.get("critical_path")
    if table is None or path is None or not table.num_rows:
        return Picture({"lanes": None}, {})
    lanes = {
        "step": table["step"][0].as_py(),
        "cell_us": table["cell_us"][0].as_py(),
        "ranks": table["rank"].to_pylist(),
        "path": [
            [row["rank"], round(row["begin_us"], 1), round(row["end_us"], 1), row["kind"] == "work"]
            for row in path.to_pylist()
        ],
    }
    cells = np.frombuffer(b"".join(table["cells"].to_pylist()), np.uint8)
    return Picture({"lanes": lanes}, {"lanes.cells": cells})


def build_who_waits(result: AnalysisResult) -> Picture:
    """Return the waiting of one step by who waits and for whose work, as the mean over those who wait.

    The header names the ends of the matrix. Columns: from, to (-1: the network), µs a rank.
    """
    table = result.tables.get("waits")
    if table is None or not table.num_rows:
        return Picture({"who_waits": None}, {})
    hosts = result.topology.hosts
    ranks = [int(rank) for rank in result.topology.ranks]
    by_host = len(ranks) > MAX_RANKS and len(set(hosts.values())) > 1
    names = {rank: hosts.get(rank, "") if by_host else rank for rank in result.topology.ranks}
    ends = sorted(set(names.values()), key=lambda end: (len(str(end)), str(end)))
    position = {end: number for number, end in enumerate(ends)}
    place = np.full(max(ranks) + 2, -1)
    for rank, name in names.items():
        place[rank] = position[name]
    sizes = np.bincount(place[ranks], minlength=len(ends))
    for_rank = table["for_rank"].to_numpy(zero_copy_only=False)
    whom = np.where(np.isnan(for_rank), -1, np.nan_to_num(for_rank)).astype(np.int64)
    waiting = place[table["rank"].to_numpy()]
    cell = waiting * (len(ends) + 1) + place[whom] + 1
    sums = np.bincount(cell, table["wait_us"].to_numpy(), len(ends) * (len(ends) + 1))
    at = np.flatnonzero(sums)
    rows = at // (len(ends) + 1)
    header = {"step": result.tables["lanes"]["step"][0].as_py(), "ends": ends, "by_host": by_host}
    columns = {
        "who_waits.from": rows.astype(np.int32),
        "who_waits.to": (at % (len(ends) + 1) - 1).astype(np.int32),
        "who_waits.us": (sums[at] / sizes[rows]).astype(np.float32),
    }
    return Picture({"who_waits": header}, columns)
