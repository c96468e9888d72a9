"""Text files of several ranks, made into tables together where they are plain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from cluster_analysis.sources.compiled.layout import Layout
from cluster_analysis.sources.compiled.link_columns import links_of_files
from cluster_analysis.sources.compiled.operator_columns import operators_of_files
from cluster_analysis.sources.errors import BadFileError, Remark
from cluster_analysis.sources.text.api_statistic_csv import apis_of
from cluster_analysis.sources.text.communication_json import CommunicationTables
from cluster_analysis.sources.text.csv_text import read_alike
from cluster_analysis.sources.text.op_statistic_csv import operators_of
from cluster_analysis.sources.text.step_trace_csv import devices_of, steps_of
from cluster_analysis.sources.together.whole import Laid, Whole, whole
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


def plain_operators(
    files: Sequence[FileOfRank], *, with_spans: bool
) -> tuple[dict[str, CommunicationTables], tuple[Whole, ...]]:
    """Return the tables of communication files, by path, and those of all of them."""
    read = operators_of_files(*_paths_and_ranks(files), with_places=with_spans)
    if read is None:
        return {}, ()
    try:
        packets, owners = read.packets(tell)
        collectives = read.collectives(tell)
    except NotPlainError:
        return {}, ()
    n_packets = np.bincount(owners, minlength=len(files))[np.array(read.counts) >= 0]
    laid = _laid(collectives, read.layout)
    if laid.laid is not None:
        laid = replace(laid, laid=replace(laid.laid, totals=read.totals(), uses=read.uses()))
    wholes = [laid, whole(packets, n_packets)]
    if with_spans:
        wholes.append(whole(read.spans(), read.counts))
    found = [CommunicationTables(*one) for one in zip(*(one.parts for one in wholes), strict=True)]
    return dict(zip(_taken(files, read.counts), found, strict=True)), tuple(wholes)


def _laid(table: pa.Table, layout: Layout) -> Whole:
    """Return a table that is laid by step, and the piece of each file."""
    parts = tuple(layout.by_file(table).values())
    return Whole(table, parts, Laid(layout.by_step(table))) if layout.are_distinct() else Whole(None, parts)


def plain_links(files: Sequence[FileOfRank]) -> tuple[dict[str, pa.Table], tuple[Whole, ...]]:
    """Return LINKS of matrix files, by path, and of all of them."""
    read = links_of_files(*_paths_and_ranks(files))
    if read is None:
        return {}, ()
    links = _laid(read.links(), read.layout)
    return dict(zip(_taken(files, read.counts), links.parts, strict=True)), (links,)


def _paths_and_ranks(files: Sequence[FileOfRank]) -> tuple[list[str], list[int]]:
    return [path for path, _ in files], [rank for _, rank in files]


def _taken(files: Sequence[FileOfRank], counts: Sequence[int]) -> list[str]:
    return [path for (path, _), count in zip(files, counts, strict=True) if count >= 0]


class PlainCsv(Struct, frozen=True):
    """The tables of CSV files by path, the devices that step times name, and the table of all of them."""

    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    devices: Mapping[str, int | None] = field(default_factory=dict)
    wholes: tuple[Whole, ...] = ()


def plain_csv(role: str, files: Sequence[FileOfRank]) -> PlainCsv:
    """Return what is plain of CSV files of one of `CSV_ROLES`."""
    of_rank = dict(files)
    alike = read_alike(list(of_rank))
    if not alike.paths:
        return PlainCsv()
    ranks = np.repeat(np.array([of_rank[path] for path in alike.paths], np.int32), alike.n_rows)
    try:
        table = whole(_TABLES[role](alike.text, ranks, tell), alike.n_rows)
    except (NotPlainError, BadFileError):
        return PlainCsv()
    devices = devices_of(alike.text, alike.n_rows) if role == STEP_TRACE else []
    return PlainCsv(
        dict(zip(alike.paths, table.parts, strict=True)),
        dict(zip(alike.paths, devices, strict=False)),
        (table,),
    )


def tell(why: Fact, *also: Fact) -> None:
    """Leave the files to whoever reads them one by one."""
    raise NotPlainError(why, *also)
