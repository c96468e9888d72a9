"""What the tables of a database are declared as: their columns, and where each begins in the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

#: In `hidden`: 0 for usual columns, else what is computed or belongs to a virtual table.
_TABLES = (
    "SELECT m.name, m.rootpage, m.sql, x.name, x.type, x.pk, x.hidden FROM sqlite_master AS m "
    "JOIN pragma_table_xinfo(m.name) AS x WHERE m.type = 'table' AND m.rootpage > 0"
)
#: Views and virtual tables: looking at one may fail.
_OTHERS = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND rootpage = 0"
_OTHER = "SELECT ?, 0, '', name, type, pk, hidden FROM pragma_table_xinfo(?)"
_Rows = Callable[[str, tuple[object, ...]], list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Declared:
    """One table.

    Attributes:
        columns: its columns as they are spelled, by name in lower case, without computed ones.
        root: the first of its pages; 0 for what is no plain table, whose rows only SQLite can read.
        row_number: which column is the number of the row, and not stored; -1 for none.
        reals: for each column whether SQLite makes a float of a whole number in it.
    """

    columns: Mapping[str, str]
    root: int
    row_number: int
    reals: tuple[bool, ...]


class Schema:
    """All tables of a database, read at once; what is no plain table only when asked for."""

    def __init__(self, rows: _Rows) -> None:
        self._rows = rows
        found: dict[str, list[tuple[Any, ...]]] = {}
        for row in rows(_TABLES, ()):
            found.setdefault(str(row[0]).casefold(), []).append(row)
        self._tables = {name: _declared(columns) for name, columns in found.items()}
        self._others = {str(name).casefold() for (name,) in rows(_OTHERS, ())}

    def table(self, name: str) -> Declared:
        """Return what a table is declared as; it has no columns where there is none."""
        key = name.casefold()
        if key not in self._tables:
            self._tables[key] = _declared(self._rows(_OTHER, (name, name)) if key in self._others else [])
        return self._tables[key]


def _declared(found: list[tuple[Any, ...]]) -> Declared:
    """Return a table of rows of `_TABLES`, one a column."""
    if not found:
        return Declared({}, 0, -1, ())
    root, sql = found[0][1:3]
    columns = {str(name).casefold(): str(name) for *_, name, _, _, hidden in found if not hidden}
    kinds = [str(kind).upper() for *_, kind, _, _ in found]
    keys = [at for at, (*_, key, _) in enumerate(found) if key]
    has_number = len(keys) == 1 and kinds[keys[0]] == "INTEGER"
    # A descending key is stored, unlike every other one; computed columns may be stored or not.
    is_odd = (has_number and "desc" in str(sql).casefold()) or len(columns) < len(found)
    return Declared(
        columns, 0 if is_odd else int(root), keys[0] if has_number else -1, tuple(map(_is_real, kinds))
    )


def _is_real(kind: str) -> bool:
    """Return whether a declared type means REAL, by the rules of https://www.sqlite.org/datatype3.html."""
    others = ("INT", "CHAR", "CLOB", "TEXT", "BLOB")
    return not any(name in kind for name in others) and any(name in kind for name in ("REAL", "FLOA", "DOUB"))
