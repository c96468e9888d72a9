"""The whole analysis: discover → read ranks → reduce steps → detect → result. It wires, it never thinks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from msgspec import Struct, structs

from cluster_analysis.engine.choose import open_engine
from cluster_analysis.engine.memory import DEFAULT_LIMIT_BYTES, give_back, must_file
from cluster_analysis.engine.protocol import Engine
from cluster_analysis.engine.read_ranks import Progress, RanksRead, read_all, require_data
from cluster_analysis.engine.reduce_steps import reduce_all
from cluster_analysis.engine.scratch import scratch_directory
from cluster_analysis.engine.tasks import Wanted, let_files_go
from cluster_analysis.options import AnalyseOptions
from cluster_analysis.result import AnalysisResult
from cluster_analysis.run_header import analysed_at, captured_at, places_of, run_command
from cluster_analysis.sentences.problems import reason
from cluster_analysis.tables.model import Capture, RankSource, Selection, Topology
from cluster_analysis.tables.schema import RANKS
from cluster_analysis.topology.build import build_topology
from cluster_run.errors import InputError
from cluster_run.facts import fact
from cluster_run.findings import FindingsDocument, RunInfo, Verdict
from cluster_run.ids import HostId, Rank, format_number_ranges
from cluster_run.problem import Problem, one_a_file
from cluster_run.version import VERSION

if TYPE_CHECKING:
    from cluster_analysis.judge.baseline import Comparison
    from cluster_analysis.replay.job_evidence import JobEvidence
    from cluster_analysis.trace.evidence import StepEvidence

#: What is needed only when all ranks have been read: whoever waits for workers can import it meanwhile.
MODULES_FOR_JUDGING = (
    "cluster_analysis.replay.graph",
    "cluster_analysis.replay.job_evidence",
    "cluster_analysis.judge.detection",
    "cluster_analysis.describe.everything",
    "cluster_analysis.describe.rules",
)

#: Told a sentence for the user.
Remark = Callable[[str], None]


class Examined(Struct):
    """What an analysis knows before it judges, while its engine and scratch directory are open.

    It is not frozen: once all is judged the graph is let go, the largest part of it.
    """

    options: AnalyseOptions
    evidence: JobEvidence
    topology: Topology
    capture: Capture
    sources: tuple[RankSource, ...]
    read: RanksRead
    engine: Engine
    scratch: Path

    @property
    def shown_addresses(self) -> Mapping[HostId, str]:
        """Real names of the hosts, if they were asked for."""
        return dict(self.capture.addresses) if self.options.show_addresses else {}


@contextmanager
def examined(
    options: AnalyseOptions,
    progress: Progress | None = None,
    remark: Remark | None = None,
    look: Callable[[Path, str | None], Capture] | None = None,
) -> Iterator[Examined]:
    """Read all ranks and reduce all steps; the engine stays open for outputs that need the files again.

    Args:
        options: what to analyse, and who does the work.
        progress: told how far it is.
        remark: told what the user should know of the engine before the work begins.
        look: finds the captures below a path; `discover` where none is given.

    Raises:
        InputError: nothing that could be analysed is there.
        EngineError: a cluster could not be reached, or was lost.
    """
    tell = progress or _quiet
    tell("looking for captures", 0, 1)
    found = (look or _look)(options.run, options.capture)
    sources = _chosen(found, options.selection, options.run)
    capture = _selected(found, sources, options.selection)
    size_bytes = sum(source.size_bytes for source in sources)
    with scratch_directory(options.scratch) as scratch:
        engine = open_engine(options, sources, scratch)
        try:
            if remark is not None:
                for sentence in engine.remarks:
                    remark(sentence)
            limit = options.memory_limit_bytes or DEFAULT_LIMIT_BYTES
            stem = f"{scratch}/batch-" if must_file(engine, size_bytes, limit) else ""
            wanted = Wanted(options.selection, spans=options.wants_insight(size_bytes))
            read = read_all(engine, sources, wanted, stem, tell)
            require_data(read, options)
            topology, contradictions = _topology(capture, read, options.selection)
            parts, problems = reduce_all(engine, read, topology, tell, str(scratch) if stem else "")
            if not wanted.spans:  # else Insight's files come at once
                engine.rest()
            evidence = _evidence(parts, read, topology)
            give_back()
            read = structs.replace(read, problems=read.problems + contradictions + problems)
            known = Examined(options, evidence, topology, capture, sources, read, engine, scratch)
            del evidence  # so that the graph goes when it is let go
            yield known
        finally:
            engine.close()
            let_files_go()


def _look(run: Path, capture: str | None) -> Capture:
    # Whoever looks in another process need not import this.
    from cluster_analysis.discovery.discover import discover  # noqa: PLC0415

    return discover(run, capture)


def _chosen(capture: Capture, selection: Selection, run: Path) -> tuple[RankSource, ...]:
    if not capture.sources:
        why = f": {reason(capture.problems[0]).en}" if capture.problems else ""
        raise InputError(
            f"{run}: no profiler data found{why}",
            "give a run directory, or one that holds *_ascend_pt, *_ascend_ms or PROF_* directories",
        )
    if selection.ranks is None:
        return tuple(map(_placed, capture.sources))
    sources = tuple(_placed(source) for source in capture.sources if source.rank in selection.ranks)
    if not sources:
        found = format_number_ranges(source.rank for source in capture.sources)
        raise InputError(f"{run}: none of the ranks asked for is there", f"found are {found}")
    return sources


def _placed(source: RankSource) -> RankSource:
    """Return the source with paths that mean the same to workers, which run in other directories."""
    return structs.replace(source, files={role: os.path.abspath(file) for role, file in source.files.items()})


def _selected(capture: Capture, sources: tuple[RankSource, ...], selection: Selection) -> Capture:
    """Return the capture as if only the selected ranks had been asked of the job: others are not missing."""
    if selection.ranks is None:
        return capture
    problems = tuple(
        problem
        for problem in capture.problems
        if not _counts_missing(problem) and (problem.rank is None or problem.rank in selection.ranks)
    )
    expected = tuple(rank for rank in capture.expected_ranks if rank in selection.ranks)
    return structs.replace(capture, sources=sources, expected_ranks=expected, problems=problems)


def _counts_missing(problem: Problem) -> bool:
    """Return whether a problem is about all ranks that are missing together."""
    return problem.kind == "missing_ranks"


def _topology(
    capture: Capture, read: RanksRead, selection: Selection
) -> tuple[Topology, tuple[Problem, ...]]:
    topology, problems = build_topology(capture, read.metadata, read.uses)
    if selection.ranks is None:
        return topology, problems
    ranks = tuple(rank for rank in topology.ranks if rank in selection.ranks)
    return structs.replace(topology, ranks=ranks), tuple(one for one in problems if not _counts_missing(one))


def _evidence(parts: list[StepEvidence], read: RanksRead, topology: Topology) -> JobEvidence:
    """Return what all steps say together, and let go of the parts."""
    from cluster_analysis.replay.graph import laid_out, operators_of  # noqa: PLC0415
    from cluster_analysis.replay.job_evidence import merge_steps, without_operators  # noqa: PLC0415

    merged = merge_steps(parts, topology, read.operators, read.packets)
    parts.clear()
    give_back()
    operators = operators_of(merged)
    merged = structs.replace(without_operators(merged), counters=read.figures["counters"])
    return laid_out(merged, operators)


def compared(
    examined_run: Examined, result: AnalysisResult, progress: Progress | None = None
) -> Comparison | None:
    """Return what changed since the baseline that the options name, None where they name none.

    `result` is what was found in the run; the older run is judged in the same way.

    Raises:
        InputError: the baseline cannot be analysed.
    """
    options = examined_run.options
    if options.baseline is None:
        return None
    from cluster_analysis.judge.baseline import compare  # noqa: PLC0415
    from cluster_analysis.judge.told_before import match_findings  # noqa: PLC0415

    # Steps are numbered anew in each run; only the choice of ranks means the same in both.
    selection = Selection(ranks=options.selection.ranks)
    older = structs.replace(options, run=options.baseline, baseline=None, capture=None, selection=selection)
    with examined(older, progress) as before:
        found = compare(before.evidence, before.topology, examined_run.evidence, examined_run.topology)
        if found.refusals:
            return found
        pairs = match_findings(judged(before).document.findings, result.document.findings)
        return structs.replace(found, findings=pairs)


def judged(examined: Examined) -> AnalysisResult:
    """Return the findings, and the tables behind them."""
    from cluster_analysis.describe.everything import described  # noqa: PLC0415
    from cluster_analysis.describe.rules import advised  # noqa: PLC0415
    from cluster_analysis.judge.detection import detect  # noqa: PLC0415
    from cluster_analysis.replay.job_evidence import NO_COMMON_STEP  # noqa: PLC0415

    options, evidence, topology = examined.options, examined.evidence, examined.topology
    capture, read = examined.capture, examined.read
    found = detect(evidence, topology)
    give_back()
    seen = _ranks_with_data(read)
    expected = _expected_ranks(capture, topology, options.selection)
    problems = one_a_file(capture.problems, read.problems)
    missing = sorted(expected - seen)
    if NO_COMMON_STEP in evidence.notes:
        problems += (Problem(NO_COMMON_STEP, advice="record_same_steps"),)
    problems += _unnamed_missing(missing, problems, len(expected))
    # Without its step times nobody can say that a rank is healthy.
    untimed = seen.difference(read.steps["rank"].unique().to_pylist())
    verdict: Verdict = "unknown" if (missing or untimed) and found.verdict == "healthy" else found.verdict
    of_batches = (note for one in read.summaries for note in one.notes)
    notes = dict.fromkeys((*capture.notes, *of_batches, *evidence.notes, *found.notes))
    hosts = {host for rank, host in topology.hosts.items() if rank in seen}
    document = FindingsDocument(
        tool_version=VERSION,
        run=RunInfo(
            ranks=len(seen),
            expected_ranks=len(expected),
            hosts=len(hosts),
            steps=evidence.steps,
            step_ms=found.step_ms,
            sources=tuple(sorted({source.kind for source in capture.sources})),
            parallel=topology.parallel,
            name=options.run.resolve().name,
            path=str(options.run.resolve()),
            captured=captured_at(examined.sources),
            analysed=analysed_at(),
            command=run_command(options),
            ideal_step_ms=None if found.ideal is None else round(found.ideal.ideal_us / 1e3, 3),
            slowdown=None if found.ideal is None else round(found.ideal.slowdown, 4),
            lost=found.lost,
        ),
        verdict=verdict,
        findings=tuple(replace(one, places=places_of(one, topology)) for one in found.findings),
        problems=tuple(sorted(set(problems), key=_problem_order)),
        notes=tuple(notes),
        replay=found.replay,
    )
    tables = {
        "ranks": _ranks_table(topology),
        "steps": evidence.step_table,
        "matched": found.matched,
        "rank_times": found.rank_times,
        "links": found.links,
        "operators": evidence.operators,
        "iterations": read.iterations,
        "packets": evidence.packets,
        **read.figures,
    }
    tables |= described(tables, topology)
    findings = advised(document.findings, tables["advice"], len(seen))
    return AnalysisResult(
        document=replace(document, findings=findings),
        topology=topology,
        tables=tables,
        addresses=examined.shown_addresses,
    )


def _ranks_with_data(read: RanksRead) -> set[Rank]:
    seen = {Rank(one) for one in read.steps["rank"].unique().to_pylist()}
    return seen | {Rank(one) for one in read.uses["rank"].unique().to_pylist()}


def _expected_ranks(capture: Capture, topology: Topology, selection: Selection) -> set[Rank]:
    """Return every rank that the rank table, the metadata or a communication group knows of."""
    expected = {*capture.expected_ranks, *topology.ranks}
    for group in topology.groups.values():
        expected.update(group.ranks)
    return expected if selection.ranks is None else expected & selection.ranks


def _unnamed_missing(
    missing: list[Rank], problems: tuple[Problem, ...], n_expected: int
) -> tuple[Problem, ...]:
    """Return one problem for all missing ranks that no other problem names."""
    named = {problem.rank for problem in problems}
    unnamed = [rank for rank in missing if rank not in named]
    if not unnamed or any(_counts_missing(one) for one in problems):
        return ()
    why = fact("missing_ranks", n_missing=len(unnamed), n_ranks=n_expected, ranks=tuple(unnamed))
    return (Problem(why, advice="collect_them_too"),)


def _problem_order(problem: Problem) -> tuple[str, int, str, str]:
    """By place, then by what a reader of findings.json sees: the order of it is the same in each run."""
    rank = -1 if problem.rank is None else problem.rank
    return (problem.host or "", rank, problem.file, reason(problem).en)


def _ranks_table(topology: Topology) -> pa.Table:
    columns = {
        "rank": list(topology.ranks),
        "host": [topology.hosts.get(rank) for rank in topology.ranks],
        "device": [topology.devices.get(rank) for rank in topology.ranks],
        "stage": [topology.stages.get(rank) for rank in topology.ranks],
        "tp_index": [topology.tp_index.get(rank) for rank in topology.ranks],
        "dp_index": [topology.dp_index.get(rank) for rank in topology.ranks],
    }
    return pa.table(columns, schema=RANKS)


def _quiet(what: str, done: int, total: int) -> None:
    """Tell nobody."""
