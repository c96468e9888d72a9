"""The tasks and kernels of a profiler database: which there are, and when each ran."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from cluster_analysis.sources.db.cells import as_list, whole_numbers
from cluster_analysis.sources.db.sqlite import Database
from cluster_analysis.sources.errors import BadFileError, Part, Remark, left_out
from cluster_analysis.sources.host_times import Spans
from cluster_run.facts import fact

_Ints = npt.NDArray[np.int64]
TASK, KERNEL, OPERATOR = "TASK", "COMPUTE_TASK_INFO", "COMMUNICATION_OP"
_STRINGS = "STRING_IDS"
#: Ids fill at least one place in so many of those between the least and the largest.
_DENSE = 16
_MOST_NS = np.iinfo(np.int64).max
_OF_KERNELS = ("opType", "taskType", "name", "inputShapes", "outputShapes", "opState")
#: SQL of a table: rows with begin and end, in their order.
_IS_TIMED = "typeof({0}.startNs) = 'integer' AND typeof({0}.endNs) = 'integer' AND {0}.endNs >= {0}.startNs"


def is_timed(table: str) -> str:
    """Return, as SQL, whether a row of the table has begin and end, in their order."""
    return _IS_TIMED.format(table)


def tell_untimed(database: Database, table: str, part: Part, remark: Remark) -> None:
    """Remark how many rows of a table are left out because they have no time."""
    n_bad, _ = database.once(_TIMES[table])
    if n_bad:
        remark(left_out(n_bad, part, "no_time"))


def last_task_ns(database: Database) -> int:
    """Return when the last task ended, ns; 0 for none."""
    return max(0, database.once(_task_times)[1])


def _task_times(database: Database) -> tuple[int, int]:
    return _times(database, TASK)


def _operator_times(database: Database) -> tuple[int, int]:
    return _times(database, OPERATOR)


_TIMES = {TASK: _task_times, OPERATOR: _operator_times}


def _times(database: Database, table: str) -> tuple[int, int]:
    """Return how many rows have no time, and when the last one ended, ns."""
    ((n_rows, n_timed, last_ns),) = database.rows(
        f"SELECT COUNT(*), TOTAL({is_timed(table)}), MAX(CASE typeof(endNs) WHEN 'integer' THEN endNs END) "  # noqa: S608
        f"FROM {table}"
    )
    return n_rows - int(n_timed), last_ns or 0


class Kernels(Struct, frozen=True):
    """The tasks that are kernels and have both times, in columns of equal length.

    Attributes:
        spans: begin and end, ns (n, 2).
        tasks: their rows among the tasks (n,).
        rows: their rows among the kernels (n,).
    """

    spans: Spans
    tasks: npt.NDArray[np.intp]
    rows: npt.NDArray[np.intp]


def kernels(database: Database) -> Kernels:
    """Return the kernels."""
    cells = map(whole_numbers, database.cells(TASK, "startNs", "endNs", "globalTaskId"))
    (begins, are_begins), (ends, are_ends), (ids, are_ids) = cells
    known, is_known = whole_numbers(database.cells(KERNEL, "globalTaskId")[0])
    tasks, rows = np.flatnonzero(are_begins & are_ends & are_ids & (ends >= begins)), np.flatnonzero(is_known)
    left, right = pairs(ids[tasks], known[rows])
    tasks, rows = tasks[left], rows[right]
    return Kernels(np.stack([begins[tasks], ends[tasks]], axis=1), tasks, rows)


def kernel_sums(database: Database) -> pa.Table:
    """Return the kernels by their texts: opType … opState as text, n, and ns in all, at least and at most.

    A text is null where the texts lack it; a column that the kernels lack is missing.
    """
    names = [name for name in _OF_KERNELS if database.has(KERNEL, name)]
    keys, places = ", ".join(f"k.{name}" for name in names), ", ".join(map(str, range(1, len(names) + 1)))
    spent = f"{TASK}.endNs - {TASK}.startNs"
    rows = database.rows(
        f"SELECT {keys}, COUNT(*), SUM({spent}), MIN({spent}), MAX({spent}) "  # noqa: S608 - fixed names
        f"FROM {TASK} JOIN {KERNEL} AS k ON k.globalTaskId = {TASK}.globalTaskId "
        f"WHERE {is_timed(TASK)} AND typeof({TASK}.globalTaskId) = 'integer' "
        f"AND typeof(k.globalTaskId) = 'integer' GROUP BY {places}"
    )
    figures = [row[len(names) :] for row in rows]
    are_whole = all(type(one) is int for own in figures for one in own)
    if not are_whole or sum(own[1] for own in figures) > _MOST_NS:
        # Times of a damaged file; sums of them would be any number.
        raise BadFileError(fact("not_database", detail="integer overflow"))
    ids = [one if type(one) is int else None for row in rows for one in row[: len(names)]]
    texts = texts_of(database, pa.array(ids, pa.int64())).to_pylist()
    # Two numbers may stand for one text.
    sums: dict[tuple[str | None, ...], tuple[int, int, int, int]] = {}
    for at, own in enumerate(figures):
        key = tuple(texts[at * len(names) : (at + 1) * len(names)])
        n, total, least, most = sums.get(key, (0, 0, own[2], own[3]))
        sums[key] = n + own[0], total + own[1], min(least, own[2]), max(most, own[3])
    columns: dict[str, pa.Array] = {
        name: pa.array([key[at] for key in sums], pa.string()) for at, name in enumerate(names)
    }
    for at, name in enumerate(("n", "all_ns", "min_ns", "max_ns")):
        columns[name] = pa.array([own[at] for own in sums.values()], pa.int64())
    return pa.table(columns)


def texts_of(database: Database, ids: pa.Array) -> pa.Array:
    """Return the texts that ids stand for, null for those that are none."""
    known, texts = database.once(strings)
    if not len(known):
        return pa.nulls(len(ids), pa.string())
    at, is_known = positions_in(known, pc.fill_null(ids, 0).to_numpy())
    is_known &= ids.is_valid().to_numpy(zero_copy_only=False)
    return texts.take(pa.array(at, mask=~is_known))


def positions_in(known: _Ints, ids: _Ints) -> tuple[_Ints, npt.NDArray[np.bool_]]:
    """Return the places of ids (N,) among known ones (ascending, at least one), and which are known (N,)."""
    last = len(known) - 1
    if known[-1] - known[0] == last:
        # They count up.
        at = np.clip(ids, known[0], known[-1]) - known[0]
    else:
        at = np.minimum(np.searchsorted(known, ids), last)
    return at, known[at] == ids


def strings(database: Database) -> tuple[_Ints, pa.Array]:
    """Return the ids of the texts, ascending, and the texts."""
    ids, values = database.cells(_STRINGS, "id", "value")
    known, is_id = whole_numbers(ids)
    if isinstance(values, list) or not pa.types.is_string(values.type):
        values = pa.array([None if value is None else str(value) for value in as_list(values)], pa.string())
    if is_id.all() and bool(np.all(known[1:] > known[:-1])):
        return known, values
    rows = np.flatnonzero(is_id)
    rows = rows[np.argsort(known[rows], kind="stable")]
    return known[rows], values.take(pa.array(rows))


def pairs(left: _Ints, right: _Ints) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the places of all pairs of equal numbers, in the order of `left`."""
    if not len(left) or not len(right):
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    least, most = int(right.min()), int(right.max())
    if most - least < _DENSE * len(right):
        # The usual case: ids that count up, each once.
        places = np.full(most - least + 1, -1, np.intp)
        places[right - least] = np.arange(len(right))
        if np.count_nonzero(places >= 0) == len(right):
            near = np.flatnonzero((left >= least) & (left <= most))
            at = places[left[near] - least]
            return near[at >= 0], at[at >= 0]
    order = np.argsort(right, kind="stable")
    ordered = right[order]
    begin = np.searchsorted(ordered, left, "left")
    n_found = np.searchsorted(ordered, left, "right") - begin
    at_left = np.repeat(np.arange(len(left)), n_found)
    # Places count up within each run of equal numbers.
    at_right = np.arange(len(at_left)) + np.repeat(begin - np.cumsum(n_found) + n_found, n_found)
    return at_left, order[at_right]
