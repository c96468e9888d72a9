"""The files that MindStudio Insight opens: four text files, or one database, never both.

Insight takes a tree that holds any database as a database project and then passes over everything in
text. So the form follows the captures: a database as soon as one rank has one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.engine.graph import task
from cluster_analysis.engine.local import InProcessEngine
from cluster_analysis.engine.protocol import Engine, Graph, Key
from cluster_analysis.engine.tasks import collectives_of_step
from cluster_analysis.insight import communication, matrix, matrix_file
from cluster_analysis.insight.database import InsightDatabase
from cluster_analysis.insight.group_file import group_json, group_rows
from cluster_analysis.insight.naming import members_by_group
from cluster_analysis.insight.step_table import csv_text, step_rows
from cluster_analysis.output_folder import INSIGHT_DATABASE_NAME, INSIGHT_TEXT_NAMES
from cluster_analysis.pipeline import Examined
from cluster_analysis.sources.columns.place import columns_of
from cluster_analysis.sources.db.bandwidth_db import BandwidthRow, bandwidth_rows
from cluster_analysis.sources.errors import BadFileError, unheard
from cluster_analysis.tables.model import RankSource
from cluster_analysis.tables.schema import rows_of
from cluster_run.errors import InputError
from cluster_run.ids import HostId, Rank, Step

#: Databases that hold bandwidths with their packet sizes.
_BANDWIDTH_ROLES = ("analysis_db", "communication_db")

_COMMUNICATION_ROLE = "communication"
_STEPS, _COMMUNICATION, _MATRIX, _GROUPS = INSIGHT_TEXT_NAMES


def is_database_job(sources: Iterable[RankSource]) -> bool:
    """Return whether Insight will take these captures as databases."""
    return any(source.kind.endswith("/db") for source in sources)


def ranks_without_operators(sources: Sequence[RankSource]) -> tuple[Rank, ...]:
    """Return the ranks with totals alone in cluster_communication.json: those collected as columns.

    Columns hold no text of operators, which that file is copied from. All else is made of the tables, and so
    is all of a database.
    """
    if is_database_job(sources):
        return ()
    return tuple(
        source.rank
        for source in sources
        if _COMMUNICATION_ROLE in source.files and columns_of(Path(source.files[_COMMUNICATION_ROLE]))
    )


def write_text_files(examined: Examined, folder: Path) -> None:
    """Write the four text files into `folder`.

    Raises:
        InputError: an input has changed since it was read.
        OSError: they cannot be written.
    """
    topology = examined.topology
    read = examined.read
    _write(folder / _STEPS, csv_text(step_rows(read.steps, topology)))
    rows = group_rows(read.uses, topology, read.metadata)
    _write(folder / _GROUPS, group_json(rows))
    _run_writings(examined, _writings(examined, folder))


def _writings(examined: Examined, folder: Path) -> Graph:
    """Return the tasks that write the two large files; each gets the path as its last argument."""
    read = examined.read
    members = members_by_group(examined.topology, _mentions(read.uses))
    matrices: list[Key] = [("matrix", step) for step in read.bulk_steps]
    return {
        ("communication file",): task(
            communication.write_communication_file,
            list(read.spans()),
            _communication_input(examined, members),
            str(folder / _COMMUNICATION),
        ),
        ("matrix file",): task(matrix_file.write_matrix_file, matrices, members, str(folder / _MATRIX)),
    }


def _run_writings(examined: Examined, writings: Graph) -> None:
    """Write large files by the workers, if they see our output: there it delays nothing."""
    pieces = {**examined.read.spans(), **_matrices(examined)}
    engine: Engine = examined.engine
    if not engine.writes_output:
        keys = [key for key in pieces if key[0] in ("spans", "matrix")]
        pieces = dict(zip(keys, engine.run(pieces, keys), strict=True))
        engine = InProcessEngine()
    for key, outcome in zip(writings, engine.run({**pieces, **writings}, list(writings)), strict=True):
        if outcome.failure:
            raise InputError(f"{key[0]} for MindStudio Insight: {outcome.failure}")


def _matrices(examined: Examined) -> Graph:
    """Return the graph that makes MATRIX of each step."""
    read = examined.read
    graph: Graph = {("topology",): examined.topology, **read.cut(read.bulk_steps)}
    for step in read.bulk_steps:
        graph["matrix", step] = task(matrix.matrix_of_step, step, ("topology",), read.pieces(step))
    return graph


def write_database(examined: Examined, folder: Path) -> None:
    """Write cluster_analysis.db into `folder`.

    Raises:
        OSError: it cannot be written.
    """
    topology, read = examined.topology, examined.read
    try:
        with InsightDatabase(folder / INSIGHT_DATABASE_NAME) as database:
            database.add_steps(step_rows(read.steps, topology))
            database.add_groups(group_rows(read.uses, topology, read.metadata))
            database.add_places(*_places(examined))
            _add_operators(examined, database)
            database.add_totals(read.totals, read.packets)
            database.add_matrix(_matrix(examined))
    except sqlite3.Error as error:
        raise OSError(f"{folder / INSIGHT_DATABASE_NAME}: {error}") from error


def _places(examined: Examined) -> tuple[list[tuple[str, str]], list[tuple[int, int | None, str]]]:
    topology, addresses = examined.topology, examined.shown_addresses
    ranks: list[tuple[int, int | None, str]] = [
        (source.rank, topology.devices.get(source.rank), topology.hosts.get(source.rank, HostId("")))
        for source in examined.sources
    ]
    return [(host, addresses.get(host, host)) for host in topology.all_hosts], ranks


def _add_operators(examined: Examined, database: InsightDatabase) -> None:
    """Write the operators step by step; bandwidths from the ranks' databases, where those keep steps."""
    read = examined.read
    readable = set(read.totals["rank"].unique().to_pylist())
    detailed: set[int] = set()
    for source in examined.sources:
        for role in _BANDWIDTH_ROLES:
            if source.rank in readable and role in source.files and source.rank not in detailed:
                rows = _bandwidths_of(Path(source.files[role]), examined.options.selection.steps)
                if rows:
                    detailed.add(source.rank)
                    database.add_bandwidths(source.rank, rows)
    for collectives in collectives_by_step(examined):
        database.add_operators(collectives)
        summed = pc.invert(pc.is_in(collectives["rank"], value_set=pa.array(sorted(detailed), pa.int32())))
        database.add_summed_bandwidths(collectives.filter(summed))


def collectives_by_step(examined: Examined) -> Iterator[pa.Table]:
    """Give COLLECTIVES of each step that has some, by rank and start; a step for each worker at a time."""
    read, engine = examined.read, examined.engine
    for begin in range(0, len(read.bulk_steps), engine.n_workers):
        steps = read.bulk_steps[begin : begin + engine.n_workers]
        graph = read.cut(steps)
        for step in steps:
            graph["collectives", step] = task(collectives_of_step, read.pieces(step))
        for outcome in engine.run(graph, [("collectives", step) for step in steps]):
            if outcome.value is not None:
                yield outcome.value


def _bandwidths_of(path: Path, steps: frozenset[Step] | None) -> list[BandwidthRow]:
    """Return the wanted rows of a database; none of a damaged one, which its reader has reported."""
    try:
        return [row for row in bandwidth_rows(path, unheard) if steps is None or row[0] in steps]
    except BadFileError:
        return []


def _mentions(uses: pa.Table) -> dict[str, set[Rank]]:
    mentioned: dict[str, set[Rank]] = {}
    for rank, group in rows_of(uses, "rank", "group"):
        mentioned.setdefault(group or "", set()).add(Rank(rank))
    return mentioned


def _matrix(examined: Examined) -> pa.Table:
    graph = _matrices(examined)
    outcomes = examined.engine.run(graph, [("matrix", step) for step in examined.read.bulk_steps])
    return matrix.of_all_steps([one.value for one in outcomes if one.value is not None])


def _communication_input(
    examined: Examined, members: dict[str, tuple[Rank, ...]]
) -> communication.CommunicationInput:
    # Only ranks whose operators were read: a file that was found bad is named there, and missing here.
    readable = set(examined.read.totals["rank"].unique().to_pylist())
    return communication.CommunicationInput(
        totals=examined.read.totals,
        packets=examined.read.packets,
        members=members,
        files={
            source.rank: source.files[_COMMUNICATION_ROLE]
            for source in examined.sources
            if source.rank in readable and _COMMUNICATION_ROLE in source.files
        },
    )


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
