"""The second half of the analysis: what was examined is judged, and compared with an older run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa
from msgspec import structs

from cluster_analysis.describe.everything import described
from cluster_analysis.describe.rules import advised
from cluster_analysis.engine.read_ranks import Progress
from cluster_analysis.judge.baseline import Comparison, compare, match_findings
from cluster_analysis.judge.detection import Detection, detect
from cluster_analysis.kept.fleet import asked_of_fleet
from cluster_analysis.kept.loaded import evidence_of, is_output, load_result
from cluster_analysis.pipeline import Examined, examined
from cluster_analysis.replay.lanes import lanes_tables
from cluster_analysis.result import AnalysisResult
from cluster_analysis.run_header import analysed_at, captured_at, places_of, run_command
from cluster_analysis.tables.kernels import computing_apart
from cluster_analysis.tables.model import Selection, Topology
from cluster_analysis.tables.schema import RANKS
from cluster_analysis.topology.presence import Presence, all_problems, who_is_here
from cluster_run.facts import Fact
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
    here = who_is_here(capture, topology, options.selection, read.steps, read.uses)
    if here.is_alone:
        found = without_findings_on_others(found)
    of_batches = _of_all_ranks(note for one in read.summaries for note in one.notes)
    of_fleet = (*memory.notes, *memory.unnamed(found.findings))
    notes = dict.fromkeys((*capture.notes, *here.notes, *of_batches, *found.notes, *of_fleet))
    problems = all_problems(here, topology, one_a_file(capture.problems, read.problems), evidence.notes)
    document = FindingsDocument(
        tool_version=VERSION,
        run=_run_info(known, found, here, captured),
        verdict=unless_open(found.verdict, notes, lacks=bool(here.missing)),
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
    findings = advised(document.findings, tables["advice"], len(here.seen))
    return AnalysisResult(
        document=replace(document, findings=findings),
        topology=topology,
        tables=tables,
        addresses=known.shown_addresses,
    )


def _run_info(known: Examined, found: Detection, here: Presence, captured: str | None) -> RunInfo:
    """Return what findings say of the run itself."""
    options, topology = known.options, known.topology
    hosts = {host for rank, host in topology.hosts.items() if rank in here.seen}
    mapping = options.run / MAPPING_NAME
    return RunInfo(
        ranks=len(here.seen),
        expected_ranks=len(here.expected),
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


def without_findings_on_others(found: Detection) -> Detection:
    """Keep only a rank's findings on itself: the ranks that it waited for were not read."""
    kept = tuple(one for one in found.findings if one.record.by_itself)
    return structs.replace(found, findings=kept, verdict="unknown", ideal=None, lost=())


def _of_all_ranks(notes: Iterable[Fact]) -> Iterator[Fact]:
    """Give the notes of readers: equal notes of several ranks become one, with their `ranks` joined."""
    ranks: dict[Fact, list[Rank]] = {}
    for note in notes:
        values = dict(note.values)
        own = values.pop("ranks", ())
        ranks.setdefault(Fact(note.kind, tuple(values.items())), []).extend(own)  # type: ignore[arg-type]
    for note, of in ranks.items():
        yield replace(note, values=(("ranks", tuple(sorted(of))), *note.values)) if of else note


def _problem_order(problem: Problem) -> tuple[bool, str, int, str, str]:
    """Sort by place, then by the fields of findings.json: each run gives the same order.

    Hosts and ranks without any data are first: with them the others may go.
    """
    rank = -1 if problem.rank is None else problem.rank
    return (problem.kind not in _NOT_HERE, problem.host or "", rank, problem.file, reason(problem).en)


def _ranks_table(topology: Topology) -> pa.Table:
    rows = ((rank, *topology.place_of(rank)) for rank in topology.ranks)
    return pa.Table.from_pylist([dict(zip(RANKS.names, row, strict=True)) for row in rows], schema=RANKS)
