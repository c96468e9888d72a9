"""SQLite databases of the profilers → columns of the tables and columns that the analysis asks for.

They become a database again, in memory, with the same row numbers, types and indexes, and are asked the same.
"""

from __future__ import annotations

import os
import sqlite3
from array import array
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from cluster_reduce.database_rows import condition_of
from cluster_reduce.form import UnfitError, Writer

#: Columns of each table, in lower case; None is all of them.
WANTED: dict[str, tuple[str, ...] | None] = {
    "aicore_freq": ("freq", "timestampns"),
    "cann_api": ("startns", "endns", "type", "name", "connectionid"),
    "commanalyzerbandwidth": None,
    "commanalyzermatrix": None,
    "commanalyzertime": None,
    "communication_op": (
        "opid", "opname", "groupname", "startns", "endns", "count", "datatype", "retry", "relay", "deviceid",
    ),
    "communication_task_info": (
        "globaltaskid", "tasktype", "srcrank", "dstrank", "linktype", "size", "opid",
    ),
    "compute_task_info": (
        "globaltaskid", "name", "optype", "tasktype", "inputshapes", "outputshapes", "opstate",
    ),
    "ccu": ("startns", "endns"),
    "enum_api_type": None,
    "enum_hccl_data_type": None,
    "hccs": ("txthroughput", "rxthroughput"),
    "gc_record": ("startns", "endns"),
    "host_info": ("hostname", "hostuid"),
    "memory_record": ("component", "timestamp", "totalallocated", "totalreserved", "totalactive"),
    "meta_data": ("name", "value"),
    "mstx_events": ("message", "connectionid"),
    "netdev_stats": (
        "rocenewpktrty", "rocetxerrpkt", "rocerxerrpkt", "rocetxcnppkt", "rocerxcnppkt", "mactxpfcpkt",
        "macrxpfcpkt", "mactxbadbyte", "macrxbadbyte",
    ),
    "nic": ("rxerrors", "txerrors", "rxdropped", "txdropped"),
    "overlap_analysis": ("startns", "endns", "type"),
    "pytorch_api": ("startns", "endns", "name"),
    "rank_device_map": ("rankid", "deviceid"),
    "roce": ("rxerrors", "txerrors", "rxdropped", "txdropped"),
    "sio": ("name", "txdat", "rxdat"),
    "step_time": ("id", "startns", "endns"),
    "steptracetime": None,
    "string_ids": ("id", "value"),
    "task": ("startns", "endns", "globaltaskid", "tasktype", "connectionid", "deviceid"),
    "ub": ("portid", "txudmabind", "rxudmabind"),
}  # fmt: skip

_COLUMNS = "SELECT name, type, pk FROM pragma_table_info(?)"
_INDEXES = "SELECT name FROM pragma_index_list(?) ORDER BY seq DESC"
_INDEXED = "SELECT name FROM pragma_index_info(?)"
_KINDS = {int: 0, float: 1, str: 2, type(None): 3, bytes: 4}
_BATCH_ROWS = 1 << 14


def reduce_database(path: bytes) -> bytes:
    """Return the columns of the file at `path`.

    Raises:
        UnfitError: anything in the file is not as usual, or damaged.
    """
    name = f"file:{quote(os.path.abspath(path))}?mode=ro&immutable=1"
    try:
        connection = sqlite3.connect(name, uri=True)
        try:
            return _reduced(connection, os.stat(path).st_size)
        finally:
            connection.close()
    except (sqlite3.Error, OverflowError, ValueError) as error:
        raise UnfitError(f"the database: {error}") from None


def _reduced(connection: sqlite3.Connection, size_bytes: int) -> bytes:
    if connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
        raise UnfitError("a damaged database")
    writer = Writer("database", size_bytes)
    tables: list[dict[str, Any]] = []
    # Sorting for this must not write to the host's disk.
    connection.execute("PRAGMA temp_store = MEMORY")
    columns = dict(_columns(connection))
    for name, kind in connection.execute("SELECT name, type FROM sqlite_master ORDER BY rowid").fetchall():
        wanted = WANTED.get(name.lower(), ()) if kind in ("table", "view") else ()
        if wanted == ():
            continue
        if kind == "view":
            raise UnfitError("a view in the place of a table")
        condition = condition_of(name.lower(), columns)
        tables.append(_table(connection, name, wanted, condition, writer, f"t{len(tables)}"))
    return writer.content(tables=tables, wanted=WANTED)


def _columns(connection: sqlite3.Connection) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the columns of each table; all in lower case."""
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        yield name.lower(), frozenset(row[0].lower() for row in connection.execute(_COLUMNS, (name,)))


class _Cells:
    """A column in which each cell has a type of its own, in a few bytes a cell."""

    def __init__(self) -> None:
        self.kinds = array("B")
        self.whole, self.floats = array("q"), array("d")
        self.texts: list[str] = []
        self.blobs: list[str] = []

    def add(self, values: Sequence[Any]) -> None:
        """Add cells."""
        try:
            # The usual case at once.
            self.whole.extend(array("q", values))
            self.kinds.extend(bytes(len(values)))
        except TypeError:
            for value in values:
                self._add_one(value)

    def _add_one(self, value: Any) -> None:
        self.kinds.append(_KINDS[type(value)])
        if type(value) is int:
            self.whole.append(value)
        elif type(value) is float:
            self.floats.append(value)
        elif type(value) is str:
            self.texts.append(value)
        elif value is not None:
            self.blobs.append(value.hex())

    def write(self, writer: Writer, name: str) -> None:
        """Write them."""
        writer.ints(name + ".kinds", self.kinds)
        writer.ints(name + ".ints", self.whole)
        writer.floats(name + ".floats", self.floats)
        writer.names(name + ".texts", self.texts)
        writer.texts(name + ".blobs", self.blobs)


def _table(
    connection: sqlite3.Connection,
    name: str,
    wanted: Sequence[str] | None,
    condition: str,
    writer: Writer,
    prefix: str,
) -> dict[str, Any]:
    columns = [
        {"name": column, "type": kind, "is_key": bool(is_key)}
        for column, kind, is_key in connection.execute(_COLUMNS, (name,))
    ]
    # A key of several columns, or of another type, is no row number, and says nothing more.
    keys = [column for column in columns if column["is_key"]]
    for column in keys:
        column["is_key"] = len(keys) == 1 and column["type"].upper() == "INTEGER"
    kept = [column for column in columns if wanted is None or column["name"].lower() in wanted]
    names = ", ".join(["rowid", *(_quoted(column["name"]) for column in kept)])
    where = f" WHERE {condition}" if condition else ""
    query = f"SELECT {names} FROM {_quoted(name)}{where} ORDER BY rowid"  # noqa: S608 - quoted
    cells = [_Cells() for _ in range(1 + len(kept))]
    cursor = connection.execute(query)
    while True:
        rows = cursor.fetchmany(_BATCH_ROWS)
        if not rows:
            break
        for column_cells, values in zip(cells, zip(*rows)):
            column_cells.add(values)
    # Row numbers of SQLite are whole.
    writer.ints(prefix + ".rowid", cells[0].whole)
    for at in range(len(kept)):
        # Written values are freed.
        column_cells, cells[at + 1] = cells[at + 1], _Cells()
        column_cells.write(writer, f"{prefix}.{at}")
    return {"name": name, "columns": kept, "indexes": _indexes(connection, name, kept)}


def _indexes(connection: sqlite3.Connection, table: str, kept: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Return the columns of each index whose columns are all kept."""
    found: list[list[str]] = []
    known = {column["name"] for column in kept}
    for (name,) in connection.execute(_INDEXES, (table,)).fetchall():
        columns = [column for (column,) in connection.execute(_INDEXED, (name,))]
        if columns and set(columns) <= known:
            found.append(columns)
    return found


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
