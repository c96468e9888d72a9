"""What the tables of a database are declared as: their columns, and where each begins in the file."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from cluster_analysis.sources.compiled.database_file import SchemaPage

_TABLES = "SELECT name, rootpage, sql FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
#: Views and virtual tables: looking at one may fail.
_OTHERS = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND rootpage = 0"
#: In `hidden`: 0 for usual columns, else what is computed or belongs to a virtual table.
_COLUMNS = "SELECT name, type, pk, hidden FROM pragma_table_xinfo(?)"
_Rows = Callable[[str, tuple[object, ...]], list[tuple[Any, ...]]]
_MOST_KNOWN = 512
#: The rows of `_COLUMNS` by name and declaration of a table, which they follow from: ranks declare the same.
_KNOWN: dict[tuple[str, str], tuple[tuple[Any, ...], ...]] = {}
#: Forms of schemas that SQLite found sound.
_SOUND: set[Hashable] = set()


class Declared(Struct, frozen=True, eq=False):
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


@lru_cache(maxsize=4 * _MOST_KNOWN)
def folded(name: str) -> str:
    """Return a name in lower case; the same few hundred are asked for of each database."""
    return name.casefold()


@lru_cache(maxsize=4 * _MOST_KNOWN)
def has_columns(table: Declared, columns: tuple[str, ...]) -> bool:
    """Return whether there is such a table, with all these columns."""
    return bool(table.columns) and all(column.casefold() in table.columns for column in columns)


class Schema:
    """All tables of a database; the columns of one only when asked for.

    SQLite reads it, unless it has read one that differs in nothing but where tables begin.
    """

    def __init__(self, rows: _Rows, page: SchemaPage | None = None) -> None:
        self._rows = rows
        form = None if page is None or not page.has_roots() else page.form()
        if page is not None and form is not None and form in _SOUND:
            tables = [(one[1], one[3], one[4]) for one in page.entries if one[0] == "table" and one[3]]
            others = [(one[1],) for one in page.entries if one[0] in ("table", "view") and one[3] == 0]
        else:
            tables, others = rows(_TABLES, ()), rows(_OTHERS, ())
            if form is not None:
                if len(_SOUND) >= _MOST_KNOWN:
                    _SOUND.clear()
                _SOUND.add(form)
        self._roots = {str(name).casefold(): (str(name), int(root), str(sql)) for name, root, sql in tables}
        self._others = {str(name).casefold() for (name,) in others}
        self._tables: dict[str, Declared] = {}

    def table(self, name: str) -> Declared:
        """Return what a table is declared as; it has no columns where there is none."""
        key = name.casefold()
        if key not in self._tables:
            self._tables[key] = self._declared(key)
        return self._tables[key]

    def _declared(self, key: str) -> Declared:
        name, root, sql = self._roots.get(key, (key, 0, ""))
        if not root:
            return _declared(tuple(self._rows(_COLUMNS, (name,))) if key in self._others else (), "", 0)
        if (name, sql) not in _KNOWN:
            if len(_KNOWN) >= _MOST_KNOWN:
                _KNOWN.clear()
            _KNOWN[name, sql] = tuple(self._rows(_COLUMNS, (name,)))
        return _declared(_KNOWN[name, sql], sql, root)


@lru_cache(maxsize=_MOST_KNOWN)
def _declared(found: tuple[tuple[Any, ...], ...], sql: str, root: int) -> Declared:
    """Return a table of rows of `_COLUMNS`, one a column."""
    if not found:
        return Declared({}, 0, -1, ())
    columns = {str(name).casefold(): str(name) for name, _, _, hidden in found if not hidden}
    kinds = [str(kind).upper() for _, kind, _, _ in found]
    keys = [at for at, (_, _, key, _) in enumerate(found) if key]
    has_number = len(keys) == 1 and kinds[keys[0]] == "INTEGER"
    # A descending key is stored, unlike every other one; computed columns may be stored or not.
    is_odd = (has_number and "desc" in sql.casefold()) or len(columns) < len(found)
    return Declared(
        columns, 0 if is_odd else root, keys[0] if has_number else -1, tuple(map(_is_real, kinds))
    )


def _is_real(kind: str) -> bool:
    """Return whether a declared type means REAL, by the rules of https://www.sqlite.org/datatype3.html."""
    others = ("INT", "CHAR", "CLOB", "TEXT", "BLOB")
    return not any(name in kind for name in others) and any(name in kind for name in ("REAL", "FLOA", "DOUB"))
