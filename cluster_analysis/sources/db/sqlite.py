"""SQLite databases of profilers: opened so that nothing is ever written, columns by name.

Other tools add columns and tables to these files when they open them, so nothing but the named columns
is read, and what a version lacks is null. SQLite's own library reads all of them.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote

import pyarrow as pa
from msgspec import Struct

from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.sources.columns.database import Wanted, database_of, quoted
from cluster_analysis.sources.columns.place import columns_of
from cluster_analysis.sources.db.cells import Column, NumberColumn, TextColumn
from cluster_analysis.sources.errors import BadFileError, Remark
from cluster_analysis.sources.measured import tell_no_columns
from cluster_run.errors import spoken
from cluster_run.facts import fact

_T = TypeVar("_T")
_BATCH_ROWS = 4096
_TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
#: Computed columns, and those of virtual tables, are hidden.
_COLUMNS = "SELECT name FROM pragma_table_xinfo(?) WHERE NOT hidden"
#: Columns as they are spelled, by name in lower case.
_Columns: TypeAlias = Mapping[str, str]


class StepTime(Struct, frozen=True):
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
        self,
        path: Path | None,
        log_bytes: int = 0,
        connection: sqlite3.Connection | None = None,
        wanted: Wanted | None = None,
    ) -> None:
        """Take a file, which SQLite opens when it is first needed, or what is open already."""
        #: Bytes in its write-ahead log that were not written into it.
        self.log_bytes = log_bytes
        self._path = path
        self._connected = connection
        self._wanted = wanted
        self._tables: dict[str, str] | None = None
        self._known: dict[str, _Columns] = {}
        self._read: dict[tuple[str, str, Callable[[], Any]], Any] = {}
        self._made: dict[tuple[Callable[..., Any], tuple[str, ...]], Any] = {}

    def has(self, table: str, *columns: str) -> bool:
        """Return whether the table and all these columns exist; names are compared case-blind."""
        self._require_looked_for(table, columns)
        known = self._columns(table)
        return bool(known) and all(column.casefold() in known for column in columns)

    def offers(self, remark: Remark, table: str, *columns: str) -> bool:
        """Return whether the table and all these columns exist; remark on those that a table lacks."""
        if self.has(table, *columns):
            return True
        if self.has(table):
            tell_no_columns({f"{table}.{name}" for name in columns if not self.has(table, name)}, remark)
        return False

    def offers_all(self, remark: Remark, tables: Mapping[str, Sequence[str]]) -> bool:
        """Return whether all these tables and columns exist; remark on what the first lacks that does not."""
        return all(self.offers(remark, table, *columns) for table, columns in tables.items())

    def rows(self, query: str, parameters: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        found: list[tuple[Any, ...]] = []
        for batch in self._batches(query, parameters, found.clear):
            found += batch
        return found

    def _batches(
        self, query: str, parameters: tuple[object, ...], again: Callable[[], object]
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of a query; `again` is called where all of them come once more.

        That is where a text is not UTF-8: it must not cost the table, as it is no number and no name that
        matches.
        """
        connection = self._connection()
        for text_factory in (str, _decoded):
            connection.text_factory = text_factory
            try:
                # Python 3.10 begins a query again when an older cursor of it goes.
                with closing(connection.execute(query, parameters)) as cursor:
                    while batch := cursor.fetchmany(_BATCH_ROWS):
                        yield batch
            except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
                if text_factory is _decoded:
                    raise BadFileError(fact("not_database", detail=spoken(error))) from error
                again()
            else:
                return

    def _require_looked_for(self, table: str, columns: Sequence[str]) -> None:
        """Raise if the host that made these columns never looked for this: it may not be absent."""
        if self._wanted is None:
            return
        wanted = self._wanted.get(table.casefold(), ())
        missing = [name for name in columns if wanted is not None and name.casefold() not in wanted]
        if missing:
            detail = f"columns: made without {table}.{missing[0]}, by another version"
            raise BadFileError(fact("not_of_form", detail=detail), "collect_again")

    def texts(self, table: str, *columns: str) -> dict[str, pa.DictionaryArray]:
        """Return those columns that the table has, as texts, whole and in the order of its rows.

        Columns asked for at once are read at once, and each is read once only.
        """
        return self._whole(table, columns, TextColumn)

    def numbers(self, table: str, *columns: str) -> dict[str, FloatArray]:
        """Return those columns that the table has, as numbers (N,)."""
        return self._whole(table, columns, NumberColumn)

    def _whole(self, table: str, columns: Sequence[str], kind: Callable[[], Column[_T]]) -> dict[str, _T]:
        known = self._columns(table)
        keys = {name: (table.casefold(), name.casefold(), kind) for name in columns if self.has(table, name)}
        new = list(dict.fromkeys(key for key in keys.values() if key not in self._read))
        if new:
            names = ", ".join(quoted(known[name]) for _, name, _ in new)
            # An index that has all the columns has them in another order.
            query = f"SELECT {names} FROM {table} NOT INDEXED"  # noqa: S608 - quoted
            found: list[Column[_T]] = []

            def begin() -> None:
                found[:] = [kind() for _ in new]

            begin()
            for batch in self._batches(query, (), begin):
                for column, cells in zip(found, zip(*batch, strict=True), strict=True):
                    column.add(cells)
            self._read.update(zip(new, (column.whole() for column in found), strict=True))
        return {name: self._read[key] for name, key in keys.items()}

    def once(self, make: Callable[..., _T], *arguments: str) -> _T:
        """Return what is made of this database and the arguments, made once."""
        key = (make, arguments)
        if key not in self._made:
            self._made[key] = make(self, *arguments)
        made: _T = self._made[key]
        return made

    def close(self) -> None:
        """Close it, and drop its columns and what was made of them."""
        self._path = None
        self._tables = None
        self._known = {}
        self._read = {}
        self._made = {}
        if self._connected is not None:
            self._connected.close()

    def _connection(self) -> sqlite3.Connection:
        if self._connected is None:
            if self._path is None:
                raise BadFileError(fact("not_database", detail="closed"))
            self._connected = _opened(self._path)
        return self._connected

    def _columns(self, table: str) -> _Columns:
        """Return the columns of a table or view; none where there is no such table."""
        if self._tables is None:
            self._tables = {str(name).casefold(): str(name) for (name,) in self.rows(_TABLES)}
        key = table.casefold()
        if key not in self._known:
            found = self.rows(_COLUMNS, (self._tables[key],)) if key in self._tables else ()
            self._known[key] = {str(name).casefold(): str(name) for (name,) in found}
        return self._known[key]


class _KeptOpen(threading.local):
    """The databases that this thread keeps open, by path; None where it keeps none."""

    databases: dict[Path, Database] | None = None


_KEPT = _KeptOpen()


@contextmanager
def kept_open() -> Iterator[None]:
    """Open each database once within this, and read each of its columns once."""
    before = _KEPT.databases
    kept: dict[Path, Database] = {}
    _KEPT.databases = kept
    try:
        yield
    finally:
        _KEPT.databases = before
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
    database = None if kept is None else kept.get(path)
    if database is None:
        columns = columns_of(path)
        database = Database(path, _log_bytes(path)) if columns is None else _of_columns(columns)
    if kept is not None:
        kept[path] = database
    try:
        if database.log_bytes:
            remark(fact("write_ahead_log", n_bytes=database.log_bytes))
        yield database
    finally:
        if kept is None:
            database.close()


def _of_columns(path: Path) -> Database:
    connection, wanted = database_of(path)
    return Database(None, connection=connection, wanted=wanted)


def _log_bytes(path: Path) -> int:
    """Return the size of a database's write-ahead log; 0 where there is none."""
    try:
        if path.stat().st_size == 0:
            raise BadFileError(fact("empty"))
        log = path.with_name(path.name + "-wal")
        return log.stat().st_size if log.exists() else 0
    except OSError as error:
        raise BadFileError(fact("cannot_be_opened", detail=spoken(error))) from error


def _opened(path: Path) -> sqlite3.Connection:
    try:
        name = f"file:{quote(os.fsencode(path.resolve()))}?mode=ro&immutable=1"
        return sqlite3.connect(name, uri=True)
    except (OSError, sqlite3.Error) as error:
        raise BadFileError(fact("cannot_be_opened", detail=spoken(error))) from error


def _decoded(value: bytes) -> str:
    return value.decode(errors="replace")
