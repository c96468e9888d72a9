"""Host events of a profiler database; `cluster_reduce.sums.host_times` makes figures of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from cluster_analysis.sources.db.profiler_db import read_step_times
from cluster_analysis.sources.db.sqlite import Database, open_database
from cluster_analysis.sources.db.tasks import (
    KERNEL,
    OPERATOR,
    TASK,
    TIMED,
    kernel_rows,
    kernels,
    tell_untimed,
)
from cluster_analysis.sources.errors import Remark, unheard
from cluster_analysis.tables.schema import Counter
from cluster_reduce.sums.host_times import HostTimes
from cluster_reduce.sums.spans import Spans

#: SQL of a time; PYTORCH_API has times as text.
_NS = (
    "CASE typeof({0}) WHEN 'integer' THEN {0} "
    "WHEN 'text' THEN CASE CAST(CAST({0} AS INTEGER) AS TEXT) WHEN {0} THEN CAST({0} AS INTEGER) END END"
)
_API, _COLLECTED = "CANN_API", "GC_RECORD"


def read_host_times(path: Path, remark: Remark) -> list[Counter]:
    """Return the counters; none where the database has no steps or no calls of the host."""
    steps = read_step_times(path, unheard) or ()
    with open_database(path, remark) as database:
        needed = {TASK: (*TIMED, "taskType"), KERNEL: ("globalTaskId",)}
        if not steps or not database.offers_all(remark, needed):
            return []
        has_framework = database.offers(remark, "PYTORCH_API", "startNs", "endNs", "name")
        if not has_framework and not any(database.has(table, "startNs") for table in (_API, _COLLECTED)):
            return []
        if database.offers(remark, OPERATOR, "startNs", "endNs"):
            tell_untimed(database, OPERATOR, "operator", remark)
        times = HostTimes(has_framework)
        times.steps += [(step.begin_ns, step.end_ns) for step in steps if step.end_ns > step.begin_ns]
        _fill(times.busy, database.once(kernels).tolist(), _spans(database, remark, OPERATOR))
        _fill(times.copies, _named(database, remark, "PYTORCH_API", "name", "aten::copy\\_"))
        if has_framework:
            _fill(times.device_copies, _named(database, remark, TASK, "taskType", "MEMCPY%"))
        _fill(times.synchronising, _named(database, remark, _API, "name", "aclrtSynchronize%"))
        _fill(times.collecting, _spans(database, remark, _COLLECTED))
        _fill(times.dispatching, _spans(database, remark, _API))
        if database.has(_API, "startNs", "connectionId") and database.has(TASK, "connectionId"):
            launches = (
                f"SELECT connectionId, startNs FROM {_API} "
                "WHERE typeof(connectionId) = 'integer' AND typeof(startNs) = 'integer'"
            )
            starts = kernel_rows(database, f"{TASK}.connectionId, {TASK}.startNs")
            starts += f" AND typeof({TASK}.connectionId) = 'integer'"
            times.launches.extend(chain.from_iterable(database.rows(launches)))
            times.starts.extend(chain.from_iterable(database.rows(starts)))
        return [*times.figures()]


def _fill(spans: Spans, *rows: Iterable[Sequence[int]]) -> None:
    for begin, end in chain(*rows):
        spans.add(begin, end)


def _named(
    database: Database, remark: Remark, table: str, column: str, pattern: str
) -> list[tuple[int, ...]]:
    """Return the spans whose name is like SQL's pattern."""
    if not database.offers(remark, table, column):
        return []
    found = "SELECT id FROM STRING_IDS WHERE value LIKE ? ESCAPE '\\'"
    return _spans(database, remark, table, f"typeof({column}) = 'integer' AND {column} IN ({found})", pattern)


def _spans(
    database: Database, remark: Remark, table: str, where: str = "1", *values: str
) -> list[tuple[int, ...]]:
    """Return begins and ends, ns, of all rows of a table or of those that SQL chooses."""
    if not database.offers(remark, table, "startNs", "endNs"):
        return []
    begin, end = (_NS.format(name) for name in ("startNs", "endNs"))
    return database.rows(
        f"SELECT * FROM (SELECT {begin} AS begin_ns, {end} AS end_ns FROM {table} WHERE {where}) "
        "WHERE end_ns > begin_ns",
        values,
    )
