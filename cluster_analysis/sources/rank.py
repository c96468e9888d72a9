"""One rank, read: every file of its capture, each on its own; a bad one costs that file only."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis import schema
from cluster_analysis.model import Problem, RankMetadata, RankSource, RankTables, Selection
from cluster_analysis.sources.communication_json import read_communication
from cluster_analysis.sources.errors import BadFileError, Remark
from cluster_analysis.sources.matrix_json import read_matrix
from cluster_analysis.sources.metadata_json import read_metadata, read_profiler_info
from cluster_analysis.sources.op_statistic_csv import read_op_statistic
from cluster_analysis.sources.r1_cluster_analyse import read_r1_cluster_analyse, steps_of_iterations
from cluster_analysis.sources.r1_hccl import read_r1_hccl
from cluster_analysis.sources.r1_step_trace import read_r1_step_trace
from cluster_analysis.sources.step_trace_csv import read_step_trace

_T = TypeVar("_T")


@dataclass
class _Reading:
    """Collects what could not be read of one rank while its files are read."""

    source: RankSource
    steps: frozenset[int] | None
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def path(self, role: str) -> Path:
        """Return the path of the file in that role."""
        return Path(self.source.files[role])

    def remark(self, role: str) -> Remark:
        """Return what takes sentences about parts of a file that could not be used."""
        return lambda reason: self.problems.append(
            Problem(reason, file=self.path(role).name, rank=self.source.rank, host=self.source.host)
        )

    def note(self, role: str) -> Remark:
        """Return what takes sentences about a file that cost nothing."""
        return lambda text: self.notes.append(f"rank {self.source.rank}, {self.path(role).name}: {text}")

    def attempt(self, role: str, read: Callable[[], _T], otherwise: _T) -> _T:
        """Return what `read` makes of the file in that role; `otherwise` where it is missing or bad."""
        if role not in self.source.files:
            return otherwise
        try:
            return read()
        except BadFileError as error:
            self.problems.append(
                Problem(
                    error.message,
                    file=self.path(role).name,
                    rank=self.source.rank,
                    host=self.source.host,
                    advice=error.advice,
                )
            )
            return otherwise


def read_rank(source: RankSource, selection: Selection = Selection()) -> RankTables:
    """Read all files of one rank. Never raises for bad data: see `RankTables.problems`."""
    steps = None if selection.steps is None else frozenset(int(step) for step in selection.steps)
    reading = _Reading(source, steps)
    with _collector_off():
        tables = _read_r1(reading) if source.kind == "mindspore_r1/text" else _read_text(reading)
    return replace(tables, problems=tuple(reading.problems), notes=tuple(reading.notes))


@contextmanager
def _collector_off() -> Iterator[None]:
    """Switch the garbage collector off: decoding makes many objects and no cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _empty(source: RankSource) -> RankTables:
    return RankTables(
        rank=source.rank,
        steps=schema.empty(schema.STEPS),
        collectives=schema.empty(schema.COLLECTIVES),
        links=schema.empty(schema.LINKS),
        operators=schema.empty(schema.OPERATORS),
        packets=schema.empty(schema.PACKETS),
    )


def _read_text(reading: _Reading) -> RankTables:
    rank, steps, tables = reading.source.rank, reading.steps, _empty(reading.source)
    step_table = reading.attempt(
        "step_trace",
        lambda: read_step_trace(reading.path("step_trace"), rank, steps, reading.remark("step_trace")),
        tables.steps,
    )
    collectives, packets = reading.attempt(
        "communication",
        lambda: read_communication(
            reading.path("communication"), rank, steps, reading.remark("communication")
        ),
        (tables.collectives, tables.packets),
    )
    links = reading.attempt(
        "matrix",
        lambda: read_matrix(reading.path("matrix"), rank, steps, reading.remark("matrix")),
        tables.links,
    )
    operators = reading.attempt(
        "op_statistic",
        lambda: read_op_statistic(reading.path("op_statistic"), rank, reading.remark("op_statistic")),
        tables.operators,
    )
    metadata = reading.attempt("metadata", lambda: read_metadata(reading.path("metadata")), RankMetadata())
    level, versions = reading.attempt(
        "profiler_info", lambda: read_profiler_info(reading.path("profiler_info")), ("", {})
    )
    return replace(
        tables,
        steps=step_table,
        collectives=collectives,
        links=links,
        operators=operators,
        packets=packets,
        metadata=replace(metadata, profiler_level=level, versions=versions),
    )


def _read_r1(reading: _Reading) -> RankTables:
    rank, tables = reading.source.rank, _empty(reading.source)
    iterations, collectives = reading.attempt(
        "r1_step_trace",
        lambda: read_r1_step_trace(
            reading.path("r1_step_trace"),
            rank,
            reading.remark("r1_step_trace"),
            reading.note("r1_step_trace"),
        ),
        (tables.iterations, tables.collectives),
    )
    analysed = reading.attempt(
        "r1_cluster_analyse",
        lambda: read_r1_cluster_analyse(
            reading.path("r1_cluster_analyse"), reading.remark("r1_cluster_analyse")
        ),
        {},
    )
    steps = steps_of_iterations(iterations, analysed, reading.remark("r1_cluster_analyse"))
    links = reading.attempt(
        "r1_hccl",
        lambda: read_r1_hccl(reading.path("r1_hccl"), rank, reading.remark("r1_hccl")),
        tables.links,
    )
    return replace(
        tables,
        steps=_selected(steps, reading.steps),
        collectives=_selected(collectives, reading.steps),
        links=_selected(links, reading.steps),
        iterations=iterations,
    )


def _selected(table: pa.Table, steps: frozenset[int] | None) -> pa.Table:
    if steps is None:
        return table
    return table.filter(pc.is_in(table["step"], pa.array(sorted(steps), pa.int64())))
