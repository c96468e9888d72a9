"""What the host did, of a profiler database: before the first operator of a step, and while devices idled.

`PYTORCH_API` nests: a copy calls others of its name. So times are unions of spans, never sums.

| metric | label | what |
| --- | --- | --- |
| head_copy_us | host | in `aten::copy_` before a step's first operator, summed over steps |
| head_copy_us | device | copies that the device made meanwhile |
| idle_us | synchronising, collecting, dispatching, elsewhere | the host while its device ran nothing |
| dispatch_delay_us | median | from the launch of a kernel on the host to its start on the device |
| dispatched_late_share | | kernels that started within 50 µs of their launch: the device waited for it |

Idle time lies between the first and the last operator of a step, summed over steps: that is its free time.
Collecting is Python's garbage collector, where it was recorded (GC_RECORD).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import numbers
from cluster_analysis.sources.cells import Cells, whole_numbers
from cluster_analysis.sources.counters import Counter
from cluster_analysis.sources.db.profiler_db import read_step_times
from cluster_analysis.sources.db.sqlite import Database, open_database
from cluster_analysis.sources.db.tasks import (
    KERNEL,
    OPERATOR,
    TASK,
    Spans,
    kernels,
    operator_times,
    pairs,
    tell_untimed,
)
from cluster_analysis.sources.errors import Remark, unheard

_LAUNCH_US = 50.0
#: Whole numbers that fit 64 bits.
_WHOLE = r"^(-?[0-9]{1,18}|[0-8][0-9]{18})$"
_NOTHING = np.zeros((0, 2), np.int64)
_API, _COLLECTED = "CANN_API", "GC_RECORD"


def read_host_times(path: Path, remark: Remark) -> list[Counter]:
    """Return the counters above; none where the database has no steps or no calls of the host.

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
        has_host = database.has("PYTORCH_API", "startNs", "endNs", "name")
        if not has_host and not any(database.has(table, "startNs") for table in (_API, _COLLECTED)):
            return []
        if database.has(OPERATOR, "startNs", "endNs"):
            tell_untimed(database.once(operator_times), "operator", remark)
        busy = _merged(np.concatenate([database.once(kernels).spans, _spans(database, OPERATOR)]))
        copies = _named(database, "PYTORCH_API", "name", "aten::copy\\_")
        copy_tasks = _named(database, TASK, "taskType", "MEMCPY%") if has_host else _NOTHING
        causes = {
            "synchronising": _named(database, _API, "name", "aclrtSynchronize%"),
            "collecting": _spans(database, _COLLECTED),
            "dispatching": _spans(database, _API),
        }
        found = _dispatch(database)
    heads, idles = [], []
    for step in steps:
        own = busy[(busy[:, 1] > step.begin_ns) & (busy[:, 0] < step.end_ns)]
        if len(own):
            heads.append((step.begin_ns, max(int(own[0, 0]), step.begin_ns)))
            idles += list(zip(own[:-1, 1].tolist(), own[1:, 0].tolist(), strict=True))
    if has_host and heads:
        head = np.array(heads, np.int64)
        found += [
            ("head_copy_us", "host", _common_us(_merged(copies), head)),
            ("head_copy_us", "device", _common_us(_merged(copy_tasks), head)),
        ]
    if idles and any(len(one) for one in causes.values()):
        found += _idle_counters(_merged(np.array(idles, np.int64)), causes)
    return found


def _idle_counters(idle: Spans, causes: dict[str, Spans]) -> list[Counter]:
    """Split idle time; a moment counts for the first cause that holds, in the order of `causes`."""
    rest = idle
    found: list[Counter] = []
    for name, spans in causes.items():
        merged = _merged(spans)
        found.append(("idle_us", name, _common_us(merged, rest)))
        rest = _without(rest, merged)
    found.append(("idle_us", "elsewhere", float((rest[:, 1] - rest[:, 0]).sum()) / numbers.NS_PER_US))
    return found


def _dispatch(database: Database) -> list[Counter]:
    """How long kernels wait on the device: the slant of the timeline's HostToDevice lines, as numbers.

    Upright lines, a start right behind the launch, mean that the host is too slow; 50 µs is what
    free_analysis of msprof-analyze takes for a launch.
    """
    if not database.has(_API, "startNs", "connectionId") or not database.has(TASK, "connectionId"):
        return []
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
    delays = (rows.spans[connected[left], 0] - launched_ns[known[first[right]]]) / numbers.NS_PER_US
    if not len(delays):
        return []
    return [
        ("dispatch_delay_us", "median", float(np.median(delays))),
        ("dispatched_late_share", "", float(np.mean(delays < _LAUNCH_US))),
    ]


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
    """Return whole numbers (N,), and which cells are none (N,); PYTORCH_API has them as text."""
    if isinstance(cells, list) or not pa.types.is_string(cells.type):
        return whole_numbers(cells)
    is_number = pc.match_substring_regex(cells, _WHOLE).fill_null(False)
    return whole_numbers(pc.if_else(is_number, cells, None).cast(pa.int64()))


def _merged(spans: Spans) -> Spans:
    """Return the union of spans: those that touch made one, by their begin."""
    if not len(spans):
        return spans
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    ends = np.maximum.accumulate(spans[:, 1])
    first = np.r_[True, spans[1:, 0] > ends[:-1]]
    last = np.r_[np.flatnonzero(first)[1:] - 1, len(spans) - 1]
    return np.stack([spans[first, 0], ends[last]], axis=1)


def _common_us(left: Spans, right: Spans) -> float:
    """Return how long both hold, of two unions."""
    covered = sum(int(one[:, 1].sum() - one[:, 0].sum()) for one in (left, right))
    both = _merged(np.concatenate([left, right]))
    return (covered - int((both[:, 1] - both[:, 0]).sum())) / numbers.NS_PER_US


def _without(left: Spans, right: Spans) -> Spans:
    """Return the parts of `left` outside of `right`, both unions."""
    if not len(left) or not len(right):
        return left
    edges = np.unique(np.concatenate([left.ravel(), right.ravel()]))
    begin, end = edges[:-1], edges[1:]
    inside = [
        np.searchsorted(one[:, 0], begin, "right") - np.searchsorted(one[:, 1], begin, "right")
        for one in (left, right)
    ]
    kept = (inside[0] > 0) & (inside[1] == 0)
    return np.stack([begin[kept], end[kept]], axis=1)
