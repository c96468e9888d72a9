"""The files that MindStudio Insight opens: four text files, or one database, never both.

Insight takes a tree that holds any database as a database project and then passes over everything in
text. So the form follows the captures: a database as soon as one rank has one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.engine.protocol import Engine, Outcome
from cluster_analysis.engine.tasks import SpanFile, SpanTable, collectives_of_step, spans_of_parts
from cluster_analysis.insight import communication, matrix
from cluster_analysis.insight.database import InsightDatabase
from cluster_analysis.insight.group_file import group_json, group_rows
from cluster_analysis.insight.naming import members_by_group
from cluster_analysis.insight.step_table import csv_text, step_rows
from cluster_analysis.output_folder import INSIGHT_DATABASE_NAME
from cluster_analysis.pipeline import Examined
from cluster_analysis.sources.errors import BadFileError, unheard
from cluster_analysis.sources.text.bandwidth_rows import BandwidthRow, bandwidth_rows
from cluster_analysis.tables.model import RankSource
from cluster_run.errors import InputError
from cluster_run.ids import HostId, Rank, Step

#: Databases that hold bandwidths with their packet sizes.
_BANDWIDTH_ROLES = ("analysis_db", "communication_db")

_COMMUNICATION_ROLE = "communication"


#: A function that writes a file, what it is made of, and the path.
_Writing = tuple[Callable[[Any, str], None], Any, str]


def is_database_job(sources: Iterable[RankSource]) -> bool:
    """Return whether Insight will take these captures as databases."""
    return any(source.kind.endswith("/db") for source in sources)


def write_text_files(examined: Examined, folder: Path) -> None:
    """Write the four text files into `folder`.

    Raises:
        InputError: an input has changed since it was read.
        OSError: they cannot be written.
    """
    topology = examined.topology
    read = examined.read
    members = members_by_group(topology, _mentions(read.uses))
    _write(folder / "cluster_step_trace_time.csv", csv_text(step_rows(read.steps, topology)))
    rows = group_rows(read.uses, topology, read.metadata)
    _write(folder / "communication_group.json", group_json(rows))
    writings: list[_Writing] = [
        (
            communication.write_communication_file,
            _communication_input(examined, members),
            str(folder / "cluster_communication.json"),
        ),
        (
            matrix.write_matrix_file,
            matrix.MatrixInput(_matrix(examined), members),
            str(folder / "cluster_communication_matrix.json"),
        ),
    ]
    _do(writings, examined.engine)


def _do(writings: Sequence[_Writing], engine: Engine) -> None:
    """Write large files where it holds up nobody: by the workers, if they see our files."""
    if not engine.shares_files:
        for write, given, path in writings:
            write(given, path)
        return
    for outcome, (_, _, path) in zip(engine.run(_write_one, writings), writings, strict=True):
        if outcome.failure:
            raise InputError(f"{Path(path).name}: {outcome.failure}")


def _write_one(write: Callable[[Any, str], None], given: Any, path: str) -> None:
    write(given, path)


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


def _places(
    examined: Examined,
) -> tuple[list[tuple[str, str]], list[tuple[int, int | None, str]]]:
    topology, addresses = examined.topology, examined.shown_addresses
    hosts = sorted(set(topology.hosts.values()), key=lambda host: (len(host), host))
    ranks: list[tuple[int, int | None, str]] = [
        (source.rank, topology.devices.get(source.rank), topology.hosts.get(source.rank, HostId("")))
        for source in examined.sources
    ]
    return [(host, addresses.get(host, host)) for host in hosts], ranks


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
    calls = [(read.parts(step),) for step in read.bulk_steps]
    for outcome in examined.engine.run(collectives_of_step, calls):
        if outcome.value is not None:
            database.add_operators(outcome.value)
            summed = pc.invert(
                pc.is_in(outcome.value["rank"], value_set=pa.array(sorted(detailed), pa.int32()))
            )
            database.add_summed_bandwidths(outcome.value.filter(summed))


def _bandwidths_of(path: Path, steps: frozenset[Step] | None) -> list[BandwidthRow]:
    """Return the wanted rows of a database; none of a damaged one, which reading it has told."""
    try:
        return [row for row in bandwidth_rows(path, unheard) if steps is None or row[0] in steps]
    except BadFileError:
        return []


def _mentions(uses: pa.Table) -> dict[str, set[Rank]]:
    mentioned: dict[str, set[Rank]] = {}
    for rank, group in zip(uses["rank"].to_pylist(), uses["group"].to_pylist(), strict=True):
        mentioned.setdefault(group or "", set()).add(Rank(rank))
    return mentioned


def _matrix(examined: Examined) -> pa.Table:
    calls = [(step, examined.topology, examined.read.parts(step)) for step in examined.read.bulk_steps]
    outcomes = examined.engine.run(matrix.matrix_of_step, calls)
    return _joined(outcomes, matrix.MATRIX)


def _joined(outcomes: Iterable[Outcome[pa.Table]], schema: pa.Schema) -> pa.Table:
    """Return all rows in one piece: each piece would carry the whole dictionary to the worker that writes."""
    tables = [one.value for one in outcomes if one.value is not None]
    return pa.concat_tables([schema.empty_table(), *tables]).unify_dictionaries().combine_chunks()


def _communication_input(
    examined: Examined, members: dict[str, tuple[Rank, ...]]
) -> communication.CommunicationInput:
    # Only ranks whose operators were read: a file that was found bad is named there, and missing here.
    readable = set(examined.read.totals["rank"].unique().to_pylist())
    return communication.CommunicationInput(
        spans=_span_parts(examined),
        totals=examined.read.totals,
        packets=examined.read.packets,
        members=members,
        files={
            source.rank: source.files[_COMMUNICATION_ROLE]
            for source in examined.sources
            if source.rank in readable and _COMMUNICATION_ROLE in source.files
        },
    )


def _span_parts(examined: Examined) -> Sequence[SpanTable | SpanFile]:
    """Return where the operators lie, as values that whoever writes can load."""
    parts: Sequence[Any] = examined.read.span_parts()
    if examined.engine.shares_files:
        return parts
    outcomes = examined.engine.run(spans_of_parts, [([part],) for part in parts])
    return [SpanTable(one.value) for one in outcomes if one.value is not None]


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
