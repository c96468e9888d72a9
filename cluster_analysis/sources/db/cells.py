"""Cells of a database: SQLite puts any type into any cell, so a column has the type that its cells have.

A column whose cells are all whole numbers, floats or texts is an Arrow array of them, with nulls for empty
cells; any other mixture is a list, with each cell as Python's `sqlite3` gives it. Texts are a dictionary, in
the order in which they come first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_T = TypeVar("_T")
Cells: TypeAlias = "pa.Array | list[Any]"

_ARROW: dict[frozenset[type], pa.DataType] = {
    frozenset(): pa.null(),
    frozenset({int}): pa.int64(),
    frozenset({float}): pa.float64(),
    frozenset({str}): pa.string(),
}


def cells_of(values: Sequence[Any], *, are_floats: bool = False) -> Cells:
    """Return a column of values as `sqlite3` gives them; with `are_floats` whole numbers become floats."""
    kinds = set(map(type, values))
    if are_floats and int in kinds:
        values = [float(value) if type(value) is int else value for value in values]
        kinds = {float if kind is int else kind for kind in kinds}
    kind = _ARROW.get(frozenset(kinds - {type(None)}))
    if kind is None:
        return list(values)
    found = pa.array(values, kind)
    return found.dictionary_encode() if pa.types.is_string(kind) else found


def is_coded(cells: Cells) -> TypeGuard[pa.DictionaryArray]:
    """Return whether the cells are texts as a dictionary."""
    return not isinstance(cells, list) and pa.types.is_dictionary(cells.type)


def as_list(cells: Cells) -> list[Any]:
    """Return the cells one by one, None for an empty one."""
    if isinstance(cells, list):
        return cells
    if is_coded(cells):  # `to_pylist` would make each text anew
        return each(cells, lambda text: text)
    found: list[Any] = (
        cells.to_pylist() if cells.null_count else cells.to_numpy(zero_copy_only=False).tolist()
    )
    return found


def each(cells: Cells, make: Callable[[Any], _T]) -> list[_T]:
    """Return what is made of each cell, None for an empty one; of texts that are alike once."""
    if not is_coded(cells):
        return [make(value) for value in as_list(cells)]
    made = [make(value) for value in (*cells.dictionary.to_pylist(), None)]
    return [made[at] for at in pc.fill_null(cells.indices, -1).to_numpy().tolist()]


def chosen(cells: Cells, is_chosen: npt.NDArray[np.bool_]) -> Cells:
    """Return the cells of some rows; `is_chosen` (N,) says which."""
    if isinstance(cells, list):
        return [cell for cell, is_one in zip(cells, is_chosen.tolist(), strict=True) if is_one]
    return cells.filter(pa.array(is_chosen))


def decoded(cells: Cells) -> Cells:
    """Return texts of a dictionary one by one, and other cells as they are."""
    return cells.dictionary_decode() if is_coded(cells) else cells
