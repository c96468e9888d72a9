"""Columns files of several ranks, made into tables together where nothing of them is to be told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from cluster_analysis.sources.columns.links import LinkFile, table_of
from cluster_analysis.sources.columns.operators import OperatorFile, tables_of
from cluster_analysis.sources.columns.place import columns_of
from cluster_analysis.sources.errors import BadFileError
from cluster_analysis.sources.reading import path_of
from cluster_analysis.sources.text.communication_json import CommunicationTables
from cluster_analysis.sources.together.plain_text import FileOfRank
from cluster_analysis.sources.together.whole import parts_of

_File = TypeVar("_File", OperatorFile, LinkFile)


def operators_of_columns(files: Sequence[FileOfRank]) -> dict[str, CommunicationTables]:
    """Return the tables of communication files that are here as columns, by path."""
    found = _whole(files, OperatorFile)
    if not found:
        return {}
    read = list(found.values())
    tables = tables_of(read)
    parts = zip(
        parts_of(tables.collectives, [one.n_rows for one in read]),
        parts_of(tables.packets, [len(one.packets.steps) for one in read]),
        parts_of(tables.sums, [len(one.sums.steps) for one in read]),
        strict=True,
    )
    return {
        path: CommunicationTables(collectives, packets, sums=sums)
        for path, (collectives, packets, sums) in zip(found, parts, strict=True)
    }


def links_of_columns(files: Sequence[FileOfRank]) -> dict[str, pa.Table]:
    """Return LINKS of matrix files that are here as columns, by path."""
    found = _whole(files, LinkFile)
    parts = parts_of(table_of(list(found.values())), [one.n_rows for one in found.values()])
    return dict(zip(found, parts, strict=True))


def _whole(
    files: Sequence[FileOfRank], read: Callable[[Path, int, frozenset[int] | None], _File]
) -> dict[str, _File]:
    found = {}
    for path, rank in files:
        columns = columns_of(path_of(path))
        try:
            one = None if columns is None else read(columns, rank, None)
        except (BadFileError, ValueError, ArithmeticError, LookupError):
            # Whoever reads the rank alone says what is wrong.
            continue
        if one is not None and one.is_whole():
            found[path] = one
    return found
