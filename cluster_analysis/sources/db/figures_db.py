"""What a profiler database has of a rank besides its times: kernels by shape, memory, clocks, host calls."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import numbers
from cluster_analysis.sources.counters import thinned
from cluster_analysis.sources.db.counters_db import clock_changes
from cluster_analysis.sources.db.sqlite import Database, open_database
from cluster_analysis.sources.db.tasks import KERNEL, KERNEL_TEXTS, TASK, TIMED, kernel_sums, tell_untimed
from cluster_analysis.sources.errors import Remark
from cluster_analysis.sources.kernel_groups import KEYS, KernelSums
from cluster_analysis.tables import schema


def read_task_kernels(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return KERNELS of the tasks; None where it has none."""
    with open_database(path, remark) as database:
        needed = {KERNEL: (*KERNEL_TEXTS, "globalTaskId"), TASK: TIMED}
        return database.once(_summed).table(rank) if database.offers_all(remark, needed) else None


def _summed(database: Database) -> KernelSums:
    """Return the kernels as text files of them are summed; a text that they lack is empty."""
    sums = database.once(kernel_sums)
    for of in (*KERNEL_TEXTS, "opState"):
        if of not in sums.column_names:
            sums = sums.append_column(of, pa.repeat("", sums.num_rows))
    # All at once: there are few rows.
    texts = pa.chunked_array([chunk for of in (*KERNEL_TEXTS, "opState") for chunk in sums[of].chunks])
    cleaned = pc.replace_substring(pc.fill_null(texts, ""), '"', "")
    columns: dict[str, pa.Array] = {
        name: cleaned.slice(at * sums.num_rows, sums.num_rows) for at, name in enumerate(KEYS)
    }
    columns["n"] = sums["n"]
    for name, of in (("ps", "all_ns"), ("ps_min", "min_ns"), ("ps_max", "max_ns")):
        columns[name] = pc.multiply_checked(sums[of], numbers.PS_PER_NS)
    columns["wait_ps"] = pa.nulls(sums.num_rows, pa.int64())
    summed = KernelSums()
    summed.add_sums(pa.table(columns))
    return summed


def read_task_operators(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return OPERATORS: calls and times of each kind of kernel; None where the database has no tasks."""
    with open_database(path, remark) as database:
        of_kernels = ("globalTaskId", "opType", "taskType")
        if not database.offers_all(remark, {TASK: TIMED, KERNEL: of_kernels}):
            return None
        tell_untimed(database, TASK, "task", remark)
        return database.once(_summed).operators(rank)


def read_db_memory(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return MEMORY of MEMORY_RECORD; None where the database has none."""
    names = ("totalAllocated", "totalReserved", "totalActive")
    with open_database(path, remark) as database:
        if not database.offers(remark, "MEMORY_RECORD", "component", "timestamp", *names):
            return None
        rows = database.rows(
            f"SELECT value, timestamp, {', '.join(names)} FROM MEMORY_RECORD "
            "LEFT JOIN STRING_IDS ON id = component WHERE typeof(timestamp) = 'integer'"
        )
    columns = {
        "component": pa.array([str(row[0] or "") for row in rows], pa.string()),
        "time_ns": pa.array([row[1] for row in rows], pa.int64()),
    }
    for at, name in enumerate(("allocated_bytes", "reserved_bytes", "active_bytes"), start=2):
        values = [row[at] if isinstance(row[at], (int, float)) else None for row in rows]
        columns[name] = pa.array(values, pa.float64())
    return thinned(pa.table(columns), rank)


def read_frequency(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return FREQUENCY: the clock of the AI cores at each change; None where the database has none."""
    with open_database(path, remark) as database:
        if not database.offers(remark, "AICORE_FREQ", "timestampNs", "freq"):
            return None
        rows = database.once(clock_changes)
    kept = [row for at, row in enumerate(rows) if at == 0 or row[1] != rows[at - 1][1]]
    if not kept:
        return None
    return schema.rows(
        schema.FREQUENCY,
        rank,
        time_us=[(row[0] - kept[0][0]) / numbers.NS_PER_US for row in kept],
        frequency_mhz=[float(row[1]) for row in kept],
    )


def read_db_apis(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return APIS summed over CANN_API, longest first; None where the database has none."""
    with open_database(path, remark) as database:
        of_calls = ("startNs", "endNs", "type", "name")
        if not database.offers_all(remark, {"CANN_API": of_calls, "ENUM_API_TYPE": ("id", "name")}):
            return None
        rows = database.rows(
            "SELECT COALESCE(l.name, ''), COALESCE(n.value, ''), COUNT(*), SUM(endNs - startNs), "
            "MIN(endNs - startNs), MAX(endNs - startNs) FROM CANN_API "
            "LEFT JOIN ENUM_API_TYPE AS l ON l.id = CANN_API.type "
            "LEFT JOIN STRING_IDS AS n ON n.id = CANN_API.name "
            "WHERE typeof(startNs) = 'integer' AND endNs >= startNs GROUP BY 1, 2 ORDER BY 4 DESC, 1, 2"
        )
    if not rows:
        return None
    return schema.rows(
        schema.APIS,
        rank,
        level=[str(row[0]) for row in rows],
        api=[str(row[1]) for row in rows],
        n_calls=[row[2] for row in rows],
        total_us=[row[3] / numbers.NS_PER_US for row in rows],
        avg_us=[row[3] / row[2] / numbers.NS_PER_US for row in rows],
        min_us=[row[4] / numbers.NS_PER_US for row in rows],
        max_us=[row[5] / numbers.NS_PER_US for row in rows],
    )
