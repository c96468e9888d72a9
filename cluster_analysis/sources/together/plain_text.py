"""Read text files of several ranks into tables together; refuse those with anything to report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct

from cluster_analysis.sources.compiled.link_columns import links_of_files
from cluster_analysis.sources.compiled.operator_columns import operators_of_files
from cluster_analysis.sources.errors import Remark
from cluster_analysis.sources.text.api_statistic_csv import apis_of
from cluster_analysis.sources.text.csv_text import read_alike
from cluster_analysis.sources.text.op_statistic_csv import operators_of
from cluster_analysis.sources.text.step_trace_csv import devices_of, steps_of
from cluster_analysis.sources.together.refused import FileOfRank, RefusedError, refuse
from cluster_analysis.tables.ranks_tables import LaidOperators

_TextTable = Callable[[pa.Table, npt.NDArray[np.int32], Remark], pa.Table]
STEP_TRACE = "step_trace"
#: Of each role of a CSV file how its text becomes a table.
_TABLES: Mapping[str, _TextTable] = {
    STEP_TRACE: steps_of,
    "op_statistic": operators_of,
    "api_statistic": apis_of,
}


class PlainOperators(Struct, frozen=True):
    """The operators of some ranks; of each file the steps that have some."""

    laid: LaidOperators
    packets: pa.Table
    spans: tuple[pa.Table, ...]
    steps: Sequence[frozenset[int]]


def plain_operators(files: Sequence[FileOfRank], *, with_spans: bool) -> PlainOperators:
    """Return what communication files hold."""
    read = operators_of_files(*_paths_and_ranks(files), with_places=with_spans)
    if read is None:
        raise RefusedError
    return PlainOperators(
        LaidOperators(read.layout.by_step(read.collectives()), read.totals(), read.uses()),
        read.packets,
        (read.spans(),) if with_spans else (),
        read.layout.steps_of_files(len(files)),
    )


class PlainLinks(Struct, frozen=True):
    """LINKS by step, and how many each file has."""

    by_step: Mapping[int, pa.Table]
    n_rows: Sequence[int]


def plain_links(files: Sequence[FileOfRank]) -> PlainLinks:
    """Return LINKS of matrix files."""
    read = links_of_files(*_paths_and_ranks(files))
    if read is None:
        raise RefusedError
    return PlainLinks(read.layout.by_step(read.links()), read.counts)


def _paths_and_ranks(files: Sequence[FileOfRank]) -> tuple[list[str], list[int]]:
    return [path for path, _ in files], [rank for _, rank in files]


class PlainCsv(Struct, frozen=True):
    """The table of all files, how many rows of each, and of step times the device that each says it is of."""

    table: pa.Table
    n_rows: Sequence[int]
    devices: Sequence[int | None]


def plain_csv(role: str, files: Sequence[FileOfRank]) -> PlainCsv:
    """Return what CSV files of one of `_TABLES` hold."""
    paths, of_files = _paths_and_ranks(files)
    alike = read_alike(paths, refuse)
    if alike is None:
        raise RefusedError
    ranks = np.repeat(np.array(of_files, np.int32), alike.n_rows)
    table = _TABLES[role](alike.text, ranks, refuse)
    return PlainCsv(table, alike.n_rows, devices_of(alike.text, alike.n_rows) if role == STEP_TRACE else ())
