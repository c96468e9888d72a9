"""Columns of a database as Arrow arrays: SQLite puts any type into any cell, so each is looked at.

What is not of its type becomes null and is counted; it is never taken for 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import numbers
from cluster_analysis.sources.errors import Remark, left_out


def is_number(value: object) -> bool:
    """Return whether a cell holds a finite number."""
    return isinstance(value, (int, float)) and math.isfinite(value)


def steps(values: Sequence[Any], remark: Remark) -> pa.Array:
    """Return step numbers, 0 where the cell names none; null for what is no step."""
    step_of = {value: 0 if value is None else numbers.parse_step(str(value)) for value in set(values)}
    known = [step_of[value] for value in values]
    n_bad = sum(step is None for step in known)
    if n_bad:
        remark(left_out(n_bad, "row", "no_step_number"))
    return pa.array(known, pa.int64())


def with_step(table: pa.Table) -> pa.Table:
    """Return the rows whose step is known."""
    return table.filter(pc.is_valid(table["step"]))


def floats(values: Sequence[Any], remark: Remark, *, are_needed: bool = False) -> pa.Array:
    """Return numbers as float64; text and infinities become null and are counted, empty cells if needed."""
    plain = plain_floats(values)
    if plain is not None:
        return plain
    numeric = [
        float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None for value in values
    ]
    n_bad = numeric.count(None) - (0 if are_needed else list(values).count(None))
    if n_bad:
        remark(left_out(n_bad, "value", "no_number"))
    return pa.array(numeric, pa.float64())


def plain_floats(values: Sequence[Any]) -> pa.Array | None:
    """Return numbers as float64 where every cell holds a finite one: the usual case, in one call."""
    try:
        plain = pa.array(values, pa.float64())
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None
    return None if plain.null_count or not pc.all(pc.is_finite(plain)).as_py() else plain


def texts(values: Sequence[Any]) -> pa.Array:
    """Return texts, "" for an empty cell."""
    return pa.array(["" if value is None else str(value) for value in values], pa.string())


def link_ends(values: Sequence[Any], remark: Remark) -> pa.Array:
    """Return ranks in their group; null for what no job has."""
    ranks = [numbers.local_rank(value) for value in values]
    n_bad = ranks.count(None) - list(values).count(None)
    if n_bad:
        remark(left_out(n_bad, "link_end", "no_rank"))
    return pa.array(ranks, pa.int32())
