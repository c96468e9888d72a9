"""Read columns files of several ranks into tables together; refuse those with anything to report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa

from cluster_analysis.sources.columns.columns import Columns
from cluster_analysis.sources.columns.columns_file import ColumnsFile
from cluster_analysis.sources.columns.links import LinkFile, table_of
from cluster_analysis.sources.columns.operators import OperatorFile, tables_of
from cluster_analysis.sources.columns.place import columns_of
from cluster_analysis.sources.communication_tables import CommunicationTables
from cluster_analysis.sources.reading import path_of
from cluster_analysis.sources.together.refused import FileOfRank, RefusedError

_File = TypeVar("_File", OperatorFile, LinkFile)


def operators_of_columns(files: Sequence[FileOfRank]) -> tuple[CommunicationTables, list[frozenset[int]]]:
    """Return the tables of communication files that are here as columns, and the steps of each."""
    found = _whole(files, "communication", OperatorFile)
    return tables_of(found), [frozenset(np.unique(one.steps).tolist()) for one in found]


def links_of_columns(files: Sequence[FileOfRank]) -> tuple[pa.Table, list[int]]:
    """Return LINKS of matrix files that are here as columns, and how many each has."""
    found = _whole(files, "matrix", LinkFile)
    return table_of(found), [one.n_rows for one in found]


def _whole(
    files: Sequence[FileOfRank], kind: str, read: Callable[[Columns, int, frozenset[int] | None], _File]
) -> list[_File]:
    found = []
    for path, rank in files:
        columns = columns_of(path_of(path))
        if columns is None:
            raise RefusedError
        one = read(ColumnsFile(columns, kind), rank, None)
        if not one.is_whole():
            raise RefusedError
        found.append(one)
    return found
