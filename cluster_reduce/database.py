"""SQLite databases of the profilers → columns of the tables and columns that the analysis asks for.

They become a database again, in memory, with the same row numbers, types and indexes, and are asked the same.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

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
    "enum_api_type": None,
    "enum_hccl_data_type": None,
    "gc_record": ("startns", "endns"),
    "host_info": ("hostname",),
    "memory_record": ("component", "timestamp", "totalallocated", "totalreserved", "totalactive"),
    "meta_data": ("name", "value"),
    "pytorch_api": ("startns", "endns", "name"),
    "rank_device_map": ("rankid", "deviceid"),
    "step_time": ("id", "startns", "endns"),
    "steptracetime": None,
    "string_ids": ("id", "value"),
    "task": ("startns", "endns", "globaltaskid", "tasktype", "connectionid"),
}  # fmt: skip

_COLUMNS = "SELECT name, type, pk FROM pragma_table_info(?)"
_INDEXES = "SELECT name FROM pragma_index_list(?) ORDER BY seq DESC"
_INDEXED = "SELECT name FROM pragma_index_info(?)"
#: A span's end is near to its begin.
_BEGIN, _END = "startns", "endns"
_KINDS = {int: 0, float: 1, str: 2, type(None): 3, bytes: 4}


def reduce_database(path: bytes, size_bytes: int) -> bytes:
    """Return the columns of the file at `path`.

    Raises:
        UnfitError: anything in the file is not as usual, or damaged.
    """
    name = f"file:{quote(path)}?mode=ro&immutable=1"
    try:
        connection = sqlite3.connect(name, uri=True)
        try:
            return _reduced(connection, size_bytes)
        finally:
            connection.close()
    except (sqlite3.Error, OverflowError, ValueError) as error:
        raise UnfitError(f"the database: {error}") from None


def _reduced(connection: sqlite3.Connection, size_bytes: int) -> bytes:
    if connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
        raise UnfitError("a damaged database")
    writer = Writer("database", size_bytes)
    tables: list[dict[str, Any]] = []
    for name, kind in connection.execute("SELECT name, type FROM sqlite_master ORDER BY rowid").fetchall():
        wanted = WANTED.get(name.lower(), ()) if kind in ("table", "view") else ()
        if wanted == ():
            continue
        if kind == "view":
            raise UnfitError("a view in the place of a table")
        tables.append(_table(connection, name, wanted, writer, f"t{len(tables)}"))
    return writer.content(tables=tables, wanted=WANTED)


def _table(
    connection: sqlite3.Connection, name: str, wanted: Sequence[str] | None, writer: Writer, prefix: str
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
    query = f"SELECT {names} FROM {_quoted(name)} ORDER BY rowid"  # noqa: S608 - quoted
    cells = list(zip(*connection.execute(query).fetchall())) or [()] * (1 + len(kept))
    writer.ints(prefix + ".rowid", cells[0])
    begin = ""
    for at, values in enumerate(cells[1:]):
        base = [begin] if begin and kept[at]["name"].lower() == _END else []
        _add_cells(writer, f"{prefix}.{at}", values, base)
        is_begin = kept[at]["name"].lower() == _BEGIN and all(type(value) is int for value in values)
        begin = f"{prefix}.{at}" if is_begin else begin
    return {"name": name, "columns": kept, "indexes": _indexes(connection, name, kept)}


def _add_cells(writer: Writer, name: str, values: Sequence[Any], base: Sequence[str] = ()) -> None:
    """Add a column in which each cell has a type of its own; whole numbers may be near to those of `base`."""
    writer.ints(name + ".kinds", [_KINDS[type(value)] for value in values])
    whole = [value for value in values if type(value) is int]
    writer.ints(name + ".ints", whole, [one + ".ints" for one in base] if len(whole) == len(values) else ())
    writer.floats(name + ".floats", [value for value in values if type(value) is float])
    writer.names(name + ".texts", [value for value in values if type(value) is str])
    writer.texts(name + ".blobs", [value.hex() for value in values if type(value) is bytes])


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
