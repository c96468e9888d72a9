"""The file of a SQLite database as the compiled reader reads it: see https://www.sqlite.org/fileformat2.html."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from msgspec import Struct

from cluster_analysis.sources.compiled.cells import Cells
from cluster_analysis.sources.compiled.table_columns import CELLS, table_columns

_HEAD_BYTES = 100
_PAGE_BYTES = slice(16, 18)
#: Of the head: the form of the file and its pages; of the schema, what vacuums, how texts are written.
_FORM = (slice(0, 24), slice(44, 60), slice(64, 68))
#: Where the schema begins, and its columns.
_ROOT = 1
_ENTRY = (pa.string(), pa.string(), pa.string(), pa.int64(), pa.string())


class SchemaPage(Struct, frozen=True):
    """What a file says of itself, as the compiled reader reads it; SQLite alone says whether it is sound.

    Attributes:
        head: what the file's head says of its form; without counters, sizes and who wrote it.
        entries: type, name, table, first page and declaration of each entry, in their order.
        n_pages: so many the file has.
    """

    head: bytes
    entries: tuple[tuple[Any, ...], ...]
    n_pages: int

    def form(self) -> Hashable:
        """Return what does not tell files of one writer apart."""
        return self.head, tuple((*one[:3], one[3] == 0, one[4]) for one in self.entries)

    def has_roots(self) -> bool:
        """Return whether each entry with pages begins on one of its own."""
        roots = [root for _, _, _, root, _ in self.entries if root != 0]
        return len(set(roots)) == len(roots) and all(
            type(root) is int and 1 < root <= self.n_pages for root in roots
        )


class DatabaseFile:
    """One file, opened when it is first read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1

    def schema(self) -> SchemaPage | None:
        """Return its schema; None where SQLite must read it."""
        try:
            columns = self.table(_ROOT, -1, (CELLS,) * len(_ENTRY))
            head = os.pread(self._file, _HEAD_BYTES, 0)
            n_bytes = os.fstat(self._file).st_size
        except OSError:
            return None
        found = [one for one in columns or () if isinstance(one, pa.Array)]
        # Only a declaration may be missing: that of an index which a table brings with it.
        if tuple(one.type for one in found) != _ENTRY or any(one.null_count for one in found[:4]):
            return None
        page_bytes = int.from_bytes(head[_PAGE_BYTES], "big")
        n_pages = n_bytes // (1 << 16 if page_bytes == 1 else page_bytes)
        entries = zip(*(one.to_pylist() for one in found), strict=True)
        return SchemaPage(b"".join(head[part] for part in _FORM), tuple(entries), n_pages)

    def table(self, root: int, row_number: int, wishes: Sequence[int]) -> list[Cells] | None:
        """Return columns of a table; see `table_columns`.

        Raises:
            OSError: it cannot be opened.
        """
        if self._file < 0:
            self._file = os.open(self._path, os.O_RDONLY)
        return table_columns(self._file, root, row_number, wishes)

    def close(self) -> None:
        """Close it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
