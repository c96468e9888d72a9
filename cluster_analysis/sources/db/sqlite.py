"""SQLite databases of profilers: opened so that nothing is ever written, columns by name.

Other tools add columns and tables to these files when they open them, so nothing but the named columns
is read, and what a version lacks is null. Whole columns come from the compiled reader where it works, which
reads the file itself, else from SQLite; both give the same.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from cluster_analysis.sources.columns.database import Wanted, database_of
from cluster_analysis.sources.columns.place import columns_of
from cluster_analysis.sources.compiled.cells import Cells, cells_of
from cluster_analysis.sources.compiled.table_columns import CELLS, FLOATS, NOTHING, table_columns
from cluster_analysis.sources.db.declared import Declared, Schema
from cluster_analysis.sources.errors import BadFileError, Remark
from cluster_run.facts import fact

_T = TypeVar("_T")
_BATCH_ROWS = 50_000


@dataclass(frozen=True)
class StepTime:
    """When one step began and ended, as the databases' STEP_TIME has it."""

    number: int
    begin_ns: int
    end_ns: int


def step_at(times: Sequence[StepTime], start_ns: int) -> int | None:
    """Return the step in which something began: 0 without any steps, None outside of all of them."""
    if not times:
        return 0
    return next((one.number for one in times if one.begin_ns <= start_ns <= one.end_ns), None)


class Database:
    """One open database. Every method raises BadFileError where the file is damaged."""

    def __init__(
        self, connection: sqlite3.Connection, wanted: Wanted | None = None, path: Path | None = None
    ) -> None:
        self._connection = connection
        self._connection.text_factory = _decoded
        self._wanted = wanted
        self._path = path
        self._schema: Schema | None = None
        self._cells: dict[tuple[str, str, bool], Cells] = {}
        self._made: dict[Callable[[Database], Any], Any] = {}

    def has(self, table: str, *columns: str) -> bool:
        """Return whether the table and all these columns exist; names are compared case-blind."""
        self._require_looked_for(table, columns)
        present = self._table(table).columns
        return bool(present) and all(column.casefold() in present for column in columns)

    def column(self, table: str, column: str, otherwise: str = "NULL") -> str:
        """Return the column as SQL, `otherwise` where the table lacks it."""
        self._require_looked_for(table, (column,))
        present = self._table(table).columns
        return f'"{table}"."{present[column.casefold()]}"' if column.casefold() in present else otherwise

    def rows(self, query: str, parameters: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        self._connection.text_factory = str
        try:
            return self._connection.execute(query, parameters).fetchall()
        except (sqlite3.Error, OverflowError, UnicodeDecodeError):
            # What is wrong is said below, unless it is a text that is not UTF-8.
            self._connection.text_factory = _decoded
            return list(self.iterate(query, parameters))
        finally:
            self._connection.text_factory = _decoded

    def iterate(self, query: str, parameters: tuple[object, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query."""
        try:
            cursor = self._connection.execute(query, parameters)
            while batch := cursor.fetchmany(_BATCH_ROWS):
                yield from batch
        except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
            raise BadFileError(fact("not_database", detail=str(error))) from error

    def _require_looked_for(self, table: str, columns: Sequence[str]) -> None:
        """Refuse to call something absent that the host that made these columns never looked for."""
        if self._wanted is None:
            return
        wanted = self._wanted.get(table.casefold(), ())
        missing = [name for name in columns if wanted is not None and name.casefold() not in wanted]
        if missing:
            detail = f"columns: made without {table}.{missing[0]}, by another version"
            raise BadFileError(fact("not_of_form", detail=detail), "collect_again")

    def cells(self, table: str, *columns: str, are_floats: bool = False) -> list[Cells]:
        """Return columns that the table has, whole, in the order of its rows.

        With `are_floats` whole numbers become floats. Columns asked for at once are read at once, and each
        is read once only.
        """
        self._require_looked_for(table, columns)
        about = self._table(table)
        absent = [f"column: {table}.{name}" for name in columns if name.casefold() not in about.columns]
        if absent:
            detail = f"no such {absent[0] if about.columns else f'table: {table}'}"
            raise BadFileError(fact("not_database", detail=detail))
        keys = {name.casefold(): (table.casefold(), name.casefold(), are_floats) for name in columns}
        names = [name for name in about.columns if name in keys and keys[name] not in self._cells]
        if names:
            read = self._read_by_pages(about, names, are_floats) or self._read_by_rows(
                table, [about.columns[name] for name in names], are_floats
            )
            self._cells.update(zip((keys[name] for name in names), read, strict=True))
        return [self._cells[key] for key in keys.values()]

    def _read_by_pages(self, about: Declared, names: Sequence[str], are_floats: bool) -> list[Cells] | None:
        if self._path is None or not about.root:
            return None
        wishes = [
            (FLOATS if are_floats or is_real else CELLS) if name in names else NOTHING
            for name, is_real in zip(about.columns, about.reals, strict=True)
        ]
        try:
            file = os.open(self._path, os.O_RDONLY)
        except OSError as error:
            raise BadFileError(fact("cannot_be_opened", detail=str(error))) from error
        try:
            return table_columns(file, about.root, about.row_number, wishes)
        finally:
            os.close(file)

    def _read_by_rows(self, table: str, names: Sequence[str], are_floats: bool) -> list[Cells]:
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        # An index that has all the columns has them in another order.
        rows = self.rows(f"SELECT {quoted} FROM {table} NOT INDEXED")  # noqa: S608 - quoted
        columns = zip(*rows, strict=True) if rows else [()] * len(names)
        return [cells_of(values, are_floats=are_floats) for values in columns]

    def once(self, make: Callable[[Database], _T]) -> _T:
        """Return what is made of this database, made once."""
        if make not in self._made:
            self._made[make] = make(self)
        made: _T = self._made[make]
        return made

    def close(self) -> None:
        """Close it."""
        self._connection.close()

    def _table(self, table: str) -> Declared:
        if self._schema is None:
            self._schema = Schema(self.rows)
        return self._schema.table(table)


class _KeptOpen(threading.local):
    """The databases that this thread keeps open, by path; None where it keeps none."""

    databases: dict[Path, Database] | None = None


_KEPT = _KeptOpen()


@contextmanager
def kept_open() -> Iterator[None]:
    """Open each database once within this, and read each of its columns once."""
    before, _KEPT.databases = _KEPT.databases, {}
    try:
        yield
    finally:
        kept, _KEPT.databases = _KEPT.databases, before
        for database in kept.values():
            database.close()


@contextmanager
def open_database(path: Path, remark: Remark) -> Iterator[Database]:
    """Open a database read-only and immutable: no lock, no journal, no change, also on read-only media.

    Where columns lie in its place, they become a database in memory.

    Raises:
        BadFileError: it cannot be opened.
    """
    kept = _KEPT.databases
    known = None if kept is None else kept.get(path)
    columns = columns_of(path)
    if columns is None:
        _look_at(path, remark)
    database = known or (_opened(path) if columns is None else Database(*database_of(columns)))
    if kept is not None:
        kept[path] = database
    try:
        yield database
    finally:
        if kept is None:
            database.close()


def _look_at(path: Path, remark: Remark) -> None:
    try:
        if path.stat().st_size == 0:
            raise BadFileError(fact("empty"))
        log = path.with_name(path.name + "-wal")
        if log.exists() and log.stat().st_size:
            remark(fact("write_ahead_log", n_bytes=log.stat().st_size))
    except OSError as error:
        raise BadFileError(fact("cannot_be_opened", detail=str(error))) from error


def _opened(path: Path) -> Database:
    try:
        name = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
        return Database(sqlite3.connect(name, uri=True), path=path)
    except (OSError, sqlite3.Error) as error:
        raise BadFileError(fact("cannot_be_opened", detail=str(error))) from error


def _decoded(value: bytes) -> str:
    # Text that is not UTF-8 must not cost the table: it is no number, and no name that matches.
    return value.decode(errors="replace")
