"""Cells of a database: SQLite puts any type into any cell, so a column has the type that its cells have.

A column whose cells are all whole numbers, floats or texts is an Arrow array of them, with nulls for empty
cells; any other mixture is a list, with each cell as Python's `sqlite3` gives it. Texts are a dictionary
where one was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Cells: TypeAlias = "pa.Array | list[Any]"

#: Numbers below this are codes themselves; and how large products of codes may become.
_MOST_OWN, _MOST_CODES = 1 << 24, 1 << 60
#: Ranges up to this are counted with one place for each number.
_FEW_CODES = 1 << 16

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
    return list(values) if kind is None else pa.array(values, kind)


def coded(cells: Cells) -> Cells:
    """Return texts as a dictionary, and other cells as they are."""
    if isinstance(cells, list) or not pa.types.is_string(cells.type):
        return cells
    return cells.dictionary_encode()


def is_coded(cells: Cells) -> TypeGuard[pa.DictionaryArray]:
    """Return whether the cells are texts as a dictionary."""
    return not isinstance(cells, list) and pa.types.is_dictionary(cells.type)


def as_list(cells: Cells) -> list[Any]:
    """Return the cells one by one, None for an empty one."""
    found: list[Any] = cells if isinstance(cells, list) else cells.to_pylist()
    return found


def whole_numbers(cells: Cells) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return whole numbers (N,), 0 for a cell that holds something else, and which cells are one (N,)."""
    if isinstance(cells, list):
        is_whole = np.array([type(value) is int for value in cells], bool)
        return np.array([value if type(value) is int else 0 for value in cells], np.int64), is_whole
    if not pa.types.is_int64(cells.type):
        return np.zeros(len(cells), np.int64), np.zeros(len(cells), bool)
    if not cells.null_count:
        return cells.to_numpy(), np.ones(len(cells), bool)
    return pc.fill_null(cells, 0).to_numpy(), cells.is_valid().to_numpy(zero_copy_only=False)


def chosen(cells: Cells, is_chosen: npt.NDArray[np.bool_]) -> Cells:
    """Return the cells of some rows; `is_chosen` (N,) says which."""
    if isinstance(cells, list):
        return [cell for cell, is_one in zip(cells, is_chosen.tolist(), strict=True) if is_one]
    return cells.filter(pa.array(is_chosen))


def joined(first: Cells, second: Cells) -> Cells:
    """Return the cells of both, one behind the other."""
    if is_coded(first) and is_coded(second):
        places = pc.index_in(second.dictionary, first.dictionary)
        if not places.null_count:
            indices = pa.concat_arrays([first.indices, places.take(second.indices)])
            return pa.DictionaryArray.from_arrays(indices, first.dictionary)
    first, second = decoded(first), decoded(second)
    if isinstance(first, list) or isinstance(second, list) or first.type != second.type:
        return as_list(first) + as_list(second)
    return pa.concat_arrays([first, second])


def decoded(cells: Cells) -> Cells:
    """Return texts of a dictionary one by one, and other cells as they are."""
    return cells.dictionary_decode() if is_coded(cells) else cells


def codes_of(keys: Sequence[Cells]) -> npt.NDArray[np.int64]:
    """Return a number for each row (N,), from 0, the same where all keys are the same; null is a key too."""
    codes, n_codes = np.zeros(len(keys[0]), np.int64), 1
    for key in keys:
        own, n_own = _own_codes(key)
        if n_codes * n_own > _MOST_CODES:
            codes, n_codes = _dense(codes, n_codes)
        codes, n_codes = codes * n_own + own, n_codes * n_own
    return _dense(codes, n_codes)[0] if len(keys) > 1 else codes


def _own_codes(key: Cells) -> tuple[npt.NDArray[np.integer], int]:
    if isinstance(key, list):
        known: dict[Any, int] = {}
        return np.array([known.setdefault(cell, len(known)) for cell in key], np.int64), len(known)
    if pa.types.is_int64(key.type) and not key.null_count and len(key):
        values = key.to_numpy()
        if values.min() >= 0 and values.max() < _MOST_OWN:
            return values, int(values.max()) + 1
    encoded = key if is_coded(key) else pc.dictionary_encode(key, null_encoding="encode")
    indices, n_texts = encoded.indices, len(encoded.dictionary)
    return (pc.fill_null(indices, n_texts) if indices.null_count else indices).to_numpy(), n_texts + 1


def _dense(codes: npt.NDArray[np.int64], n_codes: int) -> tuple[npt.NDArray[np.int64], int]:
    """Return the codes counted up; `n_codes` is more than any."""
    if n_codes > _FEW_CODES:
        encoded = pc.dictionary_encode(pa.array(codes))
        return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
    is_used = np.zeros(n_codes, bool)
    is_used[codes] = True
    places = np.cumsum(is_used) - 1
    return places[codes], int(np.count_nonzero(is_used))
