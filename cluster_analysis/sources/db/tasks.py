"""The tasks and kernels of a profiler database: which there are, and when each ran."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import IntArray
from cluster_analysis.sources.db.sqlite import Database
from cluster_analysis.sources.errors import BadFileError, Remark, tell_left_out
from cluster_reduce.sums.kernel_details import CARRIERS
from cluster_run.facts import fact

#: Begins and ends, ns (N, 2).

TASK, KERNEL, OPERATOR = "TASK", "COMPUTE_TASK_INFO", "COMMUNICATION_OP"
#: Columns of TASK with which a task has its time.
TIMED = ("startNs", "endNs", "globalTaskId")
_STRINGS, _RANKS = "STRING_IDS", "RANK_DEVICE_MAP"
_MOST_NS = np.iinfo(np.int64).max
#: Columns that name a kernel, besides its state.
KERNEL_TEXTS = ("opType", "taskType", "name", "inputShapes", "outputShapes")
#: SQL of a table: rows with begin and end, in their order.
_IS_TIMED = "typeof({0}.startNs) = 'integer' AND typeof({0}.endNs) = 'integer' AND {0}.endNs >= {0}.startNs"


def is_timed(table: str) -> str:
    """Return, as SQL, whether a row of the table has begin and end, in their order."""
    return _IS_TIMED.format(table)


def tell_untimed(database: Database, table: str, part: str, remark: Remark) -> None:
    """Remark how many rows of a table are left out because they have no time."""
    n_bad, _ = database.once(_times, table)
    tell_left_out(remark, n_bad, part, "no_time")


def last_task_ns(database: Database) -> int:
    """Return when the last task ended, ns; 0 for none."""
    return max(0, database.once(_times, TASK)[1])


def _times(database: Database, table: str) -> tuple[int, int]:
    """Return how many rows have no time, and when the last one ended, ns."""
    ((n_rows, n_timed, last_ns),) = database.rows(
        f"SELECT COUNT(*), TOTAL({is_timed(table)}), MAX(CASE typeof(endNs) WHEN 'integer' THEN endNs END) "  # noqa: S608
        f"FROM {table}"
    )
    return n_rows - int(n_timed), last_ns or 0


def is_own(database: Database, table: str) -> str:
    """Return, as SQL, whether a row of the table is of the rank's own device."""
    device = database.once(_own_device) if database.has(table, "deviceId") else None
    return "1" if device is None else f"{table}.deviceId = {device}"


def _own_device(database: Database) -> int | None:
    """Return the rank's device where tasks ran on several: a process may touch others; None where on one.

    Raises:
        BadFileError: nothing says which it is.
    """
    n_used = len(_devices(database, TASK))
    if n_used < 2:
        return None
    for table in (_RANKS, OPERATOR):
        own = _devices(database, table)
        if len(own) == 1 and min(own) >= 0:
            return min(own)
    raise BadFileError(fact("several_devices", n_devices=n_used))


def _devices(database: Database, table: str) -> set[int]:
    query = f"SELECT DISTINCT deviceId FROM {table} WHERE typeof(deviceId) = 'integer'"  # noqa: S608
    return {device for (device,) in database.rows(query)} if database.has(table, "deviceId") else set()


def kernel_rows(database: Database, what: str) -> str:
    """Return the SQL that selects something of each task that is a kernel `k` and has both times.

    Kernels that carry out an operator of communication are no kernels here: its own row tells of it.
    """
    carriers = " OR ".join(f"value LIKE '%{end}'" for end in CARRIERS)
    has_name = database.has(KERNEL, "name") and database.has(_STRINGS, "id", "value")
    is_carrier = f"k.name IN (SELECT id FROM {_STRINGS} WHERE {carriers})" if has_name else "0"  # noqa: S608
    return (
        f"SELECT {what} FROM {TASK} JOIN {KERNEL} AS k ON k.globalTaskId = {TASK}.globalTaskId "  # noqa: S608
        f"WHERE {is_timed(TASK)} AND typeof({TASK}.globalTaskId) = 'integer' "
        f"AND typeof(k.globalTaskId) = 'integer' AND {is_own(database, TASK)} AND NOT {is_carrier}"
    )


def kernels(database: Database) -> IntArray:
    """Return when each kernel began and ended, ns (n, 2)."""
    rows = database.rows(kernel_rows(database, f"{TASK}.startNs, {TASK}.endNs"))
    return np.array(rows, np.int64).reshape(-1, 2)


def kernel_sums(database: Database) -> pa.Table:
    """Return the kernels by their texts: opType … opState as text, n, and ns in all, at least and at most.

    A text is null where the texts lack it; a column that the kernels lack is missing.
    """
    names = [name for name in (*KERNEL_TEXTS, "opState") if database.has(KERNEL, name)]
    keys, places = ", ".join(f"k.{name}" for name in names), ", ".join(map(str, range(1, len(names) + 1)))
    spent = f"{TASK}.endNs - {TASK}.startNs"
    figures_of = f"COUNT(*), SUM({spent}), MIN({spent}), MAX({spent})"
    rows = database.rows(f"{kernel_rows(database, f'{keys}, {figures_of}')} GROUP BY {places}")
    figures = [row[len(names) :] for row in rows]
    are_whole = all(type(one) is int for own in figures for one in own)
    if not are_whole or sum(own[1] for own in figures) > _MOST_NS:
        # Times of a damaged file; sums of them would be any number.
        raise BadFileError(fact("not_database", detail="integer overflow"))
    # The first of several texts of one number counts.
    known = database.rows(f"SELECT id, value FROM {_STRINGS} WHERE typeof(id) = 'integer'")  # noqa: S608
    texts = {key: None if text is None else str(text) for key, text in reversed(known)}
    # Two numbers may stand for one text.
    sums: dict[tuple[str | None, ...], tuple[int, int, int, int]] = {}
    for row, own in zip(rows, figures, strict=True):
        key = tuple(texts.get(one) if type(one) is int else None for one in row[: len(names)])
        n, total, least, most = sums.get(key, (0, 0, own[2], own[3]))
        sums[key] = n + own[0], total + own[1], min(least, own[2]), max(most, own[3])
    columns: dict[str, pa.Array] = {
        name: pa.array([key[at] for key in sums], pa.string()) for at, name in enumerate(names)
    }
    for at, name in enumerate(("n", "all_ns", "min_ns", "max_ns")):
        columns[name] = pa.array([own[at] for own in sums.values()], pa.int64())
    return pa.table(columns)
