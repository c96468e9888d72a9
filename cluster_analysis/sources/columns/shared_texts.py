"""Texts of several columns files in one dictionary."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

#: Which of its file's distinct texts each row has, and these texts, None for a missing one.
Coded = tuple[npt.NDArray[np.int64], list[str | None]]


def shared_texts(files: Sequence[Coded]) -> pa.DictionaryArray:
    """Return the texts of all files, one behind the other; null for a missing one.

    The dictionary holds no text that no row has, in the order of their first rows.
    """
    known: dict[str, int] = {}
    parts = []
    for places, texts in files:
        codes = np.full(len(texts), -1, np.int32)
        for at in in_order_of_rows(places, len(texts)):
            text = texts[at]
            codes[at] = -1 if text is None else known.setdefault(text, len(known))
        parts.append(codes[places])
    rows = np.concatenate(parts)
    indices = pa.array(rows, mask=rows < 0) if (rows < 0).any() else pa.array(rows)
    return pa.DictionaryArray.from_arrays(indices, pa.array(list(known), pa.string()))


def in_order_of_rows(places: npt.NDArray[np.int64], n_places: int) -> list[int]:
    """Return the places that rows have, in the order in which they come first."""
    first = np.full(n_places, len(places))
    first[places[::-1]] = np.arange(len(places))[::-1]
    n_used = np.count_nonzero(first < len(places))
    found: list[int] = np.argsort(first)[:n_used].tolist()
    return found
