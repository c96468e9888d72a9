"""Text files of several ranks, made into tables together where they are plain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources.compiled.link_columns import LinkColumns, link_columns, links_of
from cluster_analysis.sources.compiled.operator_columns import operator_columns, packets_of
from cluster_analysis.sources.errors import BadFileError, Remark
from cluster_analysis.sources.text.api_statistic_csv import apis_of
from cluster_analysis.sources.text.communication_json import PlainOperators
from cluster_analysis.sources.text.csv_text import has_column, read_alike
from cluster_analysis.sources.text.json_text import read_bytes, read_with_offset
from cluster_analysis.sources.text.op_statistic_csv import operators_of
from cluster_analysis.sources.text.step_trace_csv import DEVICE, steps_of
from cluster_run.facts import Fact

#: A file's path, and whose it is.
FileOfRank = tuple[str, int]
_TextTable = Callable[[pa.Table, npt.NDArray[np.int32], Remark], pa.Table]
STEP_TRACE = "step_trace"
#: Of each role of a CSV file how its text becomes a table.
_TABLES: Mapping[str, _TextTable] = {
    STEP_TRACE: steps_of,
    "op_statistic": operators_of,
    "api_statistic": apis_of,
}
CSV_ROLES = tuple(_TABLES)


class NotPlainError(Exception):
    """A reader had something to tell."""


def plain_operators(files: Sequence[FileOfRank]) -> dict[str, PlainOperators]:
    """Return the operators of communication files, by path."""
    found = []
    for path, rank in files:
        try:
            content, n_skipped = read_with_offset(Path(path))
        except BadFileError:
            continue
        columns = operator_columns(content, rank, None)
        if columns is not None:
            found.append((path, columns, n_skipped))
    if not found:
        return {}
    try:
        packets, owners = packets_of([columns for _, columns, _ in found], tell)
    except NotPlainError:
        return {}
    parts = parts_of(packets, np.bincount(owners, minlength=len(found)))
    return {
        path: PlainOperators(columns, own, n_skipped)
        for (path, columns, n_skipped), own in zip(found, parts, strict=True)
    }


def plain_links(files: Sequence[FileOfRank]) -> dict[str, pa.Table]:
    """Return LINKS of matrix files, by path."""
    found: list[tuple[str, int, LinkColumns]] = []
    for path, rank in files:
        try:
            columns = link_columns(read_bytes(Path(path)), None)
        except BadFileError:
            continue
        if columns is not None and not (columns.has_missing or columns.has_negative):
            found.append((path, rank, columns))
    if not found:
        return {}
    read = [columns for _, _, columns in found]
    links = links_of(read, [rank for _, rank, _ in found])
    parts = parts_of(links, [len(one.steps) for one in read])
    return {path: own for (path, _, _), own in zip(found, parts, strict=True)}


def plain_csv(role: str, files: Sequence[FileOfRank]) -> tuple[dict[str, pa.Table], set[str]]:
    """Return the tables of CSV files of one of `CSV_ROLES` by path, and those that name no device."""
    of_rank = dict(files)
    alike = read_alike(list(of_rank))
    if not alike.paths:
        return {}, set()
    ranks = np.repeat(np.array([of_rank[path] for path in alike.paths], np.int32), alike.n_rows)
    try:
        table = _TABLES[role](alike.text, ranks, tell)
    except (NotPlainError, BadFileError):
        return {}, set()
    of_no_device: set[str] = set() if has_column(alike.text, DEVICE) else set(alike.paths)
    return dict(zip(alike.paths, parts_of(table, alike.n_rows), strict=True)), of_no_device


def parts_of(table: pa.Table, counts: Sequence[int] | npt.NDArray[np.int64]) -> list[pa.Table]:
    """Cut a table into pieces of so many rows each."""
    places = pairwise(np.cumsum([0, *counts]).tolist())
    return [table.slice(begin, end - begin) for begin, end in places]


def tell(why: Fact, *also: Fact) -> None:
    """Leave the files to whoever reads them one by one."""
    raise NotPlainError(why, *also)
