"""The tasks and kernels of a profiler database: which there are, and when each ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from cluster_analysis.sources.compiled.cells import Cells, as_list, whole_numbers
from cluster_analysis.sources.compiled.span_sums import summed, summed_spans, summed_tasks
from cluster_analysis.sources.db.sqlite import Database
from cluster_analysis.sources.errors import BadFileError, Part, Remark, left_out
from cluster_analysis.sources.host_times import Spans
from cluster_run.facts import fact

_Ints = npt.NDArray[np.int64]
TASK, KERNEL, OPERATOR = "TASK", "COMPUTE_TASK_INFO", "COMMUNICATION_OP"
_STRINGS = "STRING_IDS"
#: Ids fill at least one place in so many of those between the least and the largest.
_DENSE = 16
#: What is read of the tasks, where they have it; together, so that they are gone through once. The last two
#: say what the host did, which is asked only where its calls are.
_OF_TASKS = ("startNs", "endNs", "globalTaskId")
_OF_LAUNCHES = ("taskType", "connectionId")
_HOST_CALLS = ("CANN_API", "PYTORCH_API")
_OF_OPERATORS = ("opId", "opName", "groupName", "startNs", "relay", "retry")
_OF_KERNELS = ("globalTaskId", "opType", "taskType", "name", "inputShapes", "outputShapes", "opState")


class Times(Struct, frozen=True):
    """Begin and end of each row of a table, ns (N,), and which rows have both, in their order (N,).

    `are_whole` says whether all rows have both, in whichever order.
    """

    begin_ns: _Ints
    end_ns: _Ints
    is_timed: npt.NDArray[np.bool_]
    are_whole: bool

    def spans(self) -> Spans:
        """Return begin and end of the rows that have both, ns (n, 2)."""
        return np.stack([self.begin_ns[self.is_timed], self.end_ns[self.is_timed]], axis=1)


def task_times(database: Database) -> Times:
    """Return when each task ran."""
    has_calls = any(database.has(table) for table in _HOST_CALLS)
    return _times(database, TASK, (*_OF_TASKS, *_OF_LAUNCHES) if has_calls else _OF_TASKS)


def operator_times(database: Database) -> Times:
    """Return when each communication operator ran."""
    return _times(database, OPERATOR, ("startNs", "endNs"))


def read_operators(database: Database) -> None:
    """Read what several ask of the operators, so that they are gone through once."""
    database.cells(OPERATOR, *(name for name in _OF_OPERATORS if database.has(OPERATOR, name)))


def _times(database: Database, table: str, read_together: Sequence[str]) -> Times:
    database.cells(table, *(name for name in read_together if database.has(table, name)))
    (begin, is_begin), (end, is_end) = map(whole_numbers, database.cells(table, "startNs", "endNs"))
    are_both = is_begin & is_end
    return Times(begin, end, are_both & (end >= begin), bool(are_both.all()))


def tell_untimed(times: Times, part: Part, remark: Remark) -> None:
    """Remark how many rows are left out because they have no time."""
    n_bad = int(np.count_nonzero(~times.is_timed))
    if n_bad:
        remark(left_out(n_bad, part, "no_time"))


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
    times = database.once(task_times)
    names = [name for name in _OF_KERNELS if database.has(KERNEL, name)]
    database.cells(KERNEL, *names)
    ids, is_id = whole_numbers(database.cells(TASK, "globalTaskId")[0])
    known, is_known = whole_numbers(database.cells(KERNEL, "globalTaskId")[0])
    tasks, rows = np.flatnonzero(times.is_timed & is_id), np.flatnonzero(is_known)
    left, right = pairs(ids[tasks], known[rows])
    tasks, rows = tasks[left], rows[right]
    return Kernels(np.stack([times.begin_ns[tasks], times.end_ns[tasks]], axis=1), tasks, rows)


class KernelGroups(Struct, frozen=True):
    """Kernels with equal numbers for their texts: so many, and ns in all, at least and at most.

    Attributes:
        columns: the numbers for opType … opState of all kernels, by name; those that the kernels have.
        rows: the first kernel of each group (n,).
        sums: number, sum, minimum and maximum (n,) each.
    """

    columns: Mapping[str, Cells]
    rows: npt.NDArray[np.intp]
    sums: tuple[_Ints, _Ints, _Ints, _Ints]


def kernel_groups(database: Database) -> KernelGroups:
    """Return the kernels by what they are."""
    times = database.once(task_times)
    names = [name for name in _OF_KERNELS if database.has(KERNEL, name)]
    known, *cells = database.cells(KERNEL, *names)
    columns = dict(zip(names[1:], cells, strict=True))
    (ids, are_ids), (of, are_of) = map(whole_numbers, (database.cells(TASK, "globalTaskId")[0], known))
    found = None
    if times.are_whole and are_ids.all() and are_of.all():
        found = summed_tasks((times.begin_ns, times.end_ns, ids), of, cells)
    if found is None:
        kept = database.once(kernels)
        spans = kept.spans[:, 1] - kept.spans[:, 0]
        if (spans < 0).any() or spans.sum(dtype=np.float64) > np.iinfo(np.int64).max:
            # Times of a damaged file; sums of them would be any number.
            raise BadFileError(fact("not_database", detail="integer overflow"))
        first, sums = summed_spans(cells, kept.rows, kept.spans)
        return KernelGroups(columns, kept.rows[first], sums)
    return KernelGroups(columns, *found)


def kernel_sums(database: Database) -> pa.Table:
    """Return the kernels by their texts: opType … opState as text, n, and ns in all, at least and at most.

    A text is null where the texts lack it; a column that the kernels lack is missing.
    """
    found = database.once(kernel_groups)
    texts, sums = _texts_of(database, list(found.columns.values()), found.rows), found.sums
    # Two numbers may stand for one text.
    if len(set(zip(*(one.to_pylist() for one in texts), strict=True))) < len(found.rows):
        first, sums = summed(texts, sums)
        texts = [one.take(pa.array(first)) for one in texts]
    return pa.table(
        {
            **dict(zip(found.columns, texts, strict=True)),
            **dict(zip(("n", "all_ns", "min_ns", "max_ns"), sums, strict=True)),
        }
    )


def _texts_of(database: Database, columns: Sequence[Cells], rows: npt.NDArray[np.intp]) -> list[pa.Array]:
    """Return the texts that columns of the kernels stand for at some rows; all are looked up at once."""
    ids, are_ids = zip(*map(whole_numbers, columns), strict=True)
    wanted = np.concatenate([one[rows] for one in ids])
    is_id = np.concatenate([one[rows] for one in are_ids])
    texts = texts_of(database, pa.array(wanted, mask=None if is_id.all() else ~is_id))
    return [texts.slice(at * len(rows), len(rows)) for at in range(len(columns))]


def texts_of(database: Database, ids: pa.Array) -> pa.Array:
    """Return the texts that ids stand for, null for those that are none."""
    known, texts = database.once(strings)
    if not len(known):
        return pa.nulls(len(ids), pa.string())
    at, is_known = places_of(known, pc.fill_null(ids, 0).to_numpy())
    is_known &= ids.is_valid().to_numpy(zero_copy_only=False)
    return texts.take(pa.array(at, mask=~is_known))


def places_of(known: _Ints, ids: _Ints) -> tuple[_Ints, npt.NDArray[np.bool_]]:
    """Return where ids (N,) are among known ones, of which there are some, ascending; and which are (N,)."""
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
