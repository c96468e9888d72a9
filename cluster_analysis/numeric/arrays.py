"""The types of arrays that cross modules, and columns of tables as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer[Any]]
BoolArray = npt.NDArray[np.bool_]


def numbers(column: Any) -> FloatArray:
    """Return a column as float64 with NaN for null."""
    return np.asarray(column.to_numpy(zero_copy_only=False), np.float64)


def has_text(column: Any, *texts: str) -> BoolArray:
    """Return which rows of a column have one of these texts (N,)."""
    known, code = codes(column)
    return np.asarray(np.isin(code, [number for number, name in enumerate(known) if name in texts]))


def codes(column: Any, known: tuple[str, ...] = ()) -> tuple[tuple[str, ...], IntArray]:
    """Return the sorted distinct texts of a column, behind `known` ones, and each row's position in them.

    Null is "".
    """
    if column.null_count or not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).fill_null("").dictionary_encode()
    encoded = column.unify_dictionaries().combine_chunks()
    indices = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int32)
    texts = encoded.dictionary.to_pylist()
    used = np.flatnonzero(np.bincount(indices, minlength=len(texts))).tolist()
    names = [*known, *sorted({texts[i] for i in used}.difference(known))]
    place = {text: number for number, text in enumerate(names)}
    position = np.zeros(max(len(texts), 1), np.int32)
    position[used] = [place[texts[i]] for i in used]
    return tuple(names), position[indices]
