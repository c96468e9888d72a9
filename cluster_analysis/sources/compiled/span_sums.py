"""Times of kernels summed by their columns, by the compiled reader where it works, else by NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources.compiled.cells import codes_of, whole_numbers
from cluster_analysis.sources.compiled.reader import compiled

_Ints = npt.NDArray[np.int64]
#: First row, n, sum, least and most: what the sums of equal keys have.
Sums = tuple[npt.NDArray[np.intp], tuple[_Ints, _Ints, _Ints, _Ints]]
_FEW = 1 << 16
_N_FIGURES = 5


def summed_spans(
    columns: Sequence[pa.Array | list[object]], rows: npt.NDArray[np.intp], spans: _Ints
) -> Sums:
    """Return the first span of each group of equal keys, and by group number, sum, minimum and maximum.

    Args:
        columns: whole numbers; what is none is a key of its own.
        rows: which row of the columns each span has (n,).
        spans: begin and end (n, 2).
    """
    keys = [whole_numbers(column) for column in columns]
    module = compiled()
    if module is not None and keys and all(is_whole.all() for _, is_whole in keys):
        values = tuple(np.ascontiguousarray(column) for column, _ in keys)
        found = _sums_of(
            module.sums(np.ascontiguousarray(rows, np.int64), np.ascontiguousarray(spans), values)
        )
        if found is not None:
            return found
    lasted = spans[:, 1] - spans[:, 0]
    chosen = [
        pa.array(values[rows], mask=None if is_whole.all() else ~is_whole[rows]) for values, is_whole in keys
    ]
    return summed(chosen, (np.ones(len(lasted), np.int64), lasted, lasted, lasted))


def summed_tasks(
    tasks: tuple[_Ints, _Ints, _Ints], ids: _Ints, columns: Sequence[pa.Array | list[object]]
) -> Sums | None:
    """Return the same of tasks, and as the first of a group the row of the columns that it has.

    None where the compiled reader cannot do it: something is no whole number, ids are far apart or repeated.

    Args:
        tasks: begin, end and id of each (N,); what ends before it begins is left out.
        ids: the id of each row of the columns (n,).
        columns: as above.
    """
    keys = [whole_numbers(column) for column in columns]
    module = compiled()
    if module is None or not keys or not all(is_whole.all() for _, is_whole in keys):
        return None
    values = tuple(np.ascontiguousarray(column) for column, _ in keys)
    return _sums_of(module.task_sums(*map(np.ascontiguousarray, (*tasks, ids)), values))


def _sums_of(found: bytes | None) -> Sums | None:
    if found is None:
        return None
    first, *figures = np.frombuffer(found, np.int64).reshape(-1, _N_FIGURES).T.copy()
    n, total, least, most = figures
    return first, (n, total, least, most)


def summed(keys: Sequence[pa.Array], values: tuple[_Ints, _Ints, _Ints, _Ints]) -> Sums:
    """Return the same of sums: their number, sum, minimum and maximum."""
    if not len(values[0]):
        return np.zeros(0, np.intp), values
    codes = codes_of(keys) if keys else np.zeros(len(values[0]), np.int64)
    # Few groups are sorted by their digits.
    order = np.argsort(codes.astype(np.uint16) if codes.max() < _FEW else codes, kind="stable")
    begins = np.flatnonzero(np.r_[True, np.diff(codes[order]) != 0])
    n, total, least, most = (one[order] for one in values)
    return order[begins], (
        np.add.reduceat(n, begins),
        np.add.reduceat(total, begins),
        np.minimum.reduceat(least, begins),
        np.maximum.reduceat(most, begins),
    )
