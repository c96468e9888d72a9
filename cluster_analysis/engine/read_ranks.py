"""Reads all ranks of a run: the first half of the job as a Dask graph; `reduce_steps` is the second."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import structs

from cluster_analysis.engine import tasks
from cluster_analysis.engine.graph import task
from cluster_analysis.engine.joined import canonical
from cluster_analysis.engine.protocol import Engine, Graph, Kept, Key
from cluster_analysis.engine.tasks import SMALL, Batch, BatchSummary, SmallTables, Wanted
from cluster_analysis.options import AnalyseOptions
from cluster_analysis.tables.model import RankMetadata, RankSource
from cluster_analysis.tables.schema import FIGURES, PACKETS, TOTALS
from cluster_run.errors import InputError
from cluster_run.facts import fact
from cluster_run.ids import Rank, Step, format_number_ranges
from cluster_run.problem import Problem
from cluster_words.problems import advice, reason

#: Called with the progress: current stage, tasks done, tasks in all.
Progress = Callable[[str, int, int], None]


class RanksRead(SmallTables, frozen=True):
    """All ranks, read: the small tables here, the large ones wherever the engine kept them."""

    summaries: tuple[BatchSummary, ...]
    kept: tuple[Kept, ...]
    problems: tuple[Problem, ...]

    @property
    def metadata(self) -> dict[Rank, RankMetadata]:
        """Metadata of each rank."""
        return {rank: one for summary in self.summaries for rank, one in summary.metadata.items()}

    @property
    def bulk_steps(self) -> list[Step]:
        """The steps that large tables hold, sorted."""
        return sorted({step for one in self.summaries for step in one.bulk_steps})

    def cut(self, steps: Iterable[Step]) -> Graph:
        """Return the entries of a graph that hold the pieces of these steps."""
        wanted = set(steps)
        return {
            ("piece", number, step): kept.piece(step)
            for number, (kept, summary) in enumerate(zip(self.kept, self.summaries, strict=True))
            for step in summary.bulk_steps
            if step in wanted
        }

    def pieces(self, step: Step) -> list[Key]:
        """Return the keys of one step's pieces, for a task that takes them."""
        return [
            ("piece", number, step)
            for number, summary in enumerate(self.summaries)
            if step in summary.bulk_steps
        ]

    def spans(self) -> Graph:
        """Return the entries of a graph that say where each operator lies."""
        return {("spans", number): kept.piece(tasks.SPANS) for number, kept in enumerate(self.kept)}


def reading(batches: Iterable[Batch], wanted: Wanted, stem: str) -> Graph:
    """Return the graph that reads ranks: one task a batch."""
    return {("ranks", one.number): task(tasks.read_batch, one, wanted, stem) for one in batches}


def read_all(
    engine: Engine, sources: tuple[RankSource, ...], wanted: Wanted, stem: str, on_progress: Progress
) -> RanksRead:
    """Read all ranks; one that cannot be read after all is a problem, and the others go on.

    Args:
        engine: who does the work.
        sources: the ranks' captures.
        wanted: which steps, and what of them.
        stem: begin of the paths for the large tables; empty to keep them in memory.
        on_progress: called after each batch.
    """
    batches = tasks.batches_by_bytes(sources, engine.n_workers)
    found: list[tuple[BatchSummary, Kept]] = []
    failed: list[RankSource] = []
    problems: list[Problem] = []
    on_progress("reading ranks", 0, len(sources))

    def take(some: tuple[Batch, ...]) -> Iterator[tuple[Batch, str]]:
        graph = reading(some, wanted, stem)
        n_before = sum(len(one.metadata) for one, _ in found)
        ranks_in = [len(one.sources) for one in some]

        def report(n_done: int) -> None:
            on_progress("reading ranks", n_before + sum(ranks_in[:n_done]), len(sources))

        for batch, outcome in zip(some, engine.run_keeping(graph, list(graph), report), strict=True):
            if outcome.value is None:
                yield batch, outcome.failure
            else:
                found.append(outcome.value)

    for batch, _ in take(batches):
        failed.extend(batch.sources)
    # A batch fails as a whole because of one rank: ranks read one by one show which.
    alone = tuple(Batch(len(batches) + number, (source,)) for number, source in enumerate(failed))
    for batch, failure in take(alone):
        (source,) = batch.sources
        problems.append(
            Problem(
                fact("given_up", detail=failure),
                rank=source.rank,
                host=source.host,
                file=source.part,
                advice="others_analysed",
            )
        )
    found.sort(key=lambda one: tuple(one[0].metadata))
    ordered = tuple(summary for summary, _ in found)
    return RanksRead(
        **{
            name: canonical([getattr(one, name) for one in ordered], schema) for name, schema in SMALL.items()
        },
        figures={
            name: canonical([one.figures[name] for one in ordered], schema)
            for name, schema in FIGURES.items()
        },
        summaries=ordered,
        kept=tuple(kept for _, kept in found),
        problems=(*(problem for one in ordered for problem in one.problems), *problems),
    )


def without_communication(read: RanksRead) -> RanksRead:
    """Return what was read without calls and links: windows of ranks are not of the same time."""
    none = tuple(structs.replace(one, bulk_steps=()) for one in read.summaries)
    return structs.replace(read, summaries=none, packets=PACKETS.empty_table(), totals=TOTALS.empty_table())


def require_data(read: RanksRead, options: AnalyseOptions) -> None:
    """Refuse to go on with nothing.

    Raises:
        InputError: no rank has a step or an operator; the message says why.
    """
    if read.steps.num_rows or any(one.bulk_steps for one in read.summaries):
        return
    first = "".join(_told(one) for one in read.problems[:1])
    if options.selection.steps is not None:
        wanted = format_number_ranges(options.selection.steps)
        raise InputError(
            f"{options.run}: none of the steps {wanted} was recorded"
            f"{f'; the first problem: {first}' if first else ''}",
            "leave --steps out: the result names those that were",
        )
    if first:
        raise InputError(f"{options.run}: no rank could be read; the first problem: {first}")
    raise InputError(f"{options.run}: the profiler data holds no step and no communication")


def _told(problem: Problem) -> str:
    what_to_do = f" ({advice(problem).en})" if problem.advice else ""
    return f"{_where(problem)}{reason(problem).en}{what_to_do}"


def _where(problem: Problem) -> str:
    rank = f"rank {problem.rank}: " if problem.rank is not None else ""
    return f"{rank}{problem.file}: " if problem.file else rank
