"""What the host did, of a profiler database; `sources.host_times` says what is made of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from cluster_analysis.sources import numbers
from cluster_analysis.sources.counters import Counter
from cluster_analysis.sources.db.profiler_db import IS_TIMED, read_step_times
from cluster_analysis.sources.db.sqlite import Database, open_database
from cluster_analysis.sources.errors import Remark, unheard
from cluster_analysis.sources.host_times import HostTimes, Spans, as_spans


def read_host_times(path: Path, remark: Remark) -> list[Counter]:
    """Return the counters; none where the database has no steps or no calls of the host.

    Raises:
        BadFileError: the database cannot be read.
    """
    steps = read_step_times(path, unheard) or ()
    with open_database(path, remark) as database:
        if not steps or not database.has("TASK", "startNs", "endNs", "globalTaskId", "taskType"):
            return []
        kernels = _spans(database, f"TASK JOIN COMPUTE_TASK_INFO USING (globalTaskId) WHERE {IS_TIMED}")
        return HostTimes(
            as_spans([(step.begin_ns, step.end_ns) for step in steps]),
            np.concatenate([kernels, _all(database, "COMMUNICATION_OP")]),
            _named(database, "PYTORCH_API", "name", "aten::copy\\_"),
            _named(database, "TASK", "taskType", "MEMCPY%"),
            {
                "synchronising": _named(database, "CANN_API", "name", "aclrtSynchronize%"),
                "collecting": _all(database, "GC_RECORD"),
                "dispatching": _all(database, "CANN_API"),
            },
            _delays_us(database),
            database.has("PYTORCH_API", "startNs", "endNs", "name"),
        ).counters()


def _delays_us(database: Database) -> npt.NDArray[np.float64]:
    """Return the time from each kernel's launch to its start."""
    if not database.has("CANN_API", "startNs", "connectionId") or not database.has("TASK", "connectionId"):
        return np.zeros(0)
    both = "TASK JOIN COMPUTE_TASK_INFO USING (globalTaskId) JOIN CANN_API USING (connectionId)"
    query = f"SELECT TASK.startNs - MIN(CANN_API.startNs) FROM {both} WHERE {IS_TIMED} GROUP BY globalTaskId"
    rows = database.iterate(query)
    return np.fromiter((row[0] for row in rows if row[0] is not None), np.float64) / numbers.NS_PER_US


def _all(database: Database, table: str) -> Spans:
    """Return all spans of a table; none where the database lacks it."""
    return _spans(database, table) if database.has(table, "startNs", "endNs") else np.zeros((0, 2), np.int64)


def _named(database: Database, table: str, column: str, pattern: str) -> Spans:
    """Return the spans whose name is like SQL's pattern."""
    if not database.has(table, "startNs", "endNs", column):
        return np.zeros((0, 2), np.int64)
    ids = "SELECT id FROM STRING_IDS WHERE value LIKE ? ESCAPE '\\'"
    return _spans(database, f"{table} WHERE {column} IN ({ids})", (pattern,))


def _spans(database: Database, source: str, values: tuple[object, ...] = ()) -> Spans:
    """Return begins and ends, ns (N, 2); PYTORCH_API has them as text."""
    table = source.partition(" ")[0]
    begin, end = (f"CAST({table}.{name} AS INTEGER)" for name in ("startNs", "endNs"))
    rows = database.rows(f"SELECT {begin}, {end} FROM {source}", values)
    return as_spans(rows)
