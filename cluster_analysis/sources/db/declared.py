"""What a table of a database is declared as: its columns, and where it begins in the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_DECLARED = "SELECT rootpage, sql FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE"
#: In `hidden`: 0 for usual columns, else what is computed or belongs to a virtual table.
_COLUMNS = "SELECT name, type, pk, hidden FROM pragma_table_xinfo(?)"
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


def declared(rows: _Rows, table: str) -> Declared:
    """Return what a table is declared as; it has no columns where there is none."""
    found = rows(_COLUMNS, (table,))
    columns = {str(name).casefold(): str(name) for name, _, _, hidden in found if not hidden}
    (root, sql), *_ = (rows(_DECLARED, (table,)) if columns else []) or [(0, "")]
    keys = [at for at, (_, kind, key, _) in enumerate(found) if key and str(kind).upper() == "INTEGER"]
    has_number = len(keys) == 1 and sum(bool(key) for _, _, key, _ in found) == 1
    # A descending key is stored, unlike every other one; computed columns may be stored or not.
    is_odd = (has_number and "desc" in str(sql).casefold()) or len(columns) < len(found)
    return Declared(
        columns,
        0 if is_odd else int(root or 0),
        keys[0] if has_number else -1,
        tuple(_is_real(str(kind).upper()) for _, kind, _, _ in found),
    )


def _is_real(kind: str) -> bool:
    """Return whether a declared type means REAL, by the rules of https://www.sqlite.org/datatype3.html."""
    others = ("INT", "CHAR", "CLOB", "TEXT", "BLOB")
    return not any(name in kind for name in others) and any(name in kind for name in ("REAL", "FLOA", "DOUB"))
