"""One rank, read: every file of its capture, each on its own; a bad one costs that file only.

Readers of databases, columns and older profilers are imported when they are first needed: a job of text
files, the most frequent, starts sooner without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from cluster_analysis.sources.communication_tables import CommunicationTables, without_packets
from cluster_analysis.sources.errors import BadFileError
from cluster_analysis.sources.iterations.place import TIMELINE, is_iteration_export, slice_number
from cluster_analysis.sources.missing import tell_what_is_missing
from cluster_analysis.sources.rank_figures import read_figures
from cluster_analysis.sources.reading import (
    Candidate,
    NoDatabases,
    Reading,
    has_databases,
    of_steps,
    or_empty,
    path_of,
)
from cluster_analysis.sources.text.communication_json import read_communication
from cluster_analysis.sources.text.kernel_details_csv import read_kernel_communication, read_kernel_details
from cluster_analysis.sources.text.matrix_json import read_matrix
from cluster_analysis.sources.text.metadata_json import read_metadata, read_profiler_info
from cluster_analysis.sources.text.statistics_csv import read_op_statistic
from cluster_analysis.sources.text.step_trace_csv import read_device_of_steps, read_step_trace
from cluster_analysis.sources.text.timeline_json import read_timeline_steps
from cluster_analysis.tables import schema
from cluster_analysis.tables.model import RankMetadata, RankSource, Selection
from cluster_analysis.tables.rank_tables import RankTables
from cluster_run.ids import DeviceId

#: Tables of a rank, of which rows are of steps.
BY_STEP = ("steps", "collectives", "links", "packets", "spans", "sums")


def read_rank(
    source: RankSource, selection: Selection | None = None, *, with_spans: bool = True
) -> RankTables:
    """Read all files of one rank. Never raises for bad data: see `RankTables.problems`.

    Args:
        source: its files.
        selection: which steps; all without it.
        with_spans: whether also where each operator lies in a text.
    """
    reading = Reading(source, None if selection is None else selection.steps)
    with _databases_kept_open(source):
        if source.kind == "mindspore_r1/text":
            from cluster_analysis.sources.r1.rank import read_r1_rank  # noqa: PLC0415

            tables = read_r1_rank(reading)
        elif is_iteration_export(source.files):
            from cluster_analysis.sources.iterations.rank import read_iteration_export  # noqa: PLC0415

            tables = read_iteration_export(reading)
        else:
            tables = _read_ascend(reading, with_spans)
    if reading.steps is not None:
        wanted = {name: of_steps(getattr(tables, name), reading.steps) for name in BY_STEP}
        tables = replace(tables, **wanted)
    if not reading.problems and not reading.notes:
        return tables
    return replace(tables, problems=tuple(reading.problems), notes=tuple(reading.notes))


def _databases_kept_open(source: RankSource) -> AbstractContextManager[None]:
    """Open each database of a rank once within this: see `kept_open`."""
    if not has_databases(source.files):
        return nullcontext()
    from cluster_analysis.sources.db.sqlite import kept_open  # noqa: PLC0415

    return kept_open()


def _databases(reading: Reading, *, is_mindspore: bool) -> NoDatabases:
    """Return what reads the databases of a rank, and with the first of them import it."""
    if not has_databases(reading.source.files):
        return NoDatabases()
    from cluster_analysis.sources.db.of_rank import Databases  # noqa: PLC0415

    return Databases(reading, is_mindspore=is_mindspore)


def _read_ascend(reading: Reading, with_spans: bool) -> RankTables:
    """Read a capture of PyTorch, MindSpore 2.x or CANN: text where there is text, databases otherwise."""
    rank, is_mindspore = reading.source.rank, reading.source.kind.startswith("ascend_ms")
    databases = _databases(reading, is_mindspore=is_mindspore)
    metadata = reading.first(("metadata", lambda path, _: read_metadata(path)), *databases.metadata())
    metadata = databases.with_host(metadata or RankMetadata())
    metadata = with_info(reading, metadata, _device(reading, databases))
    step_table = reading.first(
        ("step_trace", lambda path, remark: read_step_trace(path, rank, remark)),
        *databases.steps(),
        timeline_steps(reading),
    )
    communication = reading.first(
        (
            "communication",
            lambda path, remark: read_communication([(str(path), rank)], remark, with_spans=with_spans),
        ),
        *databases.communication(),
        kernel_operators(rank),
    )
    links = reading.first(
        ("matrix", lambda path, remark: read_matrix([(str(path), rank)], remark)),
        *databases.links(),
    )
    peers = reading.first(*databases.peers())
    operators = reading.first(
        ("op_statistic", lambda path, remark: read_op_statistic(path, rank, remark)),
        kernel_kinds(rank),
        *databases.operators(),
    )
    collectives = communication.collectives if communication else None
    step_times = None if step_table is None else step_rows(step_table)
    tell_what_is_missing(reading, metadata, step_times, steps_in(collectives), steps_in(links))
    return RankTables(
        rank=rank,
        steps=or_empty(step_table, schema.STEPS),
        collectives=or_empty(collectives, schema.COLLECTIVES),
        links=or_empty(_together(links, peers), schema.LINKS),
        operators=or_empty(operators, schema.OPERATORS),
        packets=or_empty(communication.packets if communication else None, schema.PACKETS),
        metadata=metadata,
        figures=read_figures(reading, databases),
        spans=or_empty(communication.spans if communication else None, schema.OPERATOR_SPANS),
        sums=or_empty(communication.sums if communication else None, schema.HOST_SUMS),
    )


def timeline_steps(reading: Reading) -> Candidate[pa.Table]:
    """Return what gives STEPS of the timeline's slices."""
    slices = [Path(path) for role, path in reading.source.files.items() if role.partition("/")[0] == TIMELINE]
    timeline = sorted(slices, key=slice_number)
    return TIMELINE, lambda _, remark: read_timeline_steps(timeline, reading.source.rank, remark)


def kernel_operators(rank: int) -> Candidate[CommunicationTables]:
    """Return what gives operators of communication where only the table of kernels has them."""
    return (
        "kernel_details",
        lambda path, remark: without_packets(read_kernel_communication(path, rank, remark)),
    )


def kernel_kinds(rank: int) -> Candidate[pa.Table]:
    """Return what gives OPERATORS of the table of kernels."""
    return "kernel_details", lambda path, remark: read_kernel_details(path, rank, remark)


def step_rows(steps: pa.Table) -> list[tuple[int, float | None]]:
    """Return the steps of STEPS, and how long each communicated, µs."""
    return list(zip(steps["step"].to_pylist(), steps["communication_us"].to_pylist(), strict=True))


def with_info(reading: Reading, metadata: RankMetadata, device: int | None) -> RankMetadata:
    """Return what a rank says of itself, with its device and what profiler_info.json adds."""
    info = reading.first(("profiler_info", lambda path, _: read_profiler_info(path)))
    device_id = None if device is None else DeviceId(device)
    if info is None:
        return replace(metadata, device=device_id)
    return replace(metadata, device=device_id, profiler_level=info[0], versions=info[1])


def _device(reading: Reading, databases: NoDatabases) -> int | None:
    """Return the device that a file names. The file's own reader reports what is wrong with it."""
    for role, read in (("step_trace", read_device_of_steps), *databases.device()):
        path = reading.source.files.get(role)
        if path is not None:
            with suppress(BadFileError):
                device = read(path_of(path))
                if device is not None:
                    return device
    return None


def _together(links: pa.Table | None, peers: pa.Table | None) -> pa.Table | None:
    if links is None or peers is None:
        return peers if links is None else links
    return pa.concat_tables([links, peers]).unify_dictionaries().combine_chunks()


def steps_in(table: pa.Table | None) -> Set[int] | None:
    """Return the steps of which a table has rows; None without a table."""
    return None if table is None else set(pc.unique(table["step"]).to_pylist())


def steps_of_ranks(table: pa.Table, ranks: Iterable[int]) -> list[Set[int]]:
    """Return the same of each rank."""
    found: dict[int, set[int]] = {rank: set() for rank in ranks}
    pairs = table.group_by(["rank", "step"], use_threads=False).aggregate([])
    for rank, step in zip(pairs["rank"].to_pylist(), pairs["step"].to_pylist(), strict=True):
        found[rank].add(step)
    return list(found.values())
