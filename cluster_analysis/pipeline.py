"""The first half of the analysis: discover → read ranks → reduce steps. It wires, it never thinks.

`judging` is the second half: importing it takes longer, and is done while workers read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, structs

from cluster_analysis.discovery.discover import discover
from cluster_analysis.engine.choose import must_file, open_engine
from cluster_analysis.engine.protocol import Engine
from cluster_analysis.engine.read_ranks import (
    Progress,
    RanksRead,
    read_all,
    require_data,
    without_communication,
)
from cluster_analysis.engine.reduce_steps import reduce_all
from cluster_analysis.engine.scratch import scratch_directory
from cluster_analysis.engine.step_files import let_files_go
from cluster_analysis.engine.tasks import Wanted
from cluster_analysis.options import AnalyseOptions
from cluster_analysis.tables.model import Capture, RankSource, Selection, Topology
from cluster_analysis.topology.build import build_topology, unlike_versions
from cluster_analysis.topology.hosts import seated
from cluster_analysis.topology.presence import counts_missing
from cluster_analysis.windows.between import between_steps
from cluster_analysis.windows.cut_steps import is_last_cut
from cluster_analysis.windows.iterations import as_many_iterations, as_one_window
from cluster_analysis.windows.other_times import of_same_times
from cluster_analysis.windows.steps_apart import at_other_times
from cluster_run.errors import InputError
from cluster_run.facts import Fact, fact
from cluster_run.ids import HostId, format_number_ranges
from cluster_run.problem import Problem
from cluster_words.problems import reason

if TYPE_CHECKING:
    from cluster_analysis.replay.job_evidence import JobEvidence
    from cluster_analysis.trace.evidence import StepEvidence

#: Called with a sentence for the user.
Remark = Callable[[str], None]


class Examined(Struct):
    """State of an analysis before it judges, while its engine and scratch directory are open.

    It is not frozen: steps become the evidence of the whole job, whose largest part is let go.
    """

    options: AnalyseOptions
    topology: Topology
    capture: Capture
    sources: tuple[RankSource, ...]
    read: RanksRead
    engine: Engine
    scratch: Path
    _steps: list[StepEvidence]
    _evidence: JobEvidence | None = None

    @property
    def evidence(self) -> JobEvidence:
        """Evidence of all steps, merged on first use, while others work already."""
        if self._evidence is None:
            self._evidence = _evidence(self._steps, self.read)
        return self._evidence

    def let_graph_go(self) -> None:
        """Drop the operators of all steps: they are for judging and comparing, not for reports."""
        self._evidence = structs.replace(self.evidence, graph=None)

    @property
    def shown_addresses(self) -> Mapping[HostId, str]:
        """Real names of the hosts, if they were asked for."""
        return dict(self.capture.addresses) if self.options.show_addresses else {}


@contextmanager
def examined(
    options: AnalyseOptions, progress: Progress | None = None, remark: Remark | None = None
) -> Iterator[Examined]:
    """Read all ranks and reduce all steps; the engine stays open for outputs that need the files again.

    Args:
        options: what to analyse, and who does the work.
        progress: called with the progress.
        remark: called with remarks on the engine before the work begins.

    Raises:
        InputError: nothing that could be analysed is there.
        EngineError: a cluster could not be reached, or was lost.
    """
    on_progress: Progress = progress or (lambda *_: None)
    on_progress("looking for captures", 0, 1)
    found = discover(options.run, options.part)
    sources = _chosen(found, options.selection, options.run)
    capture = _selected(found, sources, options.selection)
    size_bytes = sum(source.size_bytes for source in sources)
    with scratch_directory(options.scratch) as scratch:
        engine = open_engine(options, sources, scratch)
        try:
            if remark is not None:
                for sentence in engine.remarks:
                    remark(sentence)
            in_files = must_file(engine, size_bytes, options.memory_limit_bytes)
            has_insight = options.wants_insight(size_bytes)
            calls_alone = not has_insight and not options.write_timeline
            wanted = Wanted(options.selection, spans=has_insight, calls_alone=calls_alone)
            read = read_all(engine, sources, wanted, f"{scratch}/batch-" if in_files else "", on_progress)
            require_data(read, options)
            capture = seated(capture, read.metadata)
            read, notes = _in_alike_windows(read)
            topology, contradictions = _topology(capture, read, options.selection)
            unlike = unlike_versions(read.metadata)
            topology = structs.replace(topology, starts_agree=not unlike)
            timed = structs.replace(read, steps=between_steps(read.steps, read.step_calls))
            steps, problems = reduce_all(
                engine, timed, topology, on_progress, str(scratch) if in_files else ""
            )
            if not wanted.spans:  # else Insight's files come at once
                engine.rest()
            apart = at_other_times(steps) + of_same_times(read.steps)
            notes += (*unlike, *apart, *_without_cut_step(steps))
            capture = structs.replace(capture, notes=capture.notes + notes)
            read = structs.replace(read, problems=read.problems + contradictions + problems)
            yield Examined(options, topology, capture, sources, read, engine, scratch, steps)
        finally:
            engine.close()
            let_files_go()


def _chosen(capture: Capture, selection: Selection, run: Path) -> tuple[RankSource, ...]:
    if not capture.sources:
        raise InputError(
            f"{run}: no profiler data found"
            f"{f': {reason(capture.problems[0]).en}' if capture.problems else ''}",
            "give a run directory, or one that holds *_ascend_pt, *_ascend_ms or PROF_* directories",
        )
    if selection.ranks is None:
        return tuple(map(_with_absolute_paths, capture.sources))
    sources = tuple(
        _with_absolute_paths(source) for source in capture.sources if source.rank in selection.ranks
    )
    if not sources:
        found = format_number_ranges(source.rank for source in capture.sources)
        raise InputError(f"{run}: none of the ranks asked for is there", f"found are {found}")
    return sources


def _with_absolute_paths(source: RankSource) -> RankSource:
    """Return the source with paths that mean the same to workers, which run in other directories."""
    return structs.replace(source, files={role: os.path.abspath(file) for role, file in source.files.items()})


def _selected(capture: Capture, sources: tuple[RankSource, ...], selection: Selection) -> Capture:
    """Return the capture as if only the selected ranks had been asked of the job: others are not missing."""
    if selection.ranks is None:
        return capture
    problems = tuple(
        problem
        for problem in capture.problems
        if not counts_missing(problem) and (problem.rank is None or problem.rank in selection.ranks)
    )
    expected = tuple(rank for rank in capture.expected_ranks if rank in selection.ranks)
    return structs.replace(capture, sources=sources, expected_ranks=expected, problems=problems)


def _in_alike_windows(read: RanksRead) -> tuple[RanksRead, tuple[Fact, ...]]:
    """Return what was read in windows that can be compared, and what is to be said of that."""
    steps, in_one = as_one_window(read.steps, read.totals)
    if in_one:
        problems = tuple(one for one in read.problems if one.kind != "silent_steps")
        read = structs.replace(read, steps=steps, problems=problems)
    steps, scaled = as_many_iterations(read.steps, read.operators)
    if scaled:
        read = without_communication(structs.replace(read, steps=steps))
    return read, in_one + scaled


def _topology(
    capture: Capture, read: RanksRead, selection: Selection
) -> tuple[Topology, tuple[Problem, ...]]:
    topology, problems = build_topology(capture, read.metadata, read.uses)
    if selection.ranks is None:
        return topology, problems
    ranks = tuple(rank for rank in topology.ranks if rank in selection.ranks)
    return structs.replace(topology, ranks=ranks), tuple(one for one in problems if not counts_missing(one))


def _without_cut_step(steps: list[StepEvidence]) -> tuple[Fact, ...]:
    """Take the last step out where the end of the recording cut it, and tell."""
    if not is_last_cut(steps):
        return ()
    return (fact("last_step_cut", step=int(steps.pop().step)),)


def _evidence(steps: list[StepEvidence], read: RanksRead) -> JobEvidence:
    """Return what all steps say together, and let go of each."""
    from cluster_analysis.replay.graph import laid_out  # noqa: PLC0415

    numbers = pa.array([one.step for one in steps], read.packets.schema.field("step").type)
    packets = read.packets.filter(pc.is_in(read.packets["step"], numbers))
    return structs.replace(laid_out(steps, read.operators, packets), counters=read.figures["counters"])
