"""Bytes of the compiled reader as Arrow arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

#: Bytes, or where they are many: what keeps them, where they lie, and how many they are.
Given: TypeAlias = bytes | tuple[object, int, int]
#: Offsets and letters.
GivenTexts: TypeAlias = tuple[Given, Given]


def buffer(given: Given) -> pa.Buffer:
    """Return the bytes as they lie."""
    if isinstance(given, bytes):
        return pa.py_buffer(given)
    owner, address, n_bytes = given
    return pa.foreign_buffer(address, n_bytes, owner)


def array(given: Given, kind: type[np.generic]) -> npt.NDArray[Any]:
    """Return numbers (N,) as they lie."""
    return np.frombuffer(given if isinstance(given, bytes) else buffer(given), kind)


def column(given: Given, kind: pa.DataType) -> pa.Array:
    """Return numbers; none is missing."""
    content = buffer(given)
    return pa.Array.from_buffers(kind, content.size * 8 // kind.bit_width, [None, content])


def figures(given: Given, n_missing: int) -> pa.Array:
    """Return numbers of float64; NaN becomes null."""
    if n_missing:
        return pa.array(array(given, np.float64), from_pandas=True)
    return column(given, pa.float64())


def texts(given: GivenTexts) -> pa.Array:
    """Return texts of their offsets and letters."""
    offsets, letters = map(buffer, given)
    return pa.Array.from_buffers(pa.string(), max(offsets.size // 4 - 1, 0), [None, offsets, letters])


def named(codes: Given, distinct: GivenTexts) -> pa.DictionaryArray:
    """Return the texts that the codes stand for; -1 is null."""
    numbers_of_texts = column(codes, pa.int32())
    if len(numbers_of_texts) and array(codes, np.int32).min() < 0:
        numbers_of_texts = pc.if_else(pc.less(numbers_of_texts, 0), None, numbers_of_texts)
    return pa.DictionaryArray.from_arrays(numbers_of_texts, texts(distinct), safe=False)
