"""Which tables a database has, and which columns; a table is looked at when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

_TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
#: Computed columns, and those of virtual tables, are hidden.
_COLUMNS = "SELECT name FROM pragma_table_xinfo(?) WHERE NOT hidden"
_Rows: TypeAlias = Callable[[str, tuple[object, ...]], list[tuple[Any, ...]]]
#: Columns as they are spelled, by name in lower case.
Columns: TypeAlias = Mapping[str, str]


class Schema:
    """All tables and views of a database, by name in lower case."""

    def __init__(self, rows: _Rows) -> None:
        self._rows = rows
        self._names = {str(name).casefold(): str(name) for (name,) in rows(_TABLES, ())}
        self._columns: dict[str, Columns] = {}

    def columns(self, table: str) -> Columns:
        """Return the columns of a table; none where there is no such table."""
        key = table.casefold()
        if key not in self._columns:
            found = self._rows(_COLUMNS, (self._names[key],)) if key in self._names else ()
            self._columns[key] = {str(name).casefold(): str(name) for (name,) in found}
        return self._columns[key]
