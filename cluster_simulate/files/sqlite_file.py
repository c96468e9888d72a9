"""Writes small SQLite files: same tables, same bytes."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

#: Rows of a table; all of one length.
Rows = Sequence[Sequence[object]]


def write_database(path: Path, declarations: str, tables: Mapping[str, Rows], indexes: str = "") -> None:
    """Write a new database. `declarations` and `indexes` are SQL; `tables` holds the rows by table."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; {declarations}")
        connection.execute("BEGIN")
        for name, rows in tables.items():
            if rows:
                marks = ", ".join("?" * len(rows[0]))
                connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)  # noqa: S608 - own names
        connection.execute("COMMIT")
        connection.executescript(indexes)
    finally:
        connection.close()
