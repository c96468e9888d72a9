"""Too little to judge by - few peers, few steps, missing files: what is said, and what is left open."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.detection.simulated_tables import tables, topology
from cluster_analysis.judge.detection import Detection, detect
from cluster_analysis.judge.measures.links import observe
from cluster_analysis.judge.open_questions import open_questions, waits_for_absent
from cluster_analysis.judge.view import build_view
from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.tables.rank_tables import RankTables
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.findings import Finding
from cluster_run.ids import Rank
from cluster_run.kinds import FAULT_KINDS
from cluster_simulate.api import Healthy, JobSpec, parse_scenario, simulate
from cluster_words.checks import next_check
from cluster_words.notes import note
from tests.analysis.copies import replace
from tests.analysis.jobs import SMALL, evidence_of_tables, judged
from tests.analysis.said import notes_of, summary
from tests.analysis.totals import evidence_of_idle, on_hosts, peers_agree

# Ranks with one peer or none, as in deep pipelines: all ranks are peers in what knows no stage.
N_RANKS, N_STEPS = 16, 5
ON_HOSTS = on_hosts(N_RANKS, 8)
PAIRS = replace(ON_HOSTS, stages={Rank(rank): rank // 2 for rank in range(N_RANKS)})
ALONE = replace(ON_HOSTS, stages={Rank(rank): rank for rank in range(N_RANKS)})


def alarms(late: dict[int, float], where: object = PAIRS, *, before_first: bool = False) -> list[Finding]:
    """Alarms of a job in which some ranks idle for so many µs, where all others do for 10 ms."""
    idle = 10e3 * np.random.default_rng(4).uniform(0.9, 1.1, (2, N_RANKS, N_STEPS))
    free, preparing = (np.asarray(one) for one in idle)
    longer: FloatArray = preparing if before_first else free
    for rank, idle_us in late.items():
        longer[rank] += idle_us - 10e3
    computing = peers_agree(N_RANKS, N_STEPS, share=0.5)
    found = detect(evidence_of_idle(computing, free, preparing, where), where).findings  # type: ignore[arg-type]
    return [one for one in found if one.is_alarm]


@pytest.mark.parametrize(("before_first", "cause"), [(False, "dispatch"), (True, "input")])
def test_a_rank_with_one_peer_that_idles_a_multiple_of_all_others_is_named(
    before_first: bool, cause: str
) -> None:
    (alarm,) = alarms({5: 60e3}, before_first=before_first)
    assert (alarm.kind, alarm.ranks, alarm.cause) == ("slow_rank", (5,), cause)


def test_a_rank_that_idles_long_is_not_named_where_that_may_be_its_stage() -> None:
    assert alarms({5: 22e3}) == [], "twice as long as the others, beside one peer"
    assert alarms({4: 60e3, 5: 60e3}) == [], "both ranks of the stage"
    assert alarms({5: 60e3}, ALONE) == [], "the only rank of its stage"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("varies", "pattern", "steps"),
    [
        ("", "persistent", (10, 11, 12, 13, 14, 15)),
        (",pattern=intermittent,duty=0.33", "intermittent", (11, 13)),
    ],
)
def test_times_tell_in_which_steps_a_rank_with_one_peer_is_slow_that_its_kernels_accuse(
    varies: str, pattern: str, steps: tuple[int, ...]
) -> None:
    case = judged(JobSpec(tp=1, pp=8, dp=2, steps=6), f"slow_rank:1.3@9{varies}", seed=11)
    (alarm,) = case.alarms
    assert (alarm.ranks, alarm.pattern, alarm.steps) == ((9,), pattern, steps)
    assert alarm.cost_ms_per_step == pytest.approx(case.true_cost_ms, rel=0.25)


def test_the_ideal_step_is_no_longer_than_with_the_slow_rank_repaired() -> None:
    found = judged(JobSpec(tp=1, pp=8, dp=2, steps=6), "slow_rank:1.1@12,cause=dispatch", seed=11).detection
    (alarm,) = [one for one in found.findings if one.is_alarm]
    assert found.ideal is not None
    assert found.ideal.step_us - found.ideal.ideal_us >= 1e3 * (alarm.cost_ms_per_step or 0.0) - 1.0


def test_a_host_that_is_a_stage_is_told_though_all_others_idle_for_no_time_at_all() -> None:
    where = replace(ON_HOSTS, stages={Rank(rank): rank // 8 for rank in range(N_RANKS)})
    free = np.zeros((N_RANKS, N_STEPS))
    free[8:] = 40e3
    preparing = np.full(free.shape, 1e3)
    evidence = evidence_of_idle(peers_agree(N_RANKS, N_STEPS, share=0.5), free, preparing, where)
    (told,) = [one for one in detect(evidence, where).findings if one.kind == "host_bound" and one.hosts]
    assert told.hosts == ("2",)


# One or two steps: what they show for sure, what they leave open, and what they must not claim.
#: One stretch of computing in a step, and one collective.
DATA_PARALLEL = JobSpec(tp=1, pp=1, dp=16, microbatches=8)


def test_one_pause_in_a_single_step_is_no_fault() -> None:
    spec = replace(SMALL, steps=1)
    result = judged(spec, "periodic_pause:120@5,every=1")
    assert result.alarms == ()
    assert any("1 step only" in note for note in notes_of(result.detection))


def test_a_single_step_still_shows_a_device_whose_every_gap_is_long() -> None:
    result = judged(replace(SMALL, steps=1), "slow_rank:1.3@5")
    assert [(one.ranks, one.confidence) for one in result.alarms] == [((5,), "medium")]


def test_a_late_start_in_a_single_step_is_not_held_against_anybody() -> None:
    assert judged(replace(SMALL, steps=1), "slow_rank:1.2@5,cause=input").alarms == ()


@pytest.mark.parametrize("steps", [1, 2])
def test_computing_that_takes_half_as_long_again_is_named_even_where_a_step_has_one_stretch_of_it(
    steps: int,
) -> None:
    result = judged(replace(DATA_PARALLEL, steps=steps), "slow_rank:1.5@5")
    assert [(one.ranks, one.confidence) for one in result.alarms] == [((5,), "low")]
    assert "too few to tell a single event from a fault" in summary(result.alarms[0])
    assert result.detection.verdict == "degraded"


def test_one_long_pause_in_two_steps_is_listed_but_no_alarm() -> None:
    result = judged(replace(SMALL, steps=2), "periodic_pause:300@5,every=2")
    listed = [(one.ranks, one.severity, one.confidence) for one in result.of_kind("slow_rank")]
    assert listed == [((5,), "info", "low")]


@pytest.mark.parametrize("scenario", ["periodic_pause:300@5,every=1", "slow_rank:1.2@5,cause=input"])
def test_a_dear_moment_in_the_only_step_leaves_the_verdict_open_and_not_healthy(scenario: str) -> None:
    result = judged(replace(SMALL, steps=1), scenario)
    assert result.alarms == ()
    assert result.detection.verdict == "unknown"
    assert any("slow_rank-5" in note and "profile 10 steps" in note for note in notes_of(result.detection))


def test_healthy_jobs_of_few_steps_have_no_alarm_and_no_list_full_of_bursts() -> None:
    for steps in (1, 2, 3):
        result = judged(replace(SMALL, steps=steps))
        assert result.alarms == ()
        assert len([one for one in result.detection.findings if one.kind in FAULT_KINDS]) <= 1


def test_an_operator_that_is_the_fastest_and_the_slowest_of_its_kind_is_one_observation() -> None:
    result = judged(replace(DATA_PARALLEL, steps=1))
    seen = observe(result.evidence, result.topology, Thresholds())
    assert seen is not None
    rows = list(zip(seen.kind, seen.unit, seen.time_us, strict=True))
    assert len(rows) == len(set(rows))
    assert result.evidence.links.num_rows > 2 * len(rows)


# Time that went into waiting for ranks without files: said, and never called healthy.
SPEC = JobSpec(tp=8, pp=1, dp=4, steps=5, microbatches=2, healthy=Healthy(missing_ranks=(15,)))


def test_a_long_wait_for_a_rank_without_files_is_an_open_question_if_nothing_explains_it() -> None:
    result = judged(SPEC, "retransmission:4000@13-8")
    view = build_view(result.evidence, result.topology)
    (question,) = open_questions(view, result.evidence, (), Thresholds())
    assert question.kind == "waits_for_absent"
    assert question["ranks"] == (15,)
    said = note(question).en
    assert "waiting for ranks without files, or for the network" in said
    assert said.endswith("for rank 15; collect them too")
    assert open_questions(view, result.evidence, result.alarms, Thresholds()) == []


def test_what_a_group_waited_for_its_absent_member_is_as_long_as_the_delay() -> None:
    result = judged(SPEC, "retransmission:4000@13-8")
    view = build_view(result.evidence, result.topology)
    (wait,) = waits_for_absent(result.evidence.matched, view, 0.0)
    assert wait["ranks"] == (15,)
    assert wait["wait_us"] == pytest.approx(4.05e6, abs=0.15e6)
    assert wait["step_share"] == pytest.approx(0.85e6 / view.mean_step_us, rel=0.18)


def test_a_healthy_job_that_lacks_a_rank_is_healthy() -> None:
    assert judged(SPEC).detection.verdict == "healthy"


def test_a_job_that_lacks_nobody_waited_for_nobody_absent() -> None:
    result = judged(JobSpec(tp=8, pp=1, dp=4, steps=5, microbatches=2), "slow_rank:1.5@3")
    view = build_view(result.evidence, result.topology)
    assert waits_for_absent(result.evidence.matched, view, 0.0) == []


# What a fault costs when the files of some rank are missing, cut or full of holes.
SMALLER = JobSpec(tp=2, pp=2, dp=4, ranks_per_host=4, steps=5)
SLOW = "slow_rank:1.3@4"


def without_operators(one: RankTables) -> RankTables:
    """The rank as if its communication files could not be read."""

    def emptied(table: pa.Table) -> pa.Table:
        return table.slice(0, 0)

    return replace(
        one, collectives=emptied(one.collectives), links=emptied(one.links), packets=emptied(one.packets)
    )


def judged_without_operators_of(rank: int) -> Detection:
    job = simulate(SMALLER, [parse_scenario(SLOW)], seed=5)
    where = topology(job)
    ranks = {**tables(job)}
    ranks[Rank(rank)] = without_operators(ranks[Rank(rank)])
    return detect(evidence_of_tables(ranks.values(), where), where)


@pytest.mark.slow
@pytest.mark.parametrize("cut", [5, 12], ids=["its mate", "the next stage"])
def test_a_cost_stands_when_the_operators_of_another_rank_are_missing(cut: int) -> None:
    whole = judged(SMALLER, SLOW, seed=5)
    (finding,) = (one for one in judged_without_operators_of(cut).findings if one.is_alarm)
    assert finding.id == "slow_rank-4"
    assert finding.cost_ms_per_step == pytest.approx(whole.true_cost_ms, rel=0.02)


def test_no_cost_is_quoted_when_the_operators_of_the_slow_rank_itself_are_missing() -> None:
    (finding,) = (one for one in judged_without_operators_of(4).findings if one.is_alarm)
    assert finding.id == "slow_rank-4"
    assert finding.cost_ms_per_step is None


def test_ranks_without_any_files_do_not_hide_what_a_fault_costs() -> None:
    spec = replace(SMALLER, tp=4, p2p="rendezvous", healthy=Healthy(missing_ranks=(6, 19)))
    result = judged(spec, SLOW)
    (finding,) = result.alarms
    assert finding.cost_ms_per_step == pytest.approx(result.true_cost_ms, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.01, 0.05])
def test_lost_records_do_not_hide_what_a_fault_costs(share: float) -> None:
    spec = replace(SMALLER, steps=8, healthy=Healthy(missing_records=share))
    result = judged(spec, SLOW)
    (finding,) = result.alarms
    assert finding.cost_ms_per_step == pytest.approx(result.true_cost_ms, rel=0.1)


def test_a_slow_link_of_a_group_that_lacks_a_member_is_not_taken_for_waiting() -> None:
    spec = JobSpec(tp=4, pp=2, dp=4, cp=2, steps=5, microbatches=4, healthy=Healthy(missing_ranks=(7, 46)))
    case = judged(spec, "slow_nic:3@3", seed=11)
    (alarm,) = case.alarms
    assert (alarm.kind, alarm.ranks) == ("slow_nic", (3,))
    assert alarm.cost_ms_per_step == pytest.approx(case.true_cost_ms, rel=0.2)


def test_a_cost_is_the_least_one_where_a_rank_of_a_pipeline_waits_for_one_without_files() -> None:
    spec = JobSpec(tp=1, pp=4, dp=2, steps=5, healthy=Healthy(stage_work=(1.0, 1.0, 1.0, 1.5)))
    alone = replace(spec, healthy=replace(spec.healthy, missing_ranks=(3,)))
    (whole,), (least,) = (
        [one for one in judged(one).detection.findings if one.kind == "stage_imbalance"]
        for one in (spec, alone)
    )
    assert (whole.confidence, least.confidence) == ("high", "low")
    assert [one.kind for one in least.facts][-1] == "cost_at_least"
    assert "cost_at_least" not in [one.kind for one in whole.facts]


def test_no_bound_is_told_where_ranks_wait_for_many_that_are_not_here() -> None:
    most = judged(
        JobSpec(tp=4, pp=4, dp=4, steps=3, microbatches=2, healthy=Healthy(missing_ranks=tuple(range(8, 64))))
    )
    (exposed,) = most.of_kind("exposed_communication")
    assert (exposed.cost_ms_per_step, exposed.cost_low_ms, exposed.cost_high_ms) == (None, None, None)
    assert [said.kind for said in exposed.facts] == ["exposed_of_some_ranks"]
    assert next_check(exposed).en.startswith("Collect the other ranks of the job too")
    (whole,) = judged(JobSpec(tp=4, pp=4, dp=4, steps=3, microbatches=2)).of_kind("exposed_communication")
    assert whole.cost_high_ms is not None, "with all ranks it is known"
    assert whole.cost_high_ms > 0
