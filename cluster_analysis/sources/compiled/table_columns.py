"""Columns of a table of a database, read by the compiled reader from its file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources.compiled.arrays import Given, buffer
from cluster_analysis.sources.compiled.cells import Cells, cells_of
from cluster_analysis.sources.compiled.reader import compiled

#: What is wanted of a column, as table.h has it.
NOTHING, CELLS, FLOATS, CODES = range(4)
_INTEGER, _FLOAT, _TEXT, _NULL = 1, 2, 3, 5
_NUMBERS = {1 << _INTEGER: pa.int64(), 1 << _FLOAT: pa.float64()}


def table_columns(file: int, root: int, row_number: int, wishes: Sequence[int]) -> list[Cells] | None:
    """Return the columns of the table at page `root` that are wished for; None where SQLite must read it.

    Args:
        file: the open file's descriptor.
        root: the table's first page.
        row_number: the column that is the row's number, -1 for none.
        wishes: NOTHING, CELLS, FLOATS or CODES (texts become a dictionary) for each column.
    """
    module = compiled()
    found = None if module is None else module.table(file, root, row_number, bytes(wishes))
    try:
        return None if found is None else [_cells(*column) for column in found]
    except (pa.ArrowInvalid, UnicodeDecodeError):
        # A text that is not UTF-8.
        return None


def _cells(seen: int, kinds: bytes, given_values: Given, letters: bytes, offsets: bytes) -> Cells:
    values = buffer(given_values)
    if offsets:
        return _coded(seen, values, letters, offsets)
    n = len(values) // 8
    given = seen & ~(1 << _NULL)
    if not given:
        return pa.nulls(n)
    validity, n_null = None, 0
    if given != seen:
        is_given = np.frombuffer(kinds, np.uint8) != _NULL
        n_null = n - int(np.count_nonzero(is_given))
        validity = pa.py_buffer(np.packbits(is_given, bitorder="little"))
    if given in _NUMBERS:
        return pa.Array.from_buffers(_NUMBERS[given], n, [validity, values], n_null)
    if given != 1 << _TEXT or len(letters) > np.iinfo(np.int32).max:
        return cells_of(_one_by_one(kinds, values, letters))
    ends = np.zeros(n + 1, np.int32)
    ends[1:] = np.frombuffer(values, np.int64)
    return _texts(n, [validity, pa.py_buffer(ends), pa.py_buffer(letters)], n_null)


def _coded(seen: int, codes: pa.Buffer, letters: bytes, offsets: bytes) -> pa.DictionaryArray:
    distinct = _texts(len(offsets) // 4 - 1, [None, pa.py_buffer(offsets), pa.py_buffer(letters)], 0)
    indices = pa.Array.from_buffers(pa.int32(), len(codes) // 4, [None, codes], 0)
    if seen >> _NULL & 1:
        indices = pc.if_else(pc.less(indices, 0), None, indices)
    return pa.DictionaryArray.from_arrays(indices, distinct, safe=False)


def _texts(n: int, buffers: list[pa.Buffer | None], n_null: int) -> pa.Array:
    texts = pa.Array.from_buffers(pa.string(), n, buffers, n_null)
    texts.validate(full=True)
    return texts


def _one_by_one(kinds: bytes, values: pa.Buffer, letters: bytes) -> list[object]:
    whole, floats = np.frombuffer(values, np.int64).tolist(), np.frombuffer(values, np.float64).tolist()
    cells: list[object] = []
    begin = 0
    for at, kind in enumerate(kinds):
        if kind == _TEXT:
            cells.append(letters[begin : whole[at]].decode())
            begin = whole[at]
        else:
            cells.append({_INTEGER: whole[at], _FLOAT: floats[at]}.get(kind))
    return cells
