"""Host events of a profiler database; `sources.host_times` makes figures of them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import numbers
from cluster_analysis.sources.db.cells import Cells, whole_numbers
from cluster_analysis.sources.db.profiler_db import read_step_times
from cluster_analysis.sources.db.sqlite import Database, open_database
from cluster_analysis.sources.db.tasks import (
    KERNEL,
    OPERATOR,
    TASK,
    kernels,
    pairs,
    tell_untimed,
)
from cluster_analysis.sources.errors import Remark, unheard
from cluster_analysis.sources.host_times import HostTimes, Spans, as_spans
from cluster_analysis.tables.schema import Counter

#: Whole numbers that fit 64 bits.
_WHOLE = r"^(-?[0-9]{1,18}|[0-8][0-9]{18})$"
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
            np.concatenate([database.once(kernels).spans, _spans(database, OPERATOR)]),
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
    rows, tasks = database.once(kernels), whole_numbers(database.cells(TASK, "connectionId")[0])
    (calls, is_call), (launched_ns, is_launched) = map(
        whole_numbers, database.cells(_API, "connectionId", "startNs")
    )
    known = np.flatnonzero(is_call & is_launched)
    # The first launch of each connection.
    known = known[np.lexsort((launched_ns[known], calls[known]))]
    calls, first = np.unique(calls[known], return_index=True)
    connected = np.flatnonzero(tasks[1][rows.tasks])
    left, right = pairs(tasks[0][rows.tasks[connected]], calls)
    delays_ns = rows.spans[connected[left], 0] - launched_ns[known[first[right]]]
    return np.asarray(delays_ns / numbers.NS_PER_US)


def _named(database: Database, table: str, column: str, pattern: str) -> Spans:
    """Return the spans whose name is like SQL's pattern."""
    if not database.has(table, "startNs", "endNs", column):
        return _NOTHING
    found = database.rows("SELECT id FROM STRING_IDS WHERE value LIKE ? ESCAPE '\\'", (pattern,))
    named, is_name = whole_numbers(database.cells(table, "startNs", "endNs", column)[2])
    return _spans(database, table, is_name & np.isin(named, [key for (key,) in found]))


def _spans(database: Database, table: str, chosen: npt.NDArray[np.bool_] | None = None) -> Spans:
    """Return begins and ends, ns (N, 2), of all rows of a table or of the chosen ones."""
    if not database.has(table, "startNs", "endNs"):
        return _NOTHING
    (begin, is_begin), (end, is_end) = map(_integers, database.cells(table, "startNs", "endNs"))
    is_span = is_begin & is_end & (end > begin)
    kept = is_span if chosen is None else is_span & chosen
    return np.stack([begin[kept], end[kept]], axis=1)


def _integers(cells: Cells) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return whole numbers (N,), and which cells are one (N,); PYTORCH_API has them as text.

    Each cell is looked at by itself: which others there are depends on whether all rows travelled.
    """
    if isinstance(cells, list):
        return whole_numbers([_as_number(cell) for cell in cells])
    if not pa.types.is_string(cells.type):
        return whole_numbers(cells)
    is_number = pc.match_substring_regex(cells, _WHOLE).fill_null(False)
    return whole_numbers(pc.if_else(is_number, cells, None).cast(pa.int64()))


def _as_number(cell: object) -> object:
    return int(cell) if isinstance(cell, str) and re.fullmatch(_WHOLE, cell) else cell
