"""The files that MindStudio Insight opens: four text files, or one database, never both.

Insight takes a tree that holds any database as a database project and then passes over everything in
text. So the form follows the captures: a database as soon as one rank has one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from cluster_analysis.engine_tasks import canonical
from cluster_analysis.insight import communication, matrix, op_index
from cluster_analysis.insight.group_file import group_json, group_rows
from cluster_analysis.insight.naming import members_by_group
from cluster_analysis.insight.step_table import csv_text, step_rows
from cluster_analysis.model import RankSource, Selection
from cluster_analysis.pipeline import Examined
from cluster_run.ids import Rank

#: Ranks indexed by one task: a millisecond or two each.
_INDEX_BATCH = 32
_BUFFER_BYTES = 1024 * 1024


def is_database_job(sources: Iterable[RankSource]) -> bool:
    """Return whether Insight will take these captures as databases."""
    return any(source.kind.endswith("/db") for source in sources)


def write_text_files(examined: Examined, selection: Selection, folder: Path) -> None:
    """Write the four text files into `folder`.

    Raises:
        InputError: an input has changed since it was read.
        OSError: they cannot be written.
    """
    topology = examined.result.topology
    read = examined.read
    members = members_by_group(topology, _mentions(read.uses))
    _write(folder / "cluster_step_trace_time.csv", csv_text(step_rows(read.steps, topology)))
    rows = group_rows(read.uses, topology, read.metadata)
    _write(folder / "communication_group.json", group_json(rows))
    with (folder / "cluster_communication_matrix.json").open("wb", _BUFFER_BYTES) as stream:
        matrix.write_matrix(_matrix(examined), members, stream)
    with (folder / "cluster_communication.json").open("wb", _BUFFER_BYTES) as stream:
        communication.write_communication(_communication_input(examined, selection, members), stream)


def _mentions(uses: pa.Table) -> dict[str, set[Rank]]:
    mentioned: dict[str, set[Rank]] = {}
    for rank, group in zip(uses["rank"].to_pylist(), uses["group"].to_pylist(), strict=True):
        mentioned.setdefault(group or "", set()).add(Rank(rank))
    return mentioned


def _matrix(examined: Examined) -> pa.Table:
    calls = [(step, examined.result.topology, examined.read.parts(step)) for step in examined.read.bulk_steps]
    outcomes = examined.engine.run(matrix.matrix_of_step, calls)
    return canonical([one.value for one in outcomes if one.value is not None], matrix.MATRIX)


def _communication_input(
    examined: Examined, selection: Selection, members: dict[str, tuple[Rank, ...]]
) -> communication.CommunicationInput:
    # Only ranks whose operators were read: a file that was found bad is named there, and missing here.
    readable = set(examined.read.totals["rank"].unique().to_pylist())
    sources = [
        source for source in examined.sources if source.rank in readable and op_index.ROLE in source.files
    ]
    calls = [
        (sources[begin : begin + _INDEX_BATCH], selection) for begin in range(0, len(sources), _INDEX_BATCH)
    ]
    outcomes = examined.engine.run(op_index.index_ranks, calls)
    return communication.CommunicationInput(
        index=canonical([one.value for one in outcomes if one.value is not None], op_index.INDEX),
        totals=examined.read.totals,
        packets=examined.read.packets,
        members=members,
        files={source.rank: source.files[op_index.ROLE] for source in sources},
    )


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
