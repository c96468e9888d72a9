"""Kernels of a profiler database, summed by the database itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from cluster_analysis.sources import numbers
from cluster_analysis.sources.db.profiler_db import IS_TIMED, tell_untimed
from cluster_analysis.sources.db.sqlite import open_database
from cluster_analysis.sources.errors import Remark
from cluster_analysis.tables import schema

_TASK, _COMPUTE = "TASK", "COMPUTE_TASK_INFO"


def spans_by(ids: Sequence[str]) -> str:
    """Return SQL for number and times of the kernels by these columns of COMPUTE_TASK_INFO.

    They are numbers: grouping by the texts that they stand for takes twice as long.
    """
    keys = ", ".join(f"{_COMPUTE}.{name} AS {name}" for name in ids)
    span = f"{_TASK}.endNs - {_TASK}.startNs"
    return (
        f"SELECT {keys}, COUNT(*) AS n_spans, SUM({span}) AS all_ns, "
        f"MIN({span}) AS min_ns, MAX({span}) AS max_ns "
        f"FROM {_COMPUTE} JOIN {_TASK} USING (globalTaskId) WHERE {IS_TIMED} "
        f"GROUP BY {', '.join(str(at) for at in range(1, len(ids) + 1))}"
    )


#: What `spans_by` has of several numbers that stand for one text.
SUMMED_SPANS = "SUM(n_spans), SUM(all_ns), MIN(min_ns), MAX(max_ns)"


def read_task_operators(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return OPERATORS: calls and times of each kind of kernel; None where the database has no tasks.

    Raises:
        BadFileError: the database cannot be read.
    """
    with open_database(path, remark) as database:
        if not database.has(_TASK, "startNs", "endNs", "globalTaskId") or not database.has(
            _COMPUTE, "opType", "taskType"
        ):
            return None
        tell_untimed(database, _TASK, "task", remark)
        rows = database.rows(
            f"SELECT kinds.value, cores.value, {SUMMED_SPANS} FROM ({spans_by(('opType', 'taskType'))}) "
            "LEFT JOIN STRING_IDS AS kinds ON kinds.id = opType "
            "LEFT JOIN STRING_IDS AS cores ON cores.id = taskType "
            "GROUP BY 1, 2 ORDER BY 4 DESC, 1, 2"
        )
    if not rows:
        return None
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
