"""The columns of a database → a database in memory, with the same rows, types and indexes."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cluster_analysis.sources.columns.columns import damaged
from cluster_analysis.sources.columns.columns_file import ColumnsFile, DatabaseTable
from cluster_analysis.sources.errors import BadFileError

#: Types of columns, as any profiler declares them.
_TYPE = re.compile(r"[A-Za-z0-9_ (),]{0,60}")
_INT, _FLOAT, _TEXT, _NULL, _BLOB = range(5)


#: Columns that a host looked for, by table; all in lower case. None is all columns of a table.
Wanted = Mapping[str, tuple[str, ...] | None]


def database_of(path: Path) -> tuple[sqlite3.Connection, Wanted]:
    """Return a database in memory that holds what the columns say, and what the host looked for."""
    file = ColumnsFile(path, "database")
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    try:
        for number, table in enumerate(file.tables):
            _fill(connection, file, table, f"t{number}")
    except (sqlite3.Error, OverflowError, ValueError) as error:
        connection.close()
        raise damaged(str(error)) from error
    except BadFileError:
        connection.close()
        raise
    return connection, file.wanted


def _fill(connection: sqlite3.Connection, file: ColumnsFile, table: DatabaseTable, prefix: str) -> None:
    columns = []
    for column in table.columns:
        if not _TYPE.fullmatch(column.type):
            raise damaged("a type of a column")
        columns.append(f"{quoted(column.name)} {column.type}{' PRIMARY KEY' if column.is_key else ''}")
    name = quoted(table.name)
    if not columns:
        return
    connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
    cells = [file.ints(f"{prefix}.rowid").tolist()]
    cells += [_cells(file, f"{prefix}.{at}") for at in range(len(columns))]
    places = ", ".join("?" * len(cells))
    names = ", ".join(["rowid", *(quoted(column.name) for column in table.columns)])
    insert = f"INSERT INTO {name} ({names}) VALUES ({places})"  # noqa: S608 - quoted
    connection.executemany(insert, zip(*cells, strict=True))
    for number, index in enumerate(table.indexes):
        indexed = ", ".join(map(quoted, index))
        connection.execute(f"CREATE INDEX {quoted(f'{prefix}i{number}')} ON {name} ({indexed})")


def _cells(file: ColumnsFile, name: str) -> list[Any]:
    """Return a column in which each cell has a type of its own."""
    kinds = file.ints(f"{name}.kinds")
    values: dict[int, list[Any]] = {
        _INT: file.ints(f"{name}.ints").tolist(),
        _FLOAT: file.floats(f"{name}.floats").tolist(),
        _TEXT: file.names(f"{name}.texts").to_pylist(),
        _NULL: [],
        _BLOB: [bytes.fromhex(text) for text in file.texts(f"{name}.blobs").to_pylist()],
    }
    values[_NULL] = [None] * int(np.count_nonzero(kinds == _NULL))
    counts = {kind: int(np.count_nonzero(kinds == kind)) for kind in values}
    if any(len(values[kind]) != count for kind, count in counts.items()) or sum(counts.values()) != len(
        kinds
    ):
        raise damaged("cells of a table")
    whole = next((kind for kind, count in counts.items() if count == len(kinds)), None)
    if whole is not None:
        return values[whole]
    taken = {kind: iter(cells) for kind, cells in values.items()}
    return [next(taken[kind]) for kind in kinds.tolist()]


def quoted(name: str) -> str:
    """Return the name of a table or column as SQL."""
    return '"' + name.replace('"', '""') + '"'
