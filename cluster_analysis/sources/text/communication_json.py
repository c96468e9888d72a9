"""communication.json: one entry a communication operator, in ms and MB.

    {"step13": {"p2p": {}, "collective": {"hcom_allReduce__586_0_1@<group>": {
        "Communication Time Info": {"Start Timestamp(us)": …, "Elapse Time(ms)": …, …},
        "Communication Bandwidth Info": {"HCCS": {"Transit Size(MB)": …, "Size Distribution": {…}}, …}}}}}

PROF_* exports lack the step and the p2p/collective level. Totals are skipped. `SDMA` repeats what HCCS,
PCIE and SIO hold, so it is not read. "Idle" is spelled "Idel" in the documentation; both are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from cluster_analysis.sources.columns.columns import GivenColumns
from cluster_analysis.sources.columns.columns_file import ColumnsFile
from cluster_analysis.sources.columns.operators import communication_of
from cluster_analysis.sources.columns.place import columns_of
from cluster_analysis.sources.communication_tables import CommunicationTables
from cluster_analysis.sources.compiled.columns import operators_of_files
from cluster_analysis.sources.compiled.reader import of_plain_files
from cluster_analysis.sources.errors import FileOfRank, Remark
from cluster_analysis.sources.text.json_text import has_no_number, read_with_offset
from cluster_reduce.communication import write_operators


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
    paths = [Path(path) for path, _ in files]
    sent = [columns_of(path) for path in paths]
    plain = of_plain_files(files, sent, partial(operators_of_files, with_places=with_spans))
    if plain is not None:
        return plain
    found = []
    for path, columns, (_, rank) in zip(paths, sent, files, strict=True):
        if columns is not None:
            found.append(communication_of(ColumnsFile(columns, "communication"), rank, remark))
            continue
        content, n_skipped = read_with_offset(path)
        given = GivenColumns(write_operators, content, remark)
        # Parts of a text go to MindStudio Insight as they are.
        is_copied = with_spans and not has_no_number(content)
        found.append(communication_of(given, rank, remark, n_skipped, with_spans=is_copied))
    return found[0] if len(found) == 1 else CommunicationTables.of_ranks(found)
