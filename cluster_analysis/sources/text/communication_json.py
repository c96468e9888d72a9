"""communication.json: one entry a communication operator, in ms and MB.

    {"step13": {"p2p": {}, "collective": {"hcom_allReduce__586_0_1@<group>": {
        "Communication Time Info": {"Start Timestamp(us)": …, "Elapse Time(ms)": …, …},
        "Communication Bandwidth Info": {"HCCS": {"Transit Size(MB)": …, "Size Distribution": {…}}, …}}}}}

PROF_* exports lack the step and the p2p/collective level. Totals are skipped. `SDMA` repeats what HCCS,
PCIE and SIO hold, so it is not read. "Idle" is spelled "Idel" in the documentation; both are read.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
from msgspec.structs import replace

from cluster_analysis.sources.columns.columns import GivenColumns
from cluster_analysis.sources.columns.columns_file import ColumnsFile
from cluster_analysis.sources.columns.operators import read_operators
from cluster_analysis.sources.columns.place import columns_of
from cluster_analysis.sources.communication_tables import CommunicationTables
from cluster_analysis.sources.compiled.operator_columns import operators_of_files
from cluster_analysis.sources.errors import Remark
from cluster_analysis.sources.text.json_text import read_with_offset
from cluster_analysis.tables.schema import OPERATOR_SPANS
from cluster_reduce.communication import write_operators


def read_communication(
    path: Path, rank: int, steps: frozenset[int] | None, remark: Remark, *, with_spans: bool = True
) -> CommunicationTables:
    """Return the operators of one file, their packets, and (`with_spans`) where each operator lies.

    Raises:
        BadFileError: nothing of the file can be used.
    """
    sent = columns_of(path)
    if sent is not None:
        return read_operators(ColumnsFile(sent, "communication"), rank, steps, remark)
    plain = operators_of_files([str(path)], [rank], steps, with_places=with_spans)
    if plain is not None:
        tables = CommunicationTables(plain.collectives(), plain.packets)
        return replace(tables, spans=plain.spans()) if with_spans else tables
    content, n_skipped = read_with_offset(path)
    tables = read_operators(GivenColumns(write_operators, content, remark), rank, steps, remark)
    if n_skipped:
        offsets = pc.add(tables.spans["offset"], n_skipped)
        at = OPERATOR_SPANS.get_field_index("offset")
        tables = replace(tables, spans=tables.spans.set_column(at, OPERATOR_SPANS.field(at), offsets))
    return tables if with_spans else replace(tables, spans=OPERATOR_SPANS.empty_table())
