"""Columns of a database as Arrow arrays: SQLite puts any type into any cell, so each is looked at.

Cells of another type become null and are counted; they are never taken for 0.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import numbers
from cluster_analysis.sources.db.cells import Cells, as_list, decoded, is_coded
from cluster_analysis.sources.errors import Remark, left_out


def is_number(value: object) -> bool:
    """Return whether a cell holds a finite number."""
    return isinstance(value, (int, float)) and math.isfinite(value)


def steps(values: Cells, remark: Remark) -> pa.Array:
    """Return step numbers, 0 where the cell names none; null for what is no step."""
    found = plain_steps(values)
    if found.null_count:
        remark(left_out(found.null_count, "row", "no_step_number"))
    return found


def plain_steps(values: Cells) -> pa.Array:
    """Return step numbers, 0 where the cell names none; null for what is no step."""
    if isinstance(values, list):
        known = {value: _step(value) for value in set(values)}
        return pa.array([known[value] for value in values], pa.int64())
    encoded = values if is_coded(values) else pc.dictionary_encode(values, null_encoding="encode")
    found = pa.array([*map(_step, encoded.dictionary.to_pylist()), 0], pa.int64())
    return found.take(pc.fill_null(encoded.indices, len(encoded.dictionary)))


def _step(value: object) -> int | None:
    return 0 if value is None else numbers.parse_step(str(value))


def with_step(table: pa.Table) -> pa.Table:
    """Return the rows whose step is known."""
    return table.filter(pc.is_valid(table["step"])) if table["step"].null_count else table


def are_plain(values: Cells) -> bool:
    """Return whether every cell holds a finite float: the usual case of a column asked for as floats."""
    return (
        not isinstance(values, list)
        and pa.types.is_float64(values.type)
        and not values.null_count
        and bool(np.isfinite(values.to_numpy()).all())
    )


def floats(values: Cells, remark: Remark, *, are_needed: bool = False) -> pa.Array:
    """Return numbers as float64; text and infinities become null and are counted, empty cells if needed."""
    if are_plain(values):
        return values
    cells = as_list(values)
    numeric = [float(value) if is_number(value) else None for value in cells]
    n_bad = numeric.count(None) - (0 if are_needed else cells.count(None))
    if n_bad:
        remark(left_out(n_bad, "value", "no_number"))
    return pa.array(numeric, pa.float64())


def texts(values: Cells, empty: str | None = "") -> pa.Array:
    """Return texts, `empty` for an empty cell."""
    values = decoded(values)
    if isinstance(values, list) or not pa.types.is_string(values.type):
        values = pa.array([None if value is None else str(value) for value in as_list(values)], pa.string())
    return pc.fill_null(values, empty) if values.null_count and empty is not None else values


def coded_texts(values: Cells, empty: str | None = "") -> pa.DictionaryArray:
    """Return the same as a dictionary, in the order in which its texts come first."""
    is_plain = is_coded(values) and not (values.null_count and empty is not None)
    return values if is_plain else numbers.encoded(texts(values, empty))


def link_ends(values: Cells, remark: Remark) -> pa.Array:
    """Return ranks in their group; null for what no job has."""
    encoded = coded_texts(values, None)
    known = pa.array([numbers.local_rank(text) for text in encoded.dictionary.to_pylist()], pa.int32())
    ranks = known.take(encoded.indices)
    n_bad = ranks.null_count - encoded.null_count
    if n_bad:
        remark(left_out(n_bad, "link_end", "no_rank"))
    return ranks
