"""The second half of the analysis: what was examined is judged, and compared with an older run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import structs

from cluster_analysis.describe.everything import described
from cluster_analysis.describe.rules import advised
from cluster_analysis.engine.read_ranks import Progress, RanksRead
from cluster_analysis.judge.baseline import Comparison, compare, match_findings
from cluster_analysis.judge.detection import Detection, detect
from cluster_analysis.kept.fleet import asked_of_fleet
from cluster_analysis.kept.loaded import evidence_of, is_output, load_result
from cluster_analysis.pipeline import Examined, counts_missing, examined
from cluster_analysis.replay.lanes import lanes_tables
from cluster_analysis.result import AnalysisResult
from cluster_analysis.run_header import analysed_at, captured_at, places_of, run_command
from cluster_analysis.tables.kernels import computing_apart
from cluster_analysis.tables.model import Capture, Selection, Topology
from cluster_analysis.tables.schema import JUDGED_STEPS, RANKS
from cluster_run.facts import Fact, fact
from cluster_run.findings import FindingsDocument, RunInfo, unless_open
from cluster_run.ids import Rank
from cluster_run.layout import MAPPING_NAME
from cluster_run.problem import Problem, one_a_file
from cluster_run.version import VERSION
from cluster_words.problems import reason

#: Problems of hosts and ranks without any data.
_NOT_HERE = ("not_collected", "not_collected_whole", "missing_ranks")


def compared(
    examined_run: Examined, result: AnalysisResult, progress: Progress | None = None
) -> Comparison | None:
    """Return what changed since the baseline that the options name, None where they name none.

    `result` is what was found in the run; the older run is judged in the same way, or is an output of ours.

    Raises:
        InputError: the baseline cannot be analysed.
    """
    options = examined_run.options
    if options.baseline is None:
        return None
    if is_output(options.baseline):
        older_result = load_result(options.baseline)
        older_evidence, older_topology = evidence_of(older_result), older_result.topology
        found = compare(older_evidence, older_topology, examined_run.evidence, examined_run.topology)
        return _with_findings(found, older_result.document, result.document)
    # Steps are numbered anew in each run; only the choice of ranks means the same in both.
    selection = Selection(ranks=options.selection.ranks)
    older = structs.replace(options, run=options.baseline, baseline=None, part=None, selection=selection)
    with examined(older, progress) as before:
        found = compare(before.evidence, before.topology, examined_run.evidence, examined_run.topology)
        if found.refusals:
            return found
        return _with_findings(found, judged(before).document, result.document)


def _with_findings(found: Comparison, before: FindingsDocument, after: FindingsDocument) -> Comparison:
    """Return the comparison with what was put right, is still there, and is new; not of unlike jobs."""
    if found.refusals:
        return found
    return structs.replace(found, findings=match_findings(before.findings, after.findings))


def judged(known: Examined) -> AnalysisResult:
    """Return the findings, and the tables behind them."""
    options, evidence, topology = known.options, known.evidence, known.topology
    capture, read = known.capture, known.read
    captured, ranks = captured_at(known.sources), _ranks_table(topology)
    memory = asked_of_fleet(options, ranks, evidence.step_table, captured)
    found = detect(evidence, topology, prior=memory.p_slow)
    seen = _ranks_with_data(read)
    expected = _expected_ranks(capture, topology, options.selection)
    problems = tuple(_with_host(one, topology) for one in one_a_file(capture.problems, read.problems))
    missing = sorted(expected - seen)
    alone = (one for one in evidence.notes if one.kind == "no_common_step")
    problems += tuple(Problem(one, advice="record_same_steps") for one in alone)
    problems += _unnamed_missing(missing, problems, len(expected))
    # Without step times a rank cannot be called healthy.
    untimed = seen - _timed_ranks(read.steps)
    own_notes: tuple[Fact, ...] = ()
    if is_alone(seen, expected, read):
        found = without_findings_on_others(found)
        own_notes = (fact("one_rank_of_several", rank=min(seen)),)
    if untimed:
        own_notes += (fact("ranks_without_step_times", n_silent=len(untimed), n_ranks=len(seen)),)
    of_batches = _of_all_ranks(note for one in read.summaries for note in one.notes)
    notes = dict.fromkeys(
        (
            *capture.notes,
            *own_notes,
            *of_batches,
            *found.notes,
            *memory.notes,
            *memory.unnamed(found.findings),
        )
    )
    document = FindingsDocument(
        tool_version=VERSION,
        run=_run_info(known, found, seen, len(expected), captured),
        verdict=unless_open(found.verdict, notes, lacks=bool(missing)),
        findings=tuple(
            memory.quoted(replace(one, places=places_of(one, topology))) for one in found.findings
        ),
        problems=tuple(sorted(set(problems), key=_problem_order)),
        notes=tuple(notes),
        replay=found.replay,
    )
    tables = {
        "ranks": ranks,
        "steps": evidence.step_table,
        "matched": evidence.matched,
        "rank_times": evidence.rank_times,
        "links": found.links,
        "operators": evidence.operators,
        "computing_apart": computing_apart(evidence.operators),
        "iterations": read.iterations,
        "packets": evidence.packets,
        **read.figures,
        **lanes_tables(evidence.graph, evidence.steps, found.findings),
    }
    tables |= described(tables, topology)
    findings = advised(document.findings, tables["advice"], len(seen))
    return AnalysisResult(
        document=replace(document, findings=findings),
        topology=topology,
        tables=tables,
        addresses=known.shown_addresses,
    )


def _run_info(
    known: Examined, found: Detection, seen: set[Rank], n_expected: int, captured: str | None
) -> RunInfo:
    """Return what findings say of the run itself."""
    options, topology = known.options, known.topology
    hosts = {host for rank, host in topology.hosts.items() if rank in seen}
    mapping = options.run / MAPPING_NAME
    return RunInfo(
        ranks=len(seen),
        expected_ranks=n_expected,
        hosts=len(hosts),
        steps=known.evidence.steps,
        step_ms=found.step_ms,
        sources=tuple(sorted({source.kind for source in known.capture.sources})),
        parallel=topology.parallel,
        name=options.reported_run.resolve().name,
        path=str(options.reported_run.resolve()),
        captured=captured,
        analysed=analysed_at(),
        command=run_command(options),
        mapping="" if options.archive or not mapping.is_file() else str(mapping),
        ideal_step_ms=None if found.ideal is None else round(found.ideal.ideal_us / 1e3, 3),
        slowdown=None if found.ideal is None else round(found.ideal.slowdown, 4),
        lost=found.lost,
    )


def _timed_ranks(steps: pa.Table) -> set[int]:
    """Return the ranks of `steps` (STEPS) that have a step with all that is judged of it."""
    is_known = np.logical_and.reduce([pc.is_valid(steps[name]).to_numpy() for name in JUDGED_STEPS])
    return set(steps["rank"].to_numpy()[is_known].tolist())


def is_alone(seen: set[Rank], expected: set[Rank], read: RanksRead) -> bool:
    """Return whether one rank alone was read, of a job that has others."""
    return len(seen) == 1 and (len(expected) > 1 or bool(read.uses.num_rows))


def without_findings_on_others(found: Detection) -> Detection:
    """Keep only a rank's findings on itself: the ranks that it waited for were not read."""
    kept = tuple(one for one in found.findings if one.record.by_itself)
    return structs.replace(found, findings=kept, verdict="unknown", ideal=None, lost=())


def _with_host(problem: Problem, topology: Topology) -> Problem:
    """Return the problem with the host of its rank, which was not known when it was met."""
    if problem.host is not None or problem.rank is None:
        return problem
    return replace(problem, host=topology.hosts.get(problem.rank))


def _of_all_ranks(notes: Iterable[Fact]) -> Iterator[Fact]:
    """Give the notes of readers: equal notes of several ranks become one, with their `ranks` joined."""
    ranks: dict[Fact, list[Rank]] = {}
    for note in notes:
        values = dict(note.values)
        own = values.pop("ranks", ())
        ranks.setdefault(Fact(note.kind, tuple(values.items())), []).extend(own)  # type: ignore[arg-type]
    for note, of in ranks.items():
        yield replace(note, values=(("ranks", tuple(sorted(of))), *note.values)) if of else note


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
    if not unnamed or any(counts_missing(one) for one in problems):
        return ()
    why = fact("missing_ranks", n_missing=len(unnamed), n_ranks=n_expected, ranks=tuple(unnamed))
    return (Problem(why, advice="collect_them_too"),)


def _problem_order(problem: Problem) -> tuple[bool, str, int, str, str]:
    """Sort by place, then by the fields of findings.json: each run gives the same order.

    Hosts and ranks without any data are first: with them the others may go.
    """
    rank = -1 if problem.rank is None else problem.rank
    return (problem.kind not in _NOT_HERE, problem.host or "", rank, problem.file, reason(problem).en)


def _ranks_table(topology: Topology) -> pa.Table:
    rows = ((rank, *topology.place_of(rank)) for rank in topology.ranks)
    return pa.Table.from_pylist([dict(zip(RANKS.names, row, strict=True)) for row in rows], schema=RANKS)
