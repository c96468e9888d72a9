"""Host events of a profiler database; `sources.host_times` makes figures of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from cluster_analysis.sources import numbers
from cluster_analysis.sources.db.profiler_db import read_step_times
from cluster_analysis.sources.db.sqlite import Database, open_database
from cluster_analysis.sources.db.tasks import KERNEL, OPERATOR, TASK, kernel_rows, kernels, tell_untimed
from cluster_analysis.sources.errors import Remark, unheard
from cluster_analysis.sources.host_times import HostTimes, Spans, as_spans
from cluster_analysis.tables.schema import Counter

#: SQL of a time; PYTORCH_API has times as text.
_NS = (
    "CASE typeof({0}) WHEN 'integer' THEN {0} "
    "WHEN 'text' THEN CASE CAST(CAST({0} AS INTEGER) AS TEXT) WHEN {0} THEN CAST({0} AS INTEGER) END END"
)
_NOTHING = np.zeros((0, 2), np.int64)
_API, _COLLECTED = "CANN_API", "GC_RECORD"


def read_host_times(path: Path, remark: Remark) -> list[Counter]:
    """Return the counters; none where the database has no steps or no calls of the host.

    Raises:
        BadFileError: the database cannot be read.
    """
    steps = read_step_times(path, unheard) or ()
    with open_database(path, remark) as database:
        if (
            not steps
            or not database.has(TASK, "startNs", "endNs", "globalTaskId", "taskType")
            or not database.has(KERNEL, "globalTaskId")
        ):
            return []
        has_framework = database.has("PYTORCH_API", "startNs", "endNs", "name")
        if not has_framework and not any(database.has(table, "startNs") for table in (_API, _COLLECTED)):
            return []
        if database.has(OPERATOR, "startNs", "endNs"):
            tell_untimed(database, OPERATOR, "operator", remark)
        return HostTimes(
            as_spans([(step.begin_ns, step.end_ns) for step in steps]),
            np.concatenate([database.once(kernels), _spans(database, OPERATOR)]),
            _named(database, "PYTORCH_API", "name", "aten::copy\\_"),
            _named(database, TASK, "taskType", "MEMCPY%") if has_framework else _NOTHING,
            {
                "synchronising": _named(database, _API, "name", "aclrtSynchronize%"),
                "collecting": _spans(database, _COLLECTED),
                "dispatching": _spans(database, _API),
            },
            _delays_us(database),
            has_framework,
        ).counters()


def _delays_us(database: Database) -> npt.NDArray[np.float64]:
    """Return the time from each kernel's launch to its start."""
    if not database.has(_API, "startNs", "connectionId") or not database.has(TASK, "connectionId"):
        return np.zeros(0)
    # The first launch of each connection.
    launches = (
        f"JOIN (SELECT connectionId, MIN(startNs) AS ns FROM {_API} WHERE typeof(connectionId) = 'integer' "
        f"AND typeof(startNs) = 'integer' GROUP BY connectionId) AS launch "
        f"ON launch.connectionId = {TASK}.connectionId"
    )
    rows = database.rows(kernel_rows(f"{TASK}.startNs - launch.ns", launches))
    return np.array(rows, np.float64).reshape(-1) / numbers.NS_PER_US


def _named(database: Database, table: str, column: str, pattern: str) -> Spans:
    """Return the spans whose name is like SQL's pattern."""
    if not database.has(table, column):
        return _NOTHING
    found = "SELECT id FROM STRING_IDS WHERE value LIKE ? ESCAPE '\\'"
    return _spans(database, table, f"typeof({column}) = 'integer' AND {column} IN ({found})", pattern)


def _spans(database: Database, table: str, where: str = "1", *values: str) -> Spans:
    """Return begins and ends, ns (N, 2), of all rows of a table or of those that SQL chooses."""
    if not database.has(table, "startNs", "endNs"):
        return _NOTHING
    begin, end = (_NS.format(name) for name in ("startNs", "endNs"))
    rows = database.rows(
        f"SELECT * FROM (SELECT {begin} AS begin_ns, {end} AS end_ns FROM {table} WHERE {where}) "
        "WHERE end_ns > begin_ns",
        values,
    )
    return np.array(rows, np.int64).reshape(-1, 2)
