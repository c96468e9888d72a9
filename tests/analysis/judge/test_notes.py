"""The notes on what could not be judged are sentences for one rank as for several."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.detection.simulated_tables import tables, topology
from cluster_analysis.judge.detection import Detection, detect
from cluster_analysis.judge.open_questions import open_questions
from cluster_analysis.judge.view import build_view
from cluster_analysis.judging import judged as verdict_of
from cluster_analysis.options import AnalyseOptions
from cluster_analysis.pipeline import examined
from cluster_analysis.tables.model import Topology
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.facts import Fact
from cluster_run.findings import unless_open
from cluster_run.ids import Rank
from cluster_run.kinds import OPEN_NOTES
from cluster_simulate.api import Healthy, JobSpec, parse_scenario, simulate
from cluster_words import notes
from cluster_words.findings import summary
from tests.analysis.copies import replace, with_column
from tests.analysis.jobs import (
    Call,
    collectives_table,
    evidence_of,
    evidence_of_tables,
    judged,
    small_topology,
    steps_table,
)
from tests.analysis.runs import write_small_run
from tests.analysis.said import notes_of
from tests.analysis.totals import STEP_US, evidence_of_computing, on_hosts, peers_agree

SMALL = JobSpec(tp=2, pp=1, dp=4, steps=3, microbatches=2)


def of_totals(where: Topology, ranks: tuple[int, ...]) -> Detection:
    """A job of which only these ranks have step times."""
    totals = steps_table(dict.fromkeys(ranks, 1e6), computing_us=9e5)
    return detect(evidence_of(where, totals), where)


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ((3,), "7 of 8 ranks can be compared: they may have waited for the other one"),
        ((3, 5), "6 of 8 ranks can be compared: they may have waited for one of the other 2"),
    ],
)
def test_whom_the_others_waited_for_may_be_missing(missing: tuple[int, ...], words: str) -> None:
    assert words in notes_of(judged(replace(SMALL, healthy=Healthy(missing_ranks=missing))).detection)


@pytest.mark.parametrize(
    ("with_times", "words"),
    [
        (7, "7 of 8 ranks can be compared: they may have waited for the other one"),
        (1, "1 of 8 ranks can be compared: it may have waited for one of the other 7"),
    ],
)
def test_ranks_without_step_times_are_counted(with_times: int, words: str) -> None:
    where = small_topology({"g": tuple(range(8))})
    assert words in notes_of(of_totals(where, tuple(range(with_times))))


@pytest.mark.parametrize(
    ("n_alone", "words"),
    [
        (1, "1 rank has fewer than 3 peers of its own stage: it is compared with all ranks of the job"),
        (
            2,
            "2 ranks have fewer than 3 peers of their own stage: they are compared with all ranks of the job",
        ),
    ],
)
def test_ranks_with_few_peers_are_counted(n_alone: int, words: str) -> None:
    ranks = range(6 + n_alone)
    stages = {rank: int(rank >= 6) for rank in ranks}
    where = small_topology({"g": tuple(ranks)}, stages=stages)
    (note,) = (one for one in notes_of(of_totals(where, tuple(ranks))) if one.startswith(words))
    assert note.endswith("only show with more replicas, or against a good run (--baseline)")


def test_steps_that_only_some_ranks_have_are_named() -> None:
    where = small_topology({"g": tuple(range(4))})
    ranks_of = {1: (0, 1, 2, 3), 2: (0, 1, 2), 3: (3,), 4: (0, 1, 2, 3)}
    totals = [steps_table(dict.fromkeys(ranks, 1e6), step=step) for step, ranks in ranks_of.items()]
    notes = notes_of(evidence_of(where, pa.concat_tables(totals)))
    assert "steps 2-3: ranks 0-3 lack some of them; their other steps are compared" in notes


def test_times_of_which_none_could_be_read_are_no_healthy_job() -> None:
    evidence = evidence_of_computing(np.full((8, 4), np.nan), on_hosts(8, 8))
    found = detect(evidence, on_hosts(8, 8))
    assert found.verdict == "unknown"
    assert any("no step times could be read" in note for note in notes_of(found))


def test_a_step_in_which_all_communicate_for_long_and_nobody_is_late_leaves_the_question_open() -> None:
    where = on_hosts(8, 8)
    evidence = evidence_of_computing(peers_agree(8, 5, share=0.9), where)
    table = evidence.step_table
    for longer_us, verdict in ((0.0, "healthy"), (STEP_US, "unknown")):
        waited = np.where(np.asarray(table["step"]) == 2, longer_us, 0.0) + 0.04 * STEP_US
        held_up = with_column(table, "communication_not_overlapped_us", waited)
        found = detect(replace(evidence, step_table=held_up), where)
        assert found.verdict == verdict
        assert any("longer in step 2" in note for note in notes_of(found)) == (verdict == "unknown")


def test_communication_beside_computing_leaves_no_question_open() -> None:
    where = on_hosts(8, 8)
    evidence = evidence_of_computing(peers_agree(8, 5, share=0.97), where)
    table = evidence.step_table
    covered = np.where(np.asarray(table["step"]) == 2, 0.3 * STEP_US, 0.0) + 0.5 * STEP_US
    found = detect(replace(evidence, step_table=with_column(table, "communication_us", covered)), where)
    assert found.verdict == "healthy"


@pytest.mark.parametrize(("exposed", "verdict"), [(0.03, "healthy"), (0.3, "unknown")])
def test_communication_that_nobody_could_read_and_that_takes_long_leaves_the_question_open(
    exposed: float, verdict: str
) -> None:
    where = on_hosts(8, 8)
    found = detect(evidence_of_computing(peers_agree(8, 5, share=1 - exposed), where), where)
    assert found.verdict == verdict
    asked = "8 ranks could not be read, or not matched over ranks; it takes 30 % of the step"
    assert any(asked in note for note in notes_of(found)) == (verdict == "unknown")


@pytest.mark.parametrize("factor", [1, 3])
def test_a_rank_of_which_neither_calls_nor_links_were_read_keeps_a_job_from_being_healthy(
    factor: int,
) -> None:
    """No other rank tells of the link that it sends over: all members of its ring wait for it alike."""
    spec = JobSpec(tp=2, pp=1, dp=8, ranks_per_host=4, microbatches=4)
    job = simulate(spec, [parse_scenario(f"slow_link:{factor}@5-7")], seed=1)
    where, ranks = topology(job), tables(job)
    whole = detect(evidence_of_tables(ranks.values(), where), where)
    assert whole.verdict == ("healthy" if factor == 1 else "degraded")
    for name in ("collectives", "links"):
        ranks[5] = replace(ranks[5], **{name: getattr(ranks[5], name).slice(0, 0)})
    found = detect(evidence_of_tables(ranks.values(), where), where)
    assert found.verdict == "unknown"
    assert "unread_communication" in {note.kind for note in found.notes}


@pytest.mark.parametrize(("n_unread", "verdict"), [(1, "degraded"), (8, "unknown")])
def test_a_slow_connection_of_hosts_whose_calls_were_not_read_is_not_healthy(
    n_unread: int, verdict: str
) -> None:
    """Calls have several ends: one rank hides little, both ends of the connection hide all of it."""
    spec = JobSpec(tp=2, pp=1, dp=8, ranks_per_host=4)
    job = simulate(spec, [parse_scenario("slow_host_pair:3@1-2")], seed=1)
    where = topology(job)
    ranks = [
        replace(one, collectives=one.collectives.slice(0, 0), links=one.links.slice(0, 0))
        if rank < n_unread
        else one
        for rank, one in sorted(tables(job).items())
    ]
    found = detect(evidence_of_tables(ranks, where), where)
    assert found.verdict == verdict
    asked = f"the communication of {n_unread} ranks could not be read"
    assert any(asked in note for note in notes_of(found)) == (verdict == "unknown")


def test_ranks_whose_roles_are_all_unknown_cannot_be_judged() -> None:
    where = replace(on_hosts(8, 8), stages={Rank(0): 0})
    assert detect(evidence_of_computing(peers_agree(8, 5), where), where).verdict == "unknown"


def one_step(longer_us: np.ndarray) -> Detection:  # type: ignore[type-arg]
    """Five steps of a second; in one of them each rank idles so much longer, and then waits for the last."""
    n_ranks = len(longer_us)
    where, usual = on_hosts(n_ranks, 8), evidence_of_computing(peers_agree(n_ranks, 5), on_hosts(n_ranks, 8))
    table = usual.step_table.to_pydict()
    for row, (rank, step) in enumerate(zip(table["rank"], table["step"], strict=True)):
        if step == 2:
            table["free_us"][row] += longer_us[rank]
            table["communication_not_overlapped_us"][row] += longer_us.max() - longer_us[rank]
    return detect(replace(usual, step_table=pa.table(table, schema=usual.step_table.schema)), where)


def test_a_job_that_one_rank_kept_waiting_for_seconds_once_is_not_called_healthy() -> None:
    found = one_step(np.where(np.arange(16) == 11, 4e6, 0.0))
    assert found.verdict == "unknown"
    (pause,) = [one for one in found.findings if one.kind == "periodic_pause"]
    assert (pause.ranks, pause.is_alarm) == ((11,), False)
    assert "Rank 11 pauses 1 time" in summary(pause).en


def test_a_step_in_which_all_ranks_pause_alike_is_no_rank_s() -> None:
    assert "idled" not in " ".join(notes_of(one_step(np.full(16, 4e6))))


@pytest.mark.parametrize(
    ("late_us", "copied_share", "is_open"),
    [(40e3, 0.0, True), (100e3, 0.0, False), (100e3, 0.8, True), (300e3, 0.8, False)],
)
def test_a_late_rank_explains_no_more_than_its_delay_where_nobody_knows_for_whom_others_waited(
    late_us: float, copied_share: float, is_open: bool
) -> None:
    where = on_hosts(16, 16)
    idle = np.zeros((16, 5))
    idle[3, 2] = late_us
    evidence = evidence_of_computing(peers_agree(16, 5, share=0.5), where, idle)
    table = evidence.step_table
    name = "communication_not_overlapped_us"
    longer = np.where(np.asarray(table["step"]) == 2, 600e3, 0.0) + np.asarray(table[name])
    evidence = replace(evidence, step_table=with_column(table, name, longer))
    asked = open_questions(build_view(evidence, where), evidence, (), Thresholds(), copied_share)
    assert ("long_step" in [one.kind for one in asked]) == is_open


def test_a_step_in_which_all_ranks_compute_less_is_no_long_one() -> None:
    where, computing = on_hosts(16, 16), peers_agree(16, 5, share=0.5)
    computing[:, 2] *= 0.4
    evidence = evidence_of_computing(computing, where)
    table, name = evidence.step_table, "communication_not_overlapped_us"
    as_usual = np.where(np.asarray(table["step"]) == 2, np.median(table[name]), table[name])
    evidence = replace(evidence, step_table=with_column(table, name, as_usual))
    asked = open_questions(build_view(evidence, where), evidence, (), Thresholds())
    assert "long_step" not in [one.kind for one in asked]


@pytest.mark.slow
def test_a_note_that_leaves_a_question_open_is_not_healthy_wherever_it_comes_from(tmp_path: Path) -> None:
    run = write_small_run(tmp_path / "run", dp=4, faults=(), seed=6)
    with examined(AnalyseOptions(run, tmp_path / "out")) as known:
        assert verdict_of(known).document.verdict == "healthy"
        capture, read = known.capture, known.read
        harmless = tuple(Fact(kind) for kind in notes.SENTENCES if kind not in OPEN_NOTES)
        for told, verdict in ((harmless, "healthy"), ((Fact(next(iter(OPEN_NOTES))),), "unknown")):
            known.capture = replace(capture, notes=told)
            of_capture = verdict_of(known).document.verdict
            known.capture = capture
            known.read = replace(read, summaries=tuple(replace(one, notes=told) for one in read.summaries))
            of_readers = verdict_of(known).document.verdict
            known.read = read
            assert of_capture == of_readers == verdict, told
    for kind in OPEN_NOTES:
        assert unless_open("healthy", [Fact(kind)], lacks=False) == "unknown"


def judged_without(silent: set[int], *scenarios: str) -> Detection:
    """Judge a job that does not communicate in these steps, as it sums gradients up over several."""
    spec = JobSpec(tp=1, pp=1, dp=16, steps=6, microbatches=2)
    job = simulate(spec, [parse_scenario(text) for text in scenarios], seed=11)
    where, parts = topology(job), list(tables(job).values())
    steps, calls, links, operators = (
        pa.concat_tables([getattr(one, name) for one in parts]).unify_dictionaries()
        for name in ("steps", "collectives", "links", "operators")
    )
    named = sorted(set(steps["step"].to_pylist()))
    spoken = [name for at, name in enumerate(named) if at not in silent]
    calls, links = (one.filter(np.isin(np.asarray(one["step"]), spoken)) for one in (calls, links))
    uncovered, is_silent = "communication_not_overlapped_us", ~np.isin(np.asarray(steps["step"]), spoken)
    less = np.where(is_silent, np.asarray(steps[uncovered]), 0.0)
    steps = with_column(steps, "stage_us", np.asarray(steps["stage_us"]) - less)
    for name in ("communication_us", uncovered):
        steps = with_column(steps, name, np.where(is_silent, 0.0, np.asarray(steps[name])))
    return detect(evidence_of(where, steps, calls, links, operators), where)


@pytest.mark.parametrize("silent", [{0, 2, 4}, {0, 1, 3, 4}, {5}])
def test_a_job_that_communicates_in_some_of_its_steps_only_is_judged_whole(silent: set[int]) -> None:
    healthy = judged_without(silent)
    assert (healthy.verdict, [one.kind for one in healthy.notes]) == ("healthy", [])
    (slow,) = [one for one in judged_without(silent, "slow_rank:1.25@5").findings if one.is_alarm]
    assert (slow.ranks, slow.cause, slow.cost_ms_per_step) == ((5,), "compute", slow.cost_high_ms)


@pytest.mark.parametrize(("steps", "is_open"), [((2, 5), False), ((2,), True)])
def test_a_step_is_long_beside_steps_with_as_many_calls(steps: tuple[int, ...], is_open: bool) -> None:
    where = on_hosts(16, 16)
    calls = [
        Call(rank, "allReduce", 5e5 + 4e5 * at, 3e5, number=at, step=step)
        for rank, step in np.ndindex(16, 6)
        for at in range(2 if step in steps else 1)
    ]
    table = evidence_of_computing(peers_agree(16, 6, share=0.5), where).step_table
    name = "communication_not_overlapped_us"
    longer = np.where(np.isin(np.asarray(table["step"]), steps), 4e5, 0.0) + np.asarray(table[name])
    evidence = evidence_of(where, with_column(table, name, longer), collectives_table(calls))
    asked = open_questions(build_view(evidence, where), evidence, (), Thresholds())
    assert ("long_step" in [one.kind for one in asked]) == is_open


def test_a_job_that_never_communicates_has_no_operators_to_replay() -> None:
    assert "no_operators" in [one.kind for one in judged_without(set(range(6))).notes]
