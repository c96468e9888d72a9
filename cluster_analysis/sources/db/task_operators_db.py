"""Kernels of a profiler database by their kind."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from cluster_analysis.sources import numbers
from cluster_analysis.sources.db.sqlite import open_database
from cluster_analysis.sources.db.tasks import KERNEL, TASK, kernel_sums, task_times, tell_untimed
from cluster_analysis.sources.errors import Remark
from cluster_analysis.tables import schema


def read_task_operators(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return OPERATORS: calls and times of each kind of kernel; None where the database has no tasks.

    Raises:
        BadFileError: the database cannot be read.
    """
    with open_database(path, remark) as database:
        if not database.has(TASK, "startNs", "endNs", "globalTaskId") or not database.has(
            KERNEL, "globalTaskId", "opType", "taskType"
        ):
            return None
        tell_untimed(database.once(task_times), "task", remark)
        sums = database.once(kernel_sums)
    kinds: dict[tuple[str | None, str | None], list[tuple[int, int, int, int]]] = {}
    for row in sums.to_pylist():
        figures = (row["n"], row["all_ns"], row["min_ns"], row["max_ns"])
        kinds.setdefault((row["opType"], row["taskType"]), []).append(figures)
    if not kinds:
        return None
    rows = [
        (kind, core, sum(n), sum(total), min(least), max(most))
        for (kind, core), found in kinds.items()
        for n, total, least, most in [zip(*found, strict=True)]
    ]
    rows.sort(key=lambda row: (-row[3], row[0] or "", row[1] or ""))
    columns = {
        "rank": numbers.constant(rank, len(rows), pa.int32()),
        "op_type": numbers.encoded([str(row[0]) for row in rows]),
        "core_type": numbers.encoded([str(row[1]) for row in rows]),
        "n_calls": pa.array([row[2] for row in rows], pa.int64()),
        "total_us": pa.array([row[3] / numbers.NS_PER_US for row in rows], pa.float64()),
        "min_us": pa.array([row[4] / numbers.NS_PER_US for row in rows], pa.float64()),
        # op_statistic.csv states its means to the nanosecond too.
        "avg_us": pa.array([round(row[3] / row[2]) / numbers.NS_PER_US for row in rows], pa.float64()),
        "max_us": pa.array([row[5] / numbers.NS_PER_US for row in rows], pa.float64()),
    }
    return pa.table(columns, schema=schema.OPERATORS)
