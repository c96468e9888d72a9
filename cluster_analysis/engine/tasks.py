"""The work of the engine's tasks, as pure functions that run anywhere: read ranks, reduce one step.

No decoded JSON leaves `read_batch`: its value is Arrow tables. The small ones travel, the large ones stay
in memory or in a file, cut by step.
"""

from __future__ import annotations

import gc
import math
import os
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, field, structs

from cluster_analysis.engine.joined import canonical, cut_by_step, joined
from cluster_analysis.engine.step_files import StepFiles, StepTables, file_sink, filed
from cluster_analysis.engine.totals import step_calls, totals_of
from cluster_analysis.sources.rank import read_ranks
from cluster_analysis.sources.reading import has_databases
from cluster_analysis.sources.windows import read_windows
from cluster_analysis.tables.model import RankMetadata, RankSource, Selection, Topology
from cluster_analysis.tables.rank_tables import RankTables
from cluster_analysis.tables.schema import (
    COLLECTIVES,
    FIGURES,
    HOST_SUMS,
    ITERATIONS,
    LINKS,
    OPERATOR_SPANS,
    OPERATORS,
    PACKETS,
    STEP_CALLS,
    STEPS,
    TOTALS,
)
from cluster_analysis.topology.build import map_links
from cluster_analysis.topology.groups import GROUP_USE
from cluster_analysis.topology.use import group_use
from cluster_analysis.trace.evidence import StepEvidence
from cluster_analysis.trace.reduction import CALLS, reduce_step
from cluster_analysis.windows.other_times import departures
from cluster_run.errors import in_one_line
from cluster_run.facts import Fact, fact
from cluster_run.ids import Rank, Step
from cluster_run.problem import Problem

#: A batch holds ranks of about this size together: large enough that a task is worth its overhead,
#: small enough that the last task does not keep one worker busy alone.
BATCH_BYTES = 96 * 1024 * 1024
#: Minimum batches per worker.
_LEAST_BATCHES = 2
#: A database counts for more: all its columns are in memory at once, but only one text file is.
_DATABASE_COUNTS = 1.5
_SPANS_SUFFIX = ".spans.arrow"
#: Most ranks in one batch: more would save little, and take more memory.
_MOST_TOGETHER = 64
#: Key of the piece that says where the operators of all steps lie; no step has such a number.
SPANS = -1


class Wanted(Struct, frozen=True):
    """Data to read of the ranks.

    Attributes:
        selection: which steps.
        spans: whether also where each operator lies in their texts.
        calls_alone: whether of COLLECTIVES what a step's reduction reads is enough in files.
    """

    selection: Selection = field(default_factory=Selection)
    spans: bool = True
    calls_alone: bool = False


class Batch(Struct, frozen=True):
    """Ranks that are read by one task. `number` counts the batches in the order of their ranks."""

    number: int
    sources: tuple[RankSource, ...]


class SmallTables(Struct, frozen=True):
    """Small tables of some ranks; `figures` are those of `schema.FIGURES`."""

    steps: pa.Table
    operators: pa.Table
    packets: pa.Table
    iterations: pa.Table
    uses: pa.Table
    totals: pa.Table
    step_calls: pa.Table
    figures: Mapping[str, pa.Table]


#: Schemas of these but the figures.
SMALL = {
    "steps": STEPS,
    "operators": OPERATORS,
    "packets": PACKETS,
    "iterations": ITERATIONS,
    "uses": GROUP_USE,
    "totals": TOTALS,
    "step_calls": STEP_CALLS,
}
#: Tables that ranks have; the others are made from them.
_READ = ("steps", "operators", "packets", "iterations")


class BatchSummary(SmallTables, frozen=True):
    """Small tables of a batch of ranks, sorted by rank."""

    metadata: Mapping[Rank, RankMetadata]
    bulk_steps: tuple[Step, ...]
    problems: tuple[Problem, ...]
    notes: tuple[Fact, ...]


class BatchBulk(Struct, frozen=True):
    """The large tables of a batch: by step, and OPERATOR_SPANS of all its operators, or the file of those."""

    by_step: Mapping[int, StepTables | StepFiles]
    spans: pa.Table | str

    def piece(self, key: int) -> StepTables | StepFiles | pa.Table | str:
        """Return the tables of a step that the batch has, or with `SPANS` those."""
        return self.spans if key == SPANS else self.by_step[key]


def batches_by_bytes(
    sources: Sequence[RankSource], n_workers: int, batch_bytes: int = BATCH_BYTES
) -> tuple[Batch, ...]:
    """Cut `sources` into batches of about `batch_bytes`, in the order of their ranks.

    With several workers the batches are small enough for each worker to get two, and all get as many: the
    last ones end at about the same time.
    """
    ordered = sorted(sources, key=lambda source: (source.rank, source.part, source.kind))
    total = sum(map(_weight, ordered))
    limit: float = batch_bytes
    if n_workers > 1:
        n_each = max(_LEAST_BATCHES, math.ceil(total / (batch_bytes * n_workers)))
        limit = max(1.0, total / (n_each * n_workers))
    groups: list[list[RankSource]] = []
    filled: float = limit
    for source in ordered:
        if filled >= limit:
            groups.append([])
            filled = 0.0
        groups[-1].append(source)
        filled += _weight(source)
    return tuple(Batch(number, tuple(group)) for number, group in enumerate(groups))


def _weight(source: RankSource) -> float:
    """Return the bytes of a rank's files; those of databases count for more."""
    return source.size_bytes * (_DATABASE_COUNTS if has_databases(source.files) else 1.0)


def read_batch(batch: Batch, wanted: Wanted, file_stem: str = "") -> tuple[BatchSummary, BatchBulk]:
    """Read the ranks of a batch.

    Args:
        batch: its ranks in order.
        wanted: which steps, and what of them.
        file_stem: begin of the paths for the large tables; empty to keep them in memory.
    """
    # Decoding makes many objects and no cycles: the collector would only walk them again and again.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        tables = [
            one
            for first in range(0, len(batch.sources), _MOST_TOGETHER)
            for one in _read_or_halve(batch.sources[first : first + _MOST_TOGETHER], wanted)
        ]
    finally:
        if was_enabled:
            gc.enable()

    def all_of(name: str, schema: pa.Schema) -> pa.Table:
        return joined([getattr(one, name) for one in tables], schema)

    collectives, links = all_of("collectives", COLLECTIVES), all_of("links", LINKS)
    steps = sorted(_steps_of(collectives) | _steps_of(links))
    cut = zip(cut_by_step(collectives, steps), cut_by_step(links, steps), strict=True)
    summary = BatchSummary(
        **{name: all_of(name, SMALL[name]) for name in _READ},
        uses=group_use(collectives, links),
        totals=totals_of(collectives, all_of("sums", HOST_SUMS)),
        step_calls=step_calls(collectives),
        figures={
            name: joined([one.figures[name] for one in tables if name in one.figures], schema)
            for name, schema in FIGURES.items()
        },
        metadata={rank: metadata for one in tables for rank, metadata in one.metadata.items()},
        bulk_steps=tuple(steps),
        problems=tuple(problem for one in tables for problem in one.problems),
        notes=tuple(dict.fromkeys(note for one in tables for note in one.notes)),
    )
    by_step = {int(step): StepTables(*own) for step, own in zip(steps, cut, strict=True)}
    spans = all_of("spans", OPERATOR_SPANS)
    if not file_stem:
        return summary, BatchBulk({step: _alone(own) for step, own in by_step.items()}, spans)
    stem = f"{file_stem}{batch.number}"
    files = filed(by_step, stem, CALLS if wanted.calls_alone else COLLECTIVES)
    return summary, BatchBulk(files, _filed_spans(spans, stem + _SPANS_SUFFIX) if wanted.spans else spans)


def _steps_of(table: pa.Table) -> set[Step]:
    return set(map(Step, pc.unique(table["step"]).drop_null().to_pylist()))


def reduce_pieces(
    step: Step, steps: pa.Table, topology: Topology, pieces: Sequence[StepTables | StepFiles]
) -> tuple[StepEvidence, tuple[Problem, ...]]:
    """Reduce one step; the value does not depend on how the ranks were cut into `pieces`."""
    loaded = [piece.load() for piece in pieces]
    collectives = canonical([one.collectives.select(CALLS.names) for one in loaded], CALLS)
    links = canonical([one.links for one in loaded], LINKS)
    del loaded
    mapped, problems = map_links(links, topology)
    left = departures(collectives, topology)
    evidence = reduce_step(step, steps, collectives, mapped, topology)
    return structs.replace(evidence, apart=left.apart, clocks=left.clocks), problems


def collectives_of_step(pieces: Sequence[StepTables | StepFiles]) -> pa.Table:
    """Return COLLECTIVES of one step, by rank and start."""
    table = canonical([piece.load().collectives for piece in pieces], COLLECTIVES)
    return table.sort_by([("rank", "ascending"), ("start_ns", "ascending")])


def spans_of_pieces(pieces: Sequence[pa.Table | str]) -> pa.Table:
    """Return OPERATOR_SPANS of all pieces, in their order."""
    return joined([_read_spans(one) if isinstance(one, str) else one for one in pieces], OPERATOR_SPANS)


def _read_or_halve(sources: Sequence[RankSource], wanted: Wanted) -> list[RankTables]:
    """Read ranks together, and each half of them where that is refused, down to one."""
    if len(sources) == 1:
        return [_read(sources[0], wanted)]
    try:
        return [read_ranks(sources, wanted.selection.steps, with_spans=wanted.spans)]
    except Exception:  # one file is at fault; reading rank by rank reports it, and costs no other rank
        middle = len(sources) // 2
        return [*_read_or_halve(sources[:middle], wanted), *_read_or_halve(sources[middle:], wanted)]


def _read(source: RankSource, wanted: Wanted) -> RankTables:
    try:
        if source.windows:
            return read_windows(source, wanted.selection, with_spans=wanted.spans)
        return read_ranks([source], wanted.selection.steps, with_spans=wanted.spans)
    except Exception as error:
        problem = Problem(
            fact("reading_failed", error=type(error).__name__, detail=in_one_line(error, "no message")),
            file=source.part or os.path.dirname(next(iter(source.files.values()), "")),
            rank=source.rank,
            host=source.host,
            advice="report_file",
        )
        return RankTables({source.rank: RankMetadata()}, problems=(problem,))


def _alone(tables: StepTables) -> StepTables:
    """Return the tables of a step without the memory of others, which would travel with them."""
    kept = ((COLLECTIVES, tables.collectives), (LINKS, tables.links))
    return StepTables(*(pa.concat_tables([kind.empty_table(), one]).combine_chunks() for kind, one in kept))


def _filed_spans(spans: pa.Table, path: str) -> str:
    with file_sink(path) as sink, pa.ipc.new_file(sink, OPERATOR_SPANS) as writer:
        writer.write_table(spans)
    return path


def _read_spans(path: str) -> pa.Table:
    with pa.OSFile(path) as file:
        return pa.ipc.open_file(file).read_all()
