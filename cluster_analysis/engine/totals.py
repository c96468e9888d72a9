"""Sums over the operators of a group, made while a batch of ranks is in memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.numeric.arrays import IntArray
from cluster_analysis.numeric.sorting import combined, distinct, first_positions
from cluster_analysis.tables.schema import HOST_SUMS, STEP_CALLS, TOTALS, rows_of, with_columns

_KEYS = ("rank", "step", "group")
#: Stands for a step that is not known; no step has such a number.
_UNKNOWN = -1


def totals_of(collectives: pa.Table, reported: pa.Table) -> pa.Table:
    """Return TOTALS of COLLECTIVES rows.

    Args:
        collectives: the rows.
        reported: HOST_SUMS of the ranks whose hosts summed values that are not in the rows.
    """
    if not collectives.num_rows:
        return TOTALS.empty_table()
    table = collectives.unify_dictionaries().combine_chunks()
    n_sums, number = _numbered(table)
    number = number.astype(np.intp)  # once, and not for each column
    first = first_positions(number)
    # As they come first, so that the order of ranks and groups stays that of the rows.
    order = np.argsort(first)
    keys = [table[name].take(pa.array(first[order])) for name in _KEYS]
    sums = [_summed(table[name], number, n_sums, order) for name in TOTALS.names[len(_KEYS) :]]
    return _with_reported(pa.Table.from_arrays([*keys, *sums], schema=TOTALS), reported)


def step_calls(collectives: pa.Table) -> pa.Table:
    """Return STEP_CALLS of COLLECTIVES rows."""
    lasted_ns = pc.cast(pc.round(pc.multiply(collectives["elapse_us"], 1000.0)), pa.int64())
    ends = collectives.select(["rank", "step", "start_ns"]).append_column(
        "end_ns", pc.add(collectives["start_ns"], lasted_ns)
    )
    sums = [("start_ns", "min"), ("end_ns", "max"), ("end_ns", "count")]
    found = ends.group_by(["rank", "step"]).aggregate(sums)
    return found.select(["rank", "step", *("_".join(one) for one in sums)]).rename_columns(STEP_CALLS.names)


def _numbered(table: pa.Table) -> tuple[int, IntArray]:
    """Return how many ranks, steps and groups go together, and the number of those of each row (N,)."""
    group = table["group"].chunk(0).indices
    return combined(
        distinct(table["rank"].to_numpy())[1],
        distinct(table["step"].fill_null(_UNKNOWN).to_numpy())[1],
        group.fill_null(_UNKNOWN).to_numpy() + 1,
    )


def _summed(column: pa.ChunkedArray, number: IntArray, n_sums: int, order: IntArray) -> pa.Array:
    """Return the sums of the known values by `number`, null where none is known."""
    if column.null_count == len(column):
        return pa.nulls(n_sums, pa.float64())
    # Row after row: the order of a sum decides its last digit.
    if not column.null_count:
        return pa.array(np.bincount(number, column.chunk(0).to_numpy(), n_sums)[order])
    sums = np.bincount(number, column.fill_null(0.0).to_numpy(), n_sums)[order]
    n_known = np.bincount(number, column.is_valid().to_numpy(), n_sums)[order]
    return pa.array(sums, mask=n_known == 0)


def _with_reported(totals: pa.Table, reported: pa.Table) -> pa.Table:
    if not reported.num_rows:
        return totals
    places = {key: place for place, key in enumerate(rows_of(reported, *_KEYS))}
    rows = pa.array(map(places.get, rows_of(totals, *_KEYS)), pa.int64())
    is_reported = rows.is_valid()
    for name in HOST_SUMS.names[len(_KEYS) :]:
        values = pc.if_else(is_reported, reported[name].combine_chunks().take(rows), totals[name])
        totals = with_columns(totals, **{name: values})
    return totals
