"""step_trace_raw_{id}_detail_time.csv of MindSpore r1.x to 2.3: device ticks of 10 ns.

The first columns are fixed: step_num, start_point, end_point, total, fp_point, bp_point,
iteration_interval, fp_and_bp, tail (inference: no bp_point and tail, and `fp` for `fp_and_bp`). Then
three columns a communication operator `X`: the duration `X`, `X_start_point`, `X_end_point`, in either
order: the name is the key. An operator that did not run in a step has zeros there.

The last row, `-`, is meant to be the mean over all steps but the first (since 2.0: over all); with one
step the old writer wrote zeros. It is recomputed and compared, never used as a step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import names, numbers
from cluster_analysis.sources.errors import BadFileError, Remark, tell_left_out
from cluster_analysis.sources.measured import without_repeated
from cluster_analysis.sources.text.csv_text import REPEAT_MARK, read_all_columns
from cluster_analysis.sources.text.json_text import read_bytes
from cluster_analysis.tables import schema
from cluster_run.facts import fact

AVERAGE_ROW = "-"
_START, _END = "_start_point", "_end_point"
#: How far the stated and the recomputed mean may lie apart: the writer rounds to whole ticks.
_TOLERANCE_US = 0.02


def read_r1_step_trace(path: Path, rank: int, remark: Remark, note: Remark) -> tuple[pa.Table, pa.Table]:
    """Return the iterations (ITERATIONS) and the communication operators (COLLECTIVES) of one file."""
    text = _read_text(path, remark)
    if not {"step_num", "total", "iteration_interval"} <= set(text.column_names):
        raise BadFileError(fact("header_not_step_trace"))
    if text.num_rows == 0:
        raise BadFileError(fact("no_step_in_it"))
    iterations = _iterations(text, rank, remark)
    is_step = pc.is_valid(iterations["step"])
    _compare_with_average(iterations, note)
    collectives = _collectives(text.filter(is_step), rank, iterations.filter(is_step))
    once = without_repeated(iterations, remark)
    is_once = pc.is_in(collectives["step"], value_set=once["step"].combine_chunks().drop_null())
    return _with_true_totals(once, remark), collectives.filter(is_once)


def _read_text(path: Path, remark: Remark) -> pa.Table:
    """Return the lines as text. A last one without its end is taken where its parts still add up.

    Only if it ends with one of these parts: a column behind them may have been cut.
    """
    text = read_all_columns(path, remark, keep_last=True)
    if read_bytes(path).endswith((b"\n", b"\r")):
        return text
    row = text.slice(text.num_rows - 1).to_pylist()[0] if text.num_rows else {}
    cells = [row.get(name) or "" for name in ("total", "iteration_interval", "fp_and_bp", "tail")]
    is_whole = text.column_names[-1] == "tail" and all(cell.strip().isdecimal() for cell in cells)
    if is_whole and abs(int(cells[0]) - sum(map(int, cells[1:]))) <= _TOLERANCE_US * numbers.TICKS_PER_US:
        return text
    return read_all_columns(path, remark)


def _iterations(text: pa.Table, rank: int, remark: Remark) -> pa.Table:
    cells = pc.utf8_trim_whitespace(text["step_num"].combine_chunks())
    steps, _ = numbers.to_int64(pc.if_else(pc.equal(cells, AVERAGE_ROW), None, cells))
    # The old writer's average of a single step: a row of zeros whose number is 0, too.
    steps = pc.if_else(pc.equal(steps, 0), None, steps)
    forward = "fp_and_bp" if "fp_and_bp" in text.column_names else "fp"
    columns = {"step": steps}
    for name, column in (
        ("total_us", "total"),
        ("interval_us", "iteration_interval"),
        ("forward_backward_us", forward),
        ("tail_us", "tail"),
    ):
        if column not in text.column_names:
            # An inference step ends with its forward pass.
            columns[name] = np.zeros(text.num_rows)
            continue
        ticks, n_bad = numbers.to_float64(text[column])
        columns[name] = pc.divide(ticks, numbers.TICKS_PER_US)
        tell_left_out(remark, n_bad, "cell", "no_number_in_column", column=column)
    return schema.rows(schema.ITERATIONS, rank, **columns)


def _with_true_totals(iterations: pa.Table, remark: Remark) -> pa.Table:
    """Leave out steps whose parts do not add up to their total: something in that line is damaged."""
    parts = pc.add(
        pc.add(iterations["interval_us"], iterations["forward_backward_us"]), iterations["tail_us"]
    )
    off = pc.greater(pc.abs(pc.subtract(iterations["total_us"], parts)), _TOLERANCE_US)
    is_step = pc.is_valid(iterations["step"])
    damaged = pc.and_(pc.fill_null(off, True), is_step)
    n_damaged = pc.sum(damaged).as_py() or 0
    tell_left_out(remark, n_damaged, "step", "contradicts_itself")
    return iterations.filter(pc.invert(damaged))


def _compare_with_average(iterations: pa.Table, note: Remark) -> None:
    stated = iterations.filter(pc.is_null(iterations["step"]))
    steps = iterations.filter(pc.is_valid(iterations["step"]))
    if stated.num_rows == 0 or steps.num_rows == 0 or not pc.max(stated["total_us"]).as_py():
        return
    columns = ("interval_us", "forward_backward_us", "tail_us")
    said = [stated[name][0].as_py() for name in columns]
    if None in said:
        return
    without_first = (
        [pc.mean(steps.slice(1)[name]).as_py() for name in columns] if steps.num_rows > 1 else said
    )
    with_first = [pc.mean(steps[name]).as_py() for name in columns]
    if any(_close(said, means) for means in (without_first, with_first)):
        return
    seen = tuple(_ms(without_first))
    note(fact("average_row_differs", said_ms=tuple(_ms(said)), n_steps=steps.num_rows, seen_ms=seen))


def _close(left: list[float], right: list[float | None]) -> bool:
    return all(b is not None and abs(a - b) <= _TOLERANCE_US for a, b in zip(left, right, strict=True))


def _ms(values: list[float] | list[float | None]) -> list[float | None]:
    return [None if value is None else value / numbers.US_PER_MS for value in values]


def _collectives(text: pa.Table, rank: int, iterations: pa.Table) -> pa.Table:
    there = frozenset(text.column_names)
    found = []
    for name in text.column_names:
        base, mark, copy = name.partition(REPEAT_MARK)
        operator = base.removesuffix(_START)
        its = (name, operator + _END + mark + copy, operator + mark + copy)
        if base.endswith(_START) and there.issuperset(its):
            found.append((operator, *its))
    if not found:
        return schema.COLLECTIVES.empty_table()
    operators, starts, ends, durations = zip(*found, strict=True)
    # A file has thousands of columns: their cells are read as those of one.
    start, _ = numbers.to_int64(_cells(text, starts))
    end, _ = numbers.to_int64(_cells(text, ends))
    ticks, _ = numbers.to_float64(_cells(text, durations))
    ran = pc.and_(pc.and_(pc.greater(start, 0), pc.greater(end, 0)), pc.greater(ticks, 0))
    steps = pa.chunked_array(iterations["step"].chunks * len(found), iterations["step"].type)
    of_rows = pa.array([one for one in operators for _ in range(text.num_rows)], pa.string())
    rows = pa.table({"step": steps, "start": start, "ticks": ticks, "name": of_rows})
    return _as_collectives(rows.filter(pc.fill_null(ran, False)).combine_chunks(), rank)


def _cells(text: pa.Table, columns: Iterable[str]) -> pa.ChunkedArray:
    return pa.chunked_array([cells for name in columns for cells in text[name].chunks], pa.string())


def _as_collectives(rows: pa.Table, rank: int) -> pa.Table:
    keys = rows["name"].combine_chunks() if rows.num_rows else pa.array([], pa.string())
    groups, op_names = graph_groups(keys)
    return schema.rows(
        schema.COLLECTIVES,
        rank,
        step=rows["step"],
        group=groups,
        **names.columns(op_names),
        op_index=pa.repeat(pa.scalar(-1, pa.int32()), rows.num_rows),
        start_ns=pc.multiply(rows["start"], numbers.NS_PER_TICK),
        elapse_us=pc.divide(rows["ticks"], numbers.TICKS_PER_US),
    )


_STREAM = re.compile(r"^stream_\d+_(?:\d+_)?")


def graph_groups(keys: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return group and operator name for r1.x keys such as `stream_48_0_Receive-op663`.

    r1.x names no group. Ranks that run the same graph give one operator the same name, so the operator
    itself stands for its group; a point-to-point operator says nothing of its peer and has no group.
    """
    op_names = [_STREAM.sub("", key) for key in keys.to_pylist()]
    array = pa.array(op_names, pa.string())
    alone = names.point_to_point(names.operations(array))
    named = pc.binary_join_element_wise(pa.scalar(schema.OPERATOR_GROUP_PREFIX), array, "")
    groups = pc.if_else(pc.or_(alone, pc.equal(array, "")), pa.scalar(""), named)
    return pc.dictionary_encode(groups).cast(schema.COLLECTIVES.field("group").type), array
