"""communication.json: one entry a communication operator, in ms and MB; and communication_matrix.json.

    {"step13": {"p2p": {}, "collective": {"hcom_allReduce__586_0_1@<group>": {
        "Communication Time Info": {"Start Timestamp(us)": …, "Elapse Time(ms)": …, …},
        "Communication Bandwidth Info": {"HCCS": {"Transit Size(MB)": …, "Size Distribution": {…}}, …}}}}}

PROF_* exports lack the step and the p2p/collective level. Totals are skipped. `SDMA` repeats what HCCS,
PCIE and SIO hold, so it is not read. "Idle" is spelled "Idel" in the documentation; both are read.

communication_matrix.json has one entry a link; ranks are local to the group. `link_names` parses the names of
its entries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from msgspec.structs import replace

from cluster_analysis.sources.columns.columns import Columns, GivenColumns
from cluster_analysis.sources.columns.columns_file import ColumnsFile
from cluster_analysis.sources.columns.communication import communication_of, links_of
from cluster_analysis.sources.columns.place import columns_of
from cluster_analysis.sources.communication_tables import CommunicationTables
from cluster_analysis.sources.compiled.reader import compiled, links_of_files, operators_of_files
from cluster_analysis.sources.errors import FileOfRank, NotTogetherError, Remark
from cluster_analysis.sources.measured import checked
from cluster_analysis.sources.text.json_text import has_no_number, read_bytes, read_with_offset
from cluster_analysis.tables.schema import one_behind_the_other
from cluster_reduce.communication import operator_columns
from cluster_reduce.matrix import link_columns

_T = TypeVar("_T")


def read_communication(
    files: Sequence[FileOfRank], remark: Remark, *, with_spans: bool = True
) -> CommunicationTables:
    """Return the operators of the files of one or more ranks, their packets, and where each operator lies.

    Args:
        files: they themselves, or columns in their place.
        remark: called with what is left out.
        with_spans: whether also where the operators of a text lie.

    Raises:
        BadFileError: nothing of a file can be used.
        NotTogetherError: one of several files is not of the plain form; alone it is read by Python.
    """
    together = partial(operators_of_files, with_places=with_spans)

    def of_one(path: Path, columns: Path | None, rank: int) -> CommunicationTables:
        if columns is not None:
            return communication_of(ColumnsFile(columns, "communication"), rank)
        content, n_skipped = read_with_offset(path)
        given = GivenColumns(operator_columns, content, remark)
        # Parts of a text go to MindStudio Insight as they are.
        is_copied = with_spans and not has_no_number(content)
        return communication_of(given, rank, n_skipped, with_spans=is_copied)

    found = _of_files(files, together, of_one)
    tables = found[0] if len(found) == 1 else CommunicationTables.of_ranks(found)
    return replace(tables, collectives=checked(tables.collectives, "operators", remark))


def read_matrix(files: Sequence[FileOfRank], remark: Remark) -> pa.Table:
    """Return the links (LINKS) of the files of one or more ranks; `src_rank` and `dst_rank` stay null.

    Raises:
        BadFileError: nothing of a file can be used.
        NotTogetherError: one of several files is not of the plain form; alone it is read by Python.
    """

    def of_one(path: Path, columns: Path | None, rank: int) -> pa.Table:
        given: Columns
        if columns is None:
            given = GivenColumns(link_columns, read_bytes(path), remark)
        else:
            given = ColumnsFile(columns, "matrix")
        return links_of(given, rank)

    links = one_behind_the_other(_of_files(files, links_of_files, of_one))
    return checked(links, "links", remark)


def _of_files(
    files: Sequence[FileOfRank],
    together: Callable[[list[str], list[int]], _T | None],
    of_one: Callable[[Path, Path | None, int], _T],
) -> list[_T]:
    """Return what the compiled reader makes of all files, or what Python makes of each.

    Args:
        files: of one or more ranks.
        together: the compiled reader, of paths and ranks; gives None where a file is not of the plain form.
        of_one: reads a file: its path, that of its columns where they are in its place, and its rank.

    Raises:
        NotTogetherError: one of several files is not plain, or is of another kind than the others.
    """
    paths, ranks = [path for path, _ in files], [rank for _, rank in files]
    sent = [columns_of(Path(path)) for path in paths]
    if any(sent):
        if not all(sent):
            raise NotTogetherError
    elif (found := together(paths, ranks)) is not None:
        return [found]
    elif compiled() is not None and len(files) > 1:
        raise NotTogetherError
    return list(map(of_one, map(Path, paths), sent, ranks))
