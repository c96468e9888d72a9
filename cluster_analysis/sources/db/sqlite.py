"""SQLite databases of profilers: opened so that nothing is ever written, columns by name.

Other tools add columns and tables to these files when they open them, so nothing but the named columns
is read, and what a version lacks is null.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cluster_analysis.sources.columns.database import Wanted, database_of
from cluster_analysis.sources.columns.place import columns_of
from cluster_analysis.sources.errors import BadFileError, Remark
from cluster_run.facts import fact

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

    def __init__(self, connection: sqlite3.Connection, wanted: Wanted | None = None) -> None:
        self._connection = connection
        self._wanted = wanted
        self._columns: dict[str, Mapping[str, str]] = {}

    def has(self, table: str, *columns: str) -> bool:
        """Return whether the table and all these columns exist; names are compared case-blind."""
        self._require_looked_for(table, columns)
        present = self._columns_of(table)
        return bool(present) and all(column.casefold() in present for column in columns)

    def column(self, table: str, column: str, otherwise: str = "NULL") -> str:
        """Return the column as SQL, `otherwise` where the table lacks it."""
        self._require_looked_for(table, (column,))
        present = self._columns_of(table)
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

    def _columns_of(self, table: str) -> Mapping[str, str]:
        if table not in self._columns:
            found = self.rows("SELECT name FROM pragma_table_info(?)", (table,))
            self._columns[table] = {str(name).casefold(): str(name) for (name,) in found}
        return self._columns[table]


@contextmanager
def open_database(path: Path, remark: Remark) -> Iterator[Database]:
    """Open a database read-only and immutable: no lock, no journal, no change, also on read-only media.

    Where columns lie in its place, they become a database in memory.

    Raises:
        BadFileError: it cannot be opened.
    """
    columns = columns_of(path)
    if columns is not None:
        yield Database(*_OF_COLUMNS.database(columns))
        return
    try:
        if path.stat().st_size == 0:
            raise BadFileError(fact("empty"))
        log = path.with_name(path.name + "-wal")
        if log.exists() and log.stat().st_size:
            remark(fact("write_ahead_log", n_bytes=log.stat().st_size))
        connection = sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1", uri=True)
    except (OSError, sqlite3.Error) as error:
        raise BadFileError(fact("cannot_be_opened", detail=str(error))) from error
    connection.text_factory = _decoded
    try:
        yield Database(connection)
    finally:
        connection.close()


class _LastOfColumns(threading.local):
    """The last database that this thread made of columns: each reader of a rank asks for the same one."""

    def __init__(self) -> None:
        self._known: tuple[str, int] | None = None
        self._database: tuple[sqlite3.Connection, Wanted] | None = None

    def database(self, columns: Path) -> tuple[sqlite3.Connection, Wanted]:
        known = (str(columns), columns.stat().st_mtime_ns)
        if self._database is None or self._known != known:
            if self._database is not None:
                self._database[0].close()
            self._database = None
            self._database = database_of(columns)
            self._known = known
        return self._database


_OF_COLUMNS = _LastOfColumns()


def _decoded(value: bytes) -> str:
    # Text that is not UTF-8 must not cost the table: it is no number, and no name that matches.
    return value.decode(errors="replace")
