"""Several databases as one: a call into Arrow or NumPy takes longer than the few rows of one rank's table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources.compiled.cells import Cells
from cluster_analysis.sources.db.sqlite import Database, Tables
from cluster_analysis.sources.errors import BadFileError

_T = TypeVar("_T")


class UnlikeError(Exception):
    """Some of the databases cannot be read, or have other columns, or cells of other types, than most.

    Attributes:
        places: which of them.
    """

    def __init__(self, places: Sequence[int]) -> None:
        super().__init__(f"{len(places)} databases are unlike the others")
        self.places = frozenset(places)


class Several:
    """Databases that are alike: the rows of one table behind those of the other.

    Every method raises UnlikeError where they are not alike.
    """

    def __init__(self, databases: Sequence[Database]) -> None:
        self._databases = databases
        self._n_rows: dict[str, list[int]] = {}
        self._joined: dict[tuple[str, str, str], Cells] = {}
        self._made: dict[Callable[[Tables], Any], Any] = {}
        #: Of each table the likeness of each database.
        self._likenesses: dict[str, list[Hashable]] = {}

    def has(self, table: str, *columns: str) -> bool:
        """Return whether the table and all these columns exist; of databases that are alike one is asked."""
        if table not in self._likenesses:
            self._likenesses[table] = self._each(lambda one: one.likeness(table))
        asked: dict[Hashable, bool] = {}
        for place, likeness in enumerate(self._likenesses[table]):
            if likeness not in asked:
                asked[likeness] = self._ask(place, lambda one: one.has(table, *columns))
        return _same([asked[likeness] for likeness in self._likenesses[table]])

    def cells(self, table: str, *columns: str, are_floats: bool = False) -> list[Cells]:
        """Return columns that the tables have; see `Database.cells`."""
        kind = "floats" if are_floats else "cells"
        return self._read(kind, table, columns, lambda one: one.cells(table, *columns, are_floats=are_floats))

    def coded(self, table: str, *columns: str) -> list[Cells]:
        """Return the same, but texts as a dictionary."""
        return self._read("coded", table, columns, lambda one: one.coded(table, *columns))

    def read_ahead(self, table: str, coded: Sequence[str], floats: Sequence[str]) -> None:
        """Read columns at once that are asked for later."""
        self._each(lambda one: one.read_ahead(table, coded, floats))

    def once(self, make: Callable[[Tables], _T]) -> _T:
        """Return what is made of these tables, made once."""
        if make not in self._made:
            self._made[make] = make(self)
        made: _T = self._made[make]
        return made

    def owners(self, table: str, _n_rows: int) -> npt.NDArray[np.int64]:
        """Return the place of the database that each row of a table that was read is from (N,)."""
        return np.repeat(np.arange(len(self._databases)), self.n_rows(table))

    def n_rows(self, table: str) -> list[int]:
        """Return how many rows of a table that was read each database has."""
        return self._n_rows[table]

    def _read(
        self, kind: str, table: str, columns: Sequence[str], read: Callable[[Database], list[Cells]]
    ) -> list[Cells]:
        keys = [(kind, table, name) for name in columns]
        if any(key not in self._joined for key in keys):
            parts = self._each(read)
            _same([tuple(map(_type, one)) for one in parts])
            self._n_rows[table] = [len(one[0]) for one in parts]
            for key, column in zip(keys, zip(*parts, strict=True), strict=True):
                self._joined[key] = pa.concat_arrays(column)
        return [self._joined[key] for key in keys]

    def _each(self, ask: Callable[[Database], _T]) -> list[_T]:
        return [self._ask(place, ask) for place in range(len(self._databases))]

    def _ask(self, place: int, ask: Callable[[Database], _T]) -> _T:
        try:
            return ask(self._databases[place])
        except (BadFileError, ValueError, TypeError, ArithmeticError, LookupError) as error:
            # Whoever reads the rank alone says what is wrong.
            raise UnlikeError([place]) from error


def _type(cells: Cells) -> tuple[pa.DataType, bool] | None:
    """Return of which type the cells are, and whether some are empty."""
    return None if isinstance(cells, list) else (cells.type, bool(cells.null_count))


def _same(values: Sequence[_T]) -> _T:
    """Return what all values are; a list of cells, of which the type is None, is like nothing."""
    most, _ = Counter(values).most_common(1)[0]
    is_odd = [value != most or (isinstance(value, tuple) and None in value) for value in values]
    if any(is_odd):
        raise UnlikeError([place for place, odd in enumerate(is_odd) if odd])
    return most
