"""Bytes of the compiled reader as Arrow arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def whole(content: bytes, kind: pa.DataType) -> pa.Array:
    """Return whole numbers, which are all there."""
    return pa.Array.from_buffers(kind, len(content) * 8 // kind.bit_width, [None, pa.py_buffer(content)])


def figures(content: bytes, n_missing: int) -> pa.Array:
    """Return numbers of float64; NaN becomes null."""
    if n_missing:
        return pa.array(np.frombuffer(content), from_pandas=True)
    return whole(content, pa.float64())


def texts(given: tuple[bytes, bytes]) -> pa.Array:
    """Return texts of their offsets and letters."""
    offsets, letters = given
    n_texts = max(len(offsets) // 4 - 1, 0)
    return pa.Array.from_buffers(pa.string(), n_texts, [None, pa.py_buffer(offsets), pa.py_buffer(letters)])


def named(codes: bytes, distinct: tuple[bytes, bytes]) -> pa.DictionaryArray:
    """Return the texts that the codes stand for; -1 is null."""
    numbers_of_texts = whole(codes, pa.int32())
    if len(codes) and np.frombuffer(codes, np.int32).min() < 0:
        numbers_of_texts = pc.if_else(pc.less(numbers_of_texts, 0), None, numbers_of_texts)
    return pa.DictionaryArray.from_arrays(numbers_of_texts, texts(distinct), safe=False)
