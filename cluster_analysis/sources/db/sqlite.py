"""SQLite databases of profilers: opened so that nothing is ever written, columns by name.

Other tools add columns and tables to these files when they open them, so nothing but the named columns
is read, and what a version lacks is null. Whole columns come from the compiled reader where it works, which
reads the file itself, else from SQLite; both give the same.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from cluster_analysis.sources.columns.database import Wanted, database_of
from cluster_analysis.sources.columns.place import columns_of
from cluster_analysis.sources.compiled.cells import Cells, as_list, cells_of, coded
from cluster_analysis.sources.compiled.database_file import DatabaseFile
from cluster_analysis.sources.compiled.table_columns import CELLS, CODES, FLOATS, NOTHING
from cluster_analysis.sources.db.declared import Declared, Schema, folded, has_columns
from cluster_analysis.sources.errors import BadFileError, Remark
from cluster_run.facts import fact

_T = TypeVar("_T")
_BATCH_ROWS = 50_000


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


class Tables(Protocol):
    """Whole columns of the tables of one database, or of several that are alike."""

    def has(self, table: str, *columns: str) -> bool:
        """Return whether the table and all these columns exist."""

    def cells(self, table: str, *columns: str, are_floats: bool = False) -> list[Cells]:
        """Return columns that the table has; see `Database.cells`."""

    def coded(self, table: str, *columns: str) -> list[Cells]:
        """Return the same, but texts as a dictionary."""

    def read_ahead(self, table: str, coded: Sequence[str], floats: Sequence[str]) -> None:
        """Read columns at once that are asked for later."""

    def once(self, make: Callable[[Tables], _T]) -> _T:
        """Return what is made of these tables, made once."""

    def owners(self, table: str, n_rows: int) -> npt.NDArray[np.int64]:
        """Return which of the databases each row of a table that was read is from (N,)."""


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
        #: How much lies in a log beside it that nobody has written into it.
        self.log_bytes = log_bytes
        self._path = path
        self._file = None if path is None else DatabaseFile(path)
        self._connected = connection
        if connection is not None:
            connection.text_factory = _decoded
        self._wanted = wanted
        self._schema: Schema | None = None
        #: What was asked for of it, by name.
        self._tables: dict[str, Declared] = {}
        self._cells: dict[tuple[str, str, int], Cells] = {}
        self._made: dict[Callable[[Database], Any], Any] = {}

    def has(self, table: str, *columns: str) -> bool:
        """Return whether the table and all these columns exist; names are compared case-blind."""
        if self._wanted is not None:
            self._require_looked_for(table, columns)
        return has_columns(self._table(table), columns)

    def likeness(self, table: str) -> Hashable:
        """Return what databases have in common whose answers to `has` are the same for this table."""
        return self if self._wanted is not None else self._table(table)

    def column(self, table: str, column: str, otherwise: str = "NULL") -> str:
        """Return the column as SQL, `otherwise` where the table lacks it."""
        self._require_looked_for(table, (column,))
        present = self._table(table).columns
        return f'"{table}"."{present[column.casefold()]}"' if column.casefold() in present else otherwise

    def rows(self, query: str, parameters: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        connection = self._connection()
        connection.text_factory = str
        try:
            return connection.execute(query, parameters).fetchall()
        except (sqlite3.Error, OverflowError, UnicodeDecodeError):
            # What is wrong is said below, unless it is a text that is not UTF-8.
            connection.text_factory = _decoded
            return list(self.iterate(query, parameters))
        finally:
            connection.text_factory = _decoded

    def iterate(self, query: str, parameters: tuple[object, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query."""
        connection = self._connection()
        try:
            cursor = connection.execute(query, parameters)
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
        return self._read(table, columns, FLOATS if are_floats else CELLS)

    def few_rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """Return the rows of a small table, each cell as SQLite gives it; from its pages if that can be."""
        return list(zip(*map(as_list, self.cells(table, *columns)), strict=True))

    def coded(self, table: str, *columns: str) -> list[Cells]:
        """Return the same, but texts as a dictionary, in the order in which they come first."""
        return self._read(table, columns, CODES)

    def read_ahead(self, table: str, coded: Sequence[str], floats: Sequence[str]) -> None:
        """Read columns at once that are asked for later; those that the table lacks are passed over."""
        wishes = dict.fromkeys(coded, CODES) | dict.fromkeys(floats, FLOATS)
        about = self._table(table)
        if self._wanted is not None:
            self._require_looked_for(table, tuple(wishes))
        named = ((folded(name), wish) for name, wish in wishes.items())
        self._keep(about, table, [(name, wish) for name, wish in named if name in about.columns])

    def _read(self, table: str, columns: Sequence[str], wish: int) -> list[Cells]:
        self._require_looked_for(table, columns)
        about, key = self._table(table), folded(table)
        names = [folded(name) for name in columns]
        absent = [
            f"column: {table}.{name}"
            for name, own in zip(columns, names, strict=True)
            if own not in about.columns
        ]
        if absent:
            detail = f"no such {absent[0] if about.columns else f'table: {table}'}"
            raise BadFileError(fact("not_database", detail=detail))
        self._keep(about, table, [(name, wish) for name in names])
        return [self._cells[key, name, wish] for name in names]

    def _keep(self, about: Declared, table: str, wanted: Sequence[tuple[str, int]]) -> None:
        """Read what is not known yet, names in lower case; a column may be there as a dictionary, too."""
        key = folded(table)
        new = {name: wish for name, wish in wanted if (key, name, wish) not in self._cells}
        if not new:
            return
        wishes = {name: new[name] for name in about.columns if name in new}
        if wishes:
            read = self._read_by_pages(about, wishes) or self._read_by_rows(about, table, wishes)
            for (name, wish), cells in zip(wishes.items(), read, strict=True):
                self._cells[key, name, wish] = coded(cells) if wish == CODES else cells

    def _read_by_pages(self, about: Declared, wishes: Mapping[str, int]) -> list[Cells] | None:
        if self._file is None or not about.root:
            return None
        of_all = [
            (FLOATS if is_real else wishes[name]) if name in wishes else NOTHING
            for name, is_real in zip(about.columns, about.reals, strict=True)
        ]
        try:
            return self._file.table(about.root, about.row_number, of_all)
        except OSError as error:
            raise BadFileError(fact("cannot_be_opened", detail=str(error))) from error

    def _read_by_rows(self, about: Declared, table: str, wishes: Mapping[str, int]) -> list[Cells]:
        quoted = ", ".join('"' + about.columns[name].replace('"', '""') + '"' for name in wishes)
        # An index that has all the columns has them in another order.
        rows = self.rows(f"SELECT {quoted} FROM {table} NOT INDEXED")  # noqa: S608 - quoted
        columns = zip(*rows, strict=True) if rows else [()] * len(wishes)
        kinds = wishes.values()
        return [
            cells_of(values, are_floats=kind == FLOATS) for values, kind in zip(columns, kinds, strict=True)
        ]

    def once(self, make: Callable[[Database], _T]) -> _T:
        """Return what is made of this database, made once."""
        if make not in self._made:
            self._made[make] = make(self)
        made: _T = self._made[make]
        return made

    def owners(self, _table: str, n_rows: int) -> npt.NDArray[np.int64]:
        """Return 0 for each row: there is one database."""
        return np.zeros(n_rows, np.int64)

    def close(self) -> None:
        """Close it, and drop its columns and what was made of them.

        The schema asks the database back. Without this the columns of closed databases would stay until
        Python looks for cycles, which a process that makes few objects seldom does.
        """
        self._path = None
        self._schema = None
        self._tables = {}
        self._cells = {}
        self._made = {}
        if self._file is not None:
            self._file.close()
        if self._connected is not None:
            self._connected.close()

    def _connection(self) -> sqlite3.Connection:
        if self._connected is None:
            if self._path is None:
                raise BadFileError(fact("not_database", detail="closed"))
            self._connected = _opened(self._path)
            self._connected.text_factory = _decoded
        return self._connected

    def _table(self, table: str) -> Declared:
        found = self._tables.get(table)
        if found is None:
            if self._schema is None:
                self._schema = Schema(self.rows, None if self._file is None else self._file.schema())
            found = self._tables[table] = self._schema.table(table)
        return found


class _KeptOpen(threading.local):
    """The databases that this thread keeps open, by path; None where it keeps none."""

    databases: dict[Path, Database] | None = None
    #: Those that were open before, for several ranks; whoever asks for one of them closes it.
    of_several: dict[Path, Database] | None = None


_KEPT = _KeptOpen()


@contextmanager
def kept_open() -> Iterator[None]:
    """Open each database once within this, and read each of its columns once.

    Within another one what that has open is taken over, and closed at the end of this.
    """
    before = _KEPT.databases, _KEPT.of_several
    _KEPT.databases, _KEPT.of_several = {}, _KEPT.databases
    try:
        yield
    finally:
        kept = _KEPT.databases
        _KEPT.databases, _KEPT.of_several = before
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
    if database is None and _KEPT.of_several is not None:
        database = _KEPT.of_several.pop(path, None)
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
    """Return the size of the log beside a database, whose content is not in it yet; 0 where there is none."""
    try:
        if path.stat().st_size == 0:
            raise BadFileError(fact("empty"))
        log = path.with_name(path.name + "-wal")
        return log.stat().st_size if log.exists() else 0
    except OSError as error:
        raise BadFileError(fact("cannot_be_opened", detail=str(error))) from error


def _opened(path: Path) -> sqlite3.Connection:
    try:
        name = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
        return sqlite3.connect(name, uri=True)
    except (OSError, sqlite3.Error) as error:
        raise BadFileError(fact("cannot_be_opened", detail=str(error))) from error


def _decoded(value: bytes) -> str:
    # Text that is not UTF-8 must not cost the table: it is no number, and no name that matches.
    return value.decode(errors="replace")
