"""Columns of a database, each read as what it is meant to hold: SQLite puts any type into any cell.

FloatArray are float64 (N,): NaN for an empty cell, and infinite for what is no number: that is counted, and
never taken for 0. Texts are a dictionary, in the order in which they come first; null for an empty cell.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.sources import numbers
from cluster_analysis.sources.errors import Remark, tell_left_out
from cluster_analysis.sources.names import coded_rows
from cluster_reduce.levels import parse_step

_T = TypeVar("_T")


class Column(Generic[_T]):
    """A column while it is read."""

    def add(self, cells: Sequence[Any]) -> None:
        """Add cells as `sqlite3` gives them."""
        raise NotImplementedError

    def whole(self) -> _T:
        """Return all of them."""
        raise NotImplementedError


class NumberColumn(Column[FloatArray]):
    """A column of numbers."""

    def __init__(self) -> None:
        self._values = array("d")

    def add(self, cells: Sequence[Any]) -> None:
        """Add cells as `sqlite3` gives them."""
        try:
            self._values.extend(array("d", cells))
        except TypeError:
            self._values.extend(map(as_number, cells))

    def whole(self) -> FloatArray:
        """Return all of them."""
        return np.array(self._values)


class TextColumn(Column[pa.DictionaryArray]):
    """A column of texts; a number is what Python writes for it."""

    def __init__(self) -> None:
        self._places = array("q")
        self._known: dict[str | None, int] = {}

    def add(self, cells: Sequence[Any]) -> None:
        """Add cells as `sqlite3` gives them."""
        known = self._known
        texts = (one if one is None or type(one) is str else str(one) for one in cells)
        self._places.extend([known.setdefault(text, len(known)) for text in texts])

    def whole(self) -> pa.DictionaryArray:
        """Return all of them."""
        return coded_rows((np.array(self._places), list(self._known)))


def as_number(cell: object) -> float:
    """Return a cell as one of a column of numbers."""
    if cell is None:
        return np.nan
    return float(cell) if isinstance(cell, (int, float)) else np.inf


def floats(values: FloatArray, remark: Remark, *, are_needed: bool = False) -> pa.Array:
    """Return numbers with null for what is none, which is counted; so are empty cells if needed."""
    is_missing = ~np.isfinite(values)
    n_bad = int(np.count_nonzero(is_missing if are_needed else np.isinf(values)))
    tell_left_out(remark, n_bad, "value", "no_number")
    return pa.array(values, mask=is_missing)


def steps(texts: pa.DictionaryArray, remark: Remark) -> pa.Array:
    """Return step numbers, 0 where the cell names none; null for what is no step, which is counted."""
    found = plain_steps(texts)
    tell_left_out(remark, found.null_count, "row", "no_step_number")
    return found


def plain_steps(texts: pa.DictionaryArray) -> pa.Array:
    """Return step numbers as `steps` does, without counting cells that are none."""
    known = pa.array([*map(parse_step, texts.dictionary.to_pylist()), 0], pa.int64())
    return known.take(pc.fill_null(texts.indices, len(texts.dictionary)))


def with_step(table: pa.Table) -> pa.Table:
    """Return the rows whose step is known."""
    return table.filter(pc.is_valid(table["step"])) if table["step"].null_count else table


def filled(texts: pa.DictionaryArray, empty: str = "") -> pa.DictionaryArray:
    """Return texts, `empty` for an empty cell."""
    if not texts.null_count:
        return texts
    return pc.fill_null(texts.dictionary_decode(), empty).dictionary_encode()


def link_ends(texts: pa.DictionaryArray, remark: Remark) -> pa.Array:
    """Return ranks in their group; null for what no job has."""
    known = pa.array([numbers.local_rank(text) for text in texts.dictionary.to_pylist()], pa.int32())
    ranks = known.take(texts.indices)
    n_bad = ranks.null_count - texts.null_count
    tell_left_out(remark, n_bad, "link_end", "no_rank")
    return ranks


def each(texts: pa.DictionaryArray, make: Callable[[Any], _T]) -> list[_T]:
    """Return what is made of each text, None for an empty cell; of texts that are alike once."""
    made = [make(value) for value in (*texts.dictionary.to_pylist(), None)]
    return [made[at] for at in pc.fill_null(texts.indices, -1).to_numpy().tolist()]


def rows_of(columns: Iterable[pa.DictionaryArray]) -> list[tuple[Any, ...]]:
    """Return columns of texts row by row, None for an empty cell."""
    return list(zip(*(each(one, lambda text: text) for one in columns), strict=True))


def nothing(n: int) -> pa.DictionaryArray:
    """Return texts of n empty cells, for a column that a table lacks."""
    return pa.nulls(n, pa.string()).dictionary_encode()


def as_texts(steps: Sequence[int | None]) -> pa.DictionaryArray:
    """Return steps as the column of a table that names them."""
    return pa.array([None if step is None else str(step) for step in steps], pa.string()).dictionary_encode()
