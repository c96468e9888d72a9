"""Checks that measured values are there, once, and not below 0; else the file is damaged and reported.

A rank has one device and counts its steps up, so a table that repeats a step holds several devices, or
several sessions. Nothing says which of the rows is this rank's, and both together would be a wrong number.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.numeric.arrays import BoolArray
from cluster_analysis.sources.errors import Remark, tell_left_out, unheard
from cluster_analysis.tables.schema import TRANSPORT_COLUMNS, rows_of, with_columns
from cluster_run.facts import fact


class Identity(NamedTuple):
    """Two sums of columns of a row that say one thing; or the first is a time within the second.

    Some writers mean something else `by_habit`: then most rows of a rank differ, and none is damaged.
    """

    said: tuple[str, ...]
    again: tuple[str, ...]
    is_within: bool = False
    by_habit: bool = False


#: Measured columns of each table. Differences may be below 0: free, idle and stage time, overlap, and the
#: rest without receiving.
MEASURED_STEPS = ("computing_us", "communication_us", "communication_not_overlapped_us", "bubble_us")
MEASURED_LINKS = ("size_bytes", "time_us")
MEASURED_COLLECTIVES = ("elapse_us", "transit_us", "wait_us", "synchronization_us", *TRANSPORT_COLUMNS)
#: Columns without which rows are not judged.
_NEEDED: Mapping[Literal["operators", "links"], tuple[str, ...]] = {
    "operators": ("start_ns", "elapse_us"),
    "links": MEASURED_LINKS,
}
_DEVICE_TIME = ("computing_us", "communication_not_overlapped_us", "free_us")
_STAGE = ("stage_us", "bubble_us")
#: What each row of a table says twice; this holds on all real captures. MindSpore takes the stage from
#: communication alone, so that it lies within the device's time. r1.x takes exposed communication from
#: the step for computing, and exposed receives for the stage. Of operators hosts send the elapsed time alone.
OF_STEPS = (
    Identity(("communication_us",), ("communication_not_overlapped_us", "overlapped_us")),
    Identity(("overlapped_us",), ("computing_us",), is_within=True),
    Identity(_STAGE, _DEVICE_TIME, is_within=True),
)
OF_TORCH_STEPS = (*OF_STEPS[:2], Identity(_STAGE, _DEVICE_TIME))
OF_R1_STEPS = (Identity(_DEVICE_TIME[:2], _STAGE),)
OF_OPERATORS = (Identity(("elapse_us",), ("transit_us", "wait_us", "idle_us"), by_habit=True),)
#: A nanosecond; sums of floats may miss 0 by less.
_TOLERANCE = 1e-3
#: How many times one may be the other, and operators may run: one that ends behind its step counts whole.
_AT_ODDS, _BEYOND = 2.0, 1.25
#: How many times kernels may take what steps computed.
_MANY = 10
#: A spreadsheet may keep six digits.
_ROUNDED = 1e-3
#: The µs from 1970 to 2001: no time is as long, and no size as large.
_IN_2001_US = 1e15


def without_impossible(table: pa.Table, columns: tuple[str, ...], remark: Remark) -> pa.Table:
    """Return the table with null where one of `columns` is below 0 or beyond all; that is remarked."""
    n_bad = 0
    for name in columns:
        # With NumPy, because nearly all tables are small and have none.
        given = table[name].to_numpy()
        is_bad = (given < -_TOLERANCE) | (given > _IN_2001_US)
        if is_bad.any():
            n_bad += int(is_bad.sum())
            table = with_columns(table, **{name: pc.if_else(pa.array(is_bad), None, table[name])})
    tell_left_out(remark, n_bad, "value", "impossible")
    return table


def without_unknown_begin(steps: pa.Table) -> pa.Table:
    """Return STEPS with null where preparing is a point in time: counted from 1970, or till then.

    Profilers write it where they know no begin of a step, or no work in it. It is what they do, no damage.
    """
    preparing = steps["preparing_us"]
    is_duration = np.abs(preparing.to_numpy()) < _IN_2001_US
    if is_duration.all() or not pc.any(preparing.is_valid()).as_py():
        return steps
    return with_columns(steps, preparing_us=pc.if_else(pa.array(is_duration), preparing, None))


def checked(table: pa.Table, rows: Literal["operators", "links"], remark: Remark) -> pa.Table:
    """Return rows of a text, or of its columns; those that lack something needed are remarked, too."""
    needed = _NEEDED[rows]
    if any(table[name].null_count for name in needed):
        missing = functools.reduce(pc.or_, (pc.is_null(table[name]) for name in needed))
        remark(fact("rows_lack", n_lacking=pc.sum(missing).as_py(), n_rows=table.num_rows, rows=rows))
    return sound_operators(table, remark) if rows == "operators" else sound_links(table, remark)


def tell_no_columns(lacking: Collection[str], remark: Remark) -> None:
    """Tell `remark` which columns, by their names in the file, it lacks of those that are judged."""
    if lacking:
        remark(fact("no_column", columns=tuple(sorted(lacking))))


def without_empty_steps(table: pa.Table, remark: Remark) -> pa.Table:
    """Return the rows of `table` (STEPS) in which the device computed: of others tasks were not recorded."""
    is_empty = table["computing_us"].to_numpy() == 0.0
    if not is_empty.any():
        return table
    tell_left_out(remark, int(is_empty.sum()), "row", "nothing_computed")
    return table.filter(pa.array(~is_empty))


def sound_steps(table: pa.Table, remark: Remark, identities: Sequence[Identity]) -> pa.Table:
    """Return the rows of `table` (STEPS) that were measured and do not contradict themselves.

    What cannot be is null.
    """
    table = without_empty_steps(without_impossible(table, MEASURED_STEPS, remark), remark)
    is_odd = _contradicts(table, identities)
    tell_left_out(remark, int(is_odd.sum()), "step", "contradicts_itself")
    return table.filter(pa.array(~is_odd)) if is_odd.any() else table


def sound_links(table: pa.Table, remark: Remark) -> pa.Table:
    """Return LINKS, null for what cannot be: a size without a time, too; transports may lack a name."""
    table = without_impossible(table, MEASURED_LINKS, remark)
    has_size, has_time = (table[name].to_numpy() > 0.0 for name in MEASURED_LINKS)
    is_known = pc.and_(*(table[name].is_valid() for name in MEASURED_LINKS)).to_numpy()
    is_odd = (has_size != has_time) & is_known
    tell_left_out(remark, int(is_odd.sum()), "link", "size_or_time_alone")
    transports = pc.fill_null(pc.cast(table["transport"], pa.string()), "")
    is_nameless = pc.equal(transports, "").to_numpy() & is_known & ~is_odd
    tell_left_out(remark, int(is_nameless.sum()), "link", "no_transport")
    return without_values(table, is_odd, MEASURED_LINKS)


def sound_operators(table: pa.Table, remark: Remark) -> pa.Table:
    """Return COLLECTIVES, null for what cannot be, and for times that are not their parts together."""
    table = without_impossible(table, MEASURED_COLLECTIVES, remark)
    is_odd = _contradicts(table, OF_OPERATORS)
    tell_left_out(remark, int(is_odd.sum()), "duration", "contradicts_itself")
    return without_values(table, is_odd, ("elapse_us", "transit_us", "wait_us", "idle_us"))


def without_values(table: pa.Table, is_odd: BoolArray, columns: Sequence[str]) -> pa.Table:
    """Return the table with null in `columns` of some rows (N,)."""
    if not is_odd.any():
        return table
    return with_columns(table, **{name: pc.if_else(pa.array(is_odd), None, table[name]) for name in columns})


def _contradicts(table: pa.Table, identities: Sequence[Identity]) -> BoolArray:
    """Return which rows (N,) say two things of one quantity; none does where one of them is unknown."""
    is_odd = np.zeros(table.num_rows, bool)
    for said, again, is_within, by_habit in identities:
        first, second = (sum(table[name].to_numpy() for name in names) for names in (said, again))
        beyond = first - second if is_within else np.abs(first - second)
        differs: BoolArray = beyond > np.maximum(_ROUNDED * np.abs(first), 1.0)
        if by_habit and differs.any():
            _, rank_of = np.unique(table["rank"].to_numpy(), return_inverse=True)
            differs &= (np.bincount(rank_of, differs) <= np.bincount(rank_of) / 2)[rank_of]
        is_odd |= differs
    return is_odd


def of_own_device(steps: pa.Table, remark: Remark) -> pa.Table:
    """Return STEPS with one row for each rank and step: that of the device which communicates.

    A process may touch other devices than its own. Where several communicate, or none, it is
    unknown whose the operators in the other files are.
    """
    rows = list(rows_of(steps, "rank", "step"))
    counts = Counter(rows)
    if len(counts) == len(rows):
        return steps
    communicates = pc.fill_null(pc.greater(steps["communication_us"], 0.0), False).to_pylist()
    is_own = [does or counts[row] == 1 for row, does in zip(rows, communicates, strict=True)]
    own = steps.filter(pa.array(is_own))
    if Counter(rows_of(own, "rank", "step")) == dict.fromkeys(counts, 1):
        return own
    n_different = len({tuple(row.values()) for row in steps.to_pylist()})
    if n_different < len(rows):  # a file that was copied behind itself
        return without_repeated(steps, remark)
    remark(fact("rows_of_one_step", n_rows=max(counts.values())))
    return without_repeated(steps, unheard)


def without_steps_at_odds(steps: pa.Table, operators: Sequence[pa.Table], remark: Remark) -> pa.Table:
    """Return STEPS without those whose COLLECTIVES are of another unit, or of another run.

    A step communicates as long as one of its operators runs: on real captures both files agree to 1 %. Where
    operators take far less, their records may be lost; but not in each step.
    """
    known: dict[tuple[int, int], tuple[float, float]] = {}
    for table in operators:
        known.update(_running_us(table))
    times = [
        (rank, time_us, *known.get((rank, step), (0.0, 0.0)))
        for rank, step, time_us in rows_of(steps, "rank", "step", "communication_us")
    ]
    n_known = Counter(rank for rank, time_us, total, _ in times if time_us and total)
    n_lack = Counter(rank for rank, time_us, total, _ in times if (time_us or 0.0) > _AT_ODDS * total > 0.0)
    is_odd = [
        time_us is not None
        and bool(running > _BEYOND * time_us or (time_us and total and n_lack[rank] == n_known[rank]))
        for rank, time_us, total, running in times
    ]
    if not any(is_odd):
        return steps
    tell_left_out(remark, sum(is_odd), "step", "operators_differ")
    return steps.filter(pc.invert(pa.array(is_odd)))


def _running_us(operators: pa.Table) -> dict[tuple[int, int], tuple[float, float]]:
    """Return by rank and step of COLLECTIVES what operators took together, and how long any of them ran."""
    names = ("rank", "step", "start_ns")
    table = operators.select([*names, "elapse_us"]).filter(operators["elapse_us"].is_valid())
    table = table.sort_by([(name, "ascending") for name in names])
    ranks, steps, starts = (table[name].fill_null(-1).to_numpy() for name in names)
    elapse = table["elapse_us"].to_numpy()
    found = {}
    begins = np.flatnonzero(np.diff(ranks, prepend=-1) | np.diff(steps, prepend=-2))
    for begin, end in pairwise([*begins.tolist(), len(ranks)]):
        start = (starts[begin:end] - starts[begin]) / 1e3
        ends = np.maximum.accumulate(start + elapse[begin:end])
        running = np.minimum(elapse[begin:end], np.diff(ends, prepend=start[0]))
        found[int(ranks[begin]), int(steps[begin])] = float(elapse[begin:end].sum()), float(running.sum())
    return found


def without_kernels_at_odds(kernels: pa.Table, steps: Sequence[pa.Table], remark: Remark) -> pa.Table:
    """Return OPERATORS without those of ranks whose kernels took many times what their STEPS computed.

    Kernels run side by side at most a few at once, and captures may hold more than their whole steps.
    """
    computed: Counter[int] = Counter()
    for table in steps:
        computed.update(_sums(table, "computing_us"))
    at_odds = [
        rank for rank, total in _sums(kernels, "total_us").items() if total > _MANY * computed[rank] > 0
    ]
    is_odd = np.isin(kernels["rank"].to_numpy(), at_odds)
    tell_left_out(remark, int(is_odd.sum()), "row", "kernels_differ")
    return kernels.filter(pa.array(~is_odd)) if at_odds else kernels


def _sums(table: pa.Table, column: str) -> dict[int, float]:
    sums = table.group_by("rank", use_threads=False).aggregate([(column, "sum")])
    return {rank: total or 0.0 for rank, total in rows_of(sums, "rank", f"{column}_sum")}


def without_repeated(
    table: pa.Table,
    remark: Remark,
    names: Sequence[str] = ("rank", "step"),
    reason: str = "step_repeated",
) -> pa.Table:
    """Return the rows of `table` that no other row has the names of; rows without the second one stay."""
    rows = list(rows_of(table, *names))
    counts = Counter(rows)
    is_repeated = [row[1] is not None and counts[row] > 1 for row in rows]
    if not any(is_repeated):
        return table
    tell_left_out(remark, sum(is_repeated), "row", reason)
    return table.filter(pc.invert(pa.array(is_repeated)))
