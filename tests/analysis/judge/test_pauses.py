"""Which pauses are a rank's own, and which are the job's or an accident."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_analysis.judge.detection import Detection, detect
from cluster_analysis.judge.measures.deviation import least_by_chance
from cluster_analysis.judge.measures.local_times import local_times
from cluster_analysis.judge.view import build_view
from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.findings import Finding
from cluster_simulate.api import Healthy, JobSpec
from tests.analysis.copies import replace
from tests.analysis.jobs import SMALL, judged
from tests.analysis.totals import (
    evidence_of_computing,
    evidence_of_idle,
    judged_by_computing,
    on_hosts,
    peers_agree,
)

N_RANKS, N_STEPS = 16, 8
RANK = 9
WHERE = on_hosts(N_RANKS, 8)


def alarms_of(free_us: FloatArray, preparing_us: FloatArray) -> list[Finding]:
    """Alarms of a healthy job with this idle time, (ranks, steps)."""
    computing = peers_agree(N_RANKS, free_us.shape[1], share=0.5)
    found = detect(evidence_of_idle(computing, free_us, preparing_us, WHERE), WHERE)
    return [one for one in found.findings if one.is_alarm]


def idle(n_steps: int = N_STEPS, usual_us: float = 10e3) -> FloatArray:
    """Idle times of ranks that differ a little."""
    return np.asarray(usual_us * np.random.default_rng(5).uniform(0.9, 1.1, (N_RANKS, n_steps)))


def test_a_rank_that_pauses_before_its_first_operator_where_all_others_do_so_later_is_as_the_others() -> None:
    free, preparing = idle(), idle(usual_us=2e3)
    collecting = [2, 6]
    free[:, collecting] += 60e3
    free[RANK, collecting] -= 60e3
    preparing[RANK, collecting] += 60e3
    assert alarms_of(free, preparing) == []


def test_a_rank_that_pauses_where_no_other_does_is_named() -> None:
    free, preparing = idle(), idle(usual_us=2e3)
    preparing[RANK, [2, 6]] += 60e3
    (alarm,) = alarms_of(free, preparing)
    assert (alarm.kind, alarm.ranks) == ("periodic_pause", (RANK,))


@pytest.mark.parametrize("seed", range(5))
def test_a_rank_that_pauses_in_one_place_is_named_where_all_scatter_as_much_in_the_other(seed: int) -> None:
    free, preparing = idle(12), idle(12)
    preparing *= np.random.default_rng(seed).lognormal(0, 0.8, preparing.shape)
    free[RANK, [1, 3, 5, 10]] += 50e3
    named = [one.ranks for one in alarms_of(free, preparing) if one.kind == "periodic_pause"]
    assert named == [(RANK,)]


@pytest.mark.parametrize("n_others", [1, 2, 4])
@pytest.mark.parametrize("short_ms", [0, 5, 9, 15])
def test_shorter_pauses_that_others_make_too_hide_no_longer_ones(short_ms: float, n_others: int) -> None:
    free, preparing = idle(8), idle(8, usual_us=2e3)
    free[RANK, [1, 4, 7]] += [45e3, 38e3, 46e3]
    preparing[np.ix_([RANK, *range(n_others)], [2, 5])] += 1e3 * short_ms
    named = [one.ranks for one in alarms_of(free, preparing) if one.kind == "periodic_pause"]
    assert named == [(RANK,)]


@pytest.mark.parametrize(
    ("lengths_ms", "another_ms", "is_named"),
    [
        pytest.param((200, 200), 0, True, id="of one length"),
        pytest.param((200, 200), 90, True, id="another rank paused for less than half as long"),
        pytest.param((400, 195), 0, False, id="nothing alike"),
    ],
)
def test_two_pauses_are_a_rhythm_if_they_are_alike(
    lengths_ms: tuple[float, float], another_ms: float, is_named: bool
) -> None:
    free, preparing = idle(5), idle(5, usual_us=2e3)
    preparing[RANK, [1, 3]] += 1e3 * np.array(lengths_ms)
    preparing[3, 2] += 1e3 * another_ms
    named = [one.ranks for one in alarms_of(free, preparing) if one.kind == "periodic_pause"]
    assert named == ([(RANK,)] if is_named else [])


@pytest.mark.parametrize("seed", range(6))
def test_pauses_are_one_finding_and_one_cost_whichever_of_them_hold_up_the_first_operator(seed: int) -> None:
    dice, steps = np.random.default_rng(seed), np.arange(seed % 3, 12, 3)
    free, preparing = idle(12), idle(12, usual_us=20e3) * dice.uniform(0.7, 1.4, (N_RANKS, 12))
    is_first, length_us = dice.random(4) < 0.5, 60e3 * dice.uniform(0.95, 1.05, 4)
    preparing[RANK, steps] += np.where(is_first, length_us, 0.0)
    free[RANK, steps] += np.where(is_first, 0.0, length_us)
    (alarm,) = alarms_of(free, preparing)
    assert (alarm.kind, alarm.ranks, alarm.steps) == ("periodic_pause", (RANK,), tuple(steps))
    # Without operators it is the lead over the next-latest rank.
    assert alarm.cost_ms_per_step == pytest.approx(length_us.sum() / 12e3, rel=0.25)


@pytest.mark.parametrize("late_ms", [(24.0, 0.0), (14.0, 10.0), (0.0, 24.0)])
def test_a_late_host_idles_as_much_longer_wherever_the_first_operator_falls(
    late_ms: tuple[float, float],
) -> None:
    free, preparing = idle(), idle(usual_us=5e3)
    for time_us, longer_ms in zip((preparing, free), late_ms, strict=True):
        time_us[8:] += 1e3 * longer_ms
    (alarm,) = alarms_of(free, preparing)
    row = alarm.evidence[0]
    assert (alarm.id, row.metric) == ("slow_host-2", "idle_us")
    assert row.value - row.peers_median == pytest.approx(24e3, rel=0.1)
    assert alarm.cause == ("input" if late_ms[0] > late_ms[1] else "dispatch")


@pytest.mark.parametrize(("n_accidents", "is_named"), [(0, True), (8, False)])
def test_two_alike_pauses_are_an_accident_where_other_ranks_have_many(
    n_accidents: int, is_named: bool
) -> None:
    free, preparing = idle(), idle(usual_us=2e3)
    free[RANK, [1, 5]] += 90e3
    others = np.delete(np.arange(N_RANKS), RANK)[:n_accidents]
    free[others, np.arange(n_accidents) % N_STEPS] += 90e3
    named = [one.ranks for one in alarms_of(free, preparing) if one.kind == "periodic_pause"]
    assert named == ([(RANK,)] if is_named else [])


@pytest.mark.parametrize(("second_ms", "is_named"), [(200.0, True), (175.0, False)])
def test_the_more_alike_two_pauses_are_the_less_may_they_be_accidents(
    second_ms: float, is_named: bool
) -> None:
    free, preparing = idle(5), idle(5, usual_us=2e3)
    free[RANK, 1] += 200e3
    free[RANK, 3] += 1e3 * second_ms
    others = np.delete(np.arange(N_RANKS), RANK)[:2]
    free[others, 2] += 130e3  # so that the rate of accidents is no small one
    named = [one.ranks for one in alarms_of(free, preparing) if one.kind == "periodic_pause"]
    assert named == ([(RANK,)] if is_named else [])


@pytest.mark.parametrize(("n_accidents", "is_listed"), [(0, True), (3, False)])
def test_two_unlike_pauses_are_listed_where_no_other_rank_has_any_and_are_no_alarm(
    n_accidents: int, is_listed: bool
) -> None:
    where, n_ranks, n_steps = on_hosts(32, 8), 32, 6
    free = 10e3 * np.random.default_rng(5).uniform(0.9, 1.1, (n_ranks, n_steps))
    free[RANK, [1, 4]] += [60e3, 90e3]
    free[np.arange(n_accidents), np.arange(n_accidents)] += 90e3
    preparing = np.full(free.shape, 2e3)
    computing = peers_agree(n_ranks, n_steps, share=0.5)
    found = detect(evidence_of_idle(computing, free, preparing, where), where).findings
    paused = [one for one in found if one.kind == "periodic_pause"]
    assert ("periodic_pause-9" in [one.id for one in paused]) == is_listed
    assert not any(one.is_alarm for one in paused)


@pytest.mark.parametrize(("pause_us", "is_asked"), [(90e3, True), (15e3, False)])
def test_pauses_of_many_ranks_each_at_its_own_time_are_summed(pause_us: float, *, is_asked: bool) -> None:
    """Each of them is chance; together they hold up every step."""
    free, preparing = idle(8), idle(8, usual_us=2e3)
    free[np.arange(8) * 2, np.arange(8)] += pause_us
    found = detect(evidence_of_idle(peers_agree(N_RANKS, 8, share=0.5), free, preparing, WHERE), WHERE)
    assert ("costly_unexplained" in [one.kind for one in found.notes]) == is_asked
    sums = [one for one in found.findings if one.id == "periodic_pause-by-turns"]
    assert [one.ranks for one in sums] == [tuple(range(0, 16, 2))]
    assert not any(one.is_alarm for one in found.findings)


def test_a_rhythm_is_no_less_probable_than_other_ranks_have_it() -> None:
    """All may collect garbage every three steps."""
    alone = np.zeros((N_RANKS, 12))
    alone[RANK, 1::3] = [60e3, 90e3, 70e3, 80e3]
    together = alone.copy()
    for rank in range(12, 16):
        together[rank, rank % 3 :: 3] = 20e3
    chances = [least_by_chance(one, one > 0)[2][RANK] for one in (alone, together)]
    assert chances[1] > 10 * chances[0]


def test_the_only_rank_shares_its_rhythm_with_no_other() -> None:
    alone = np.zeros((1, 12))
    alone[0, 1::3] = [60e3, 90e3, 70e3, 80e3]
    told, _, chance = least_by_chance(alone, alone > 0)
    assert told.sum() == 4
    assert 0 < chance[0] < 1


@pytest.mark.parametrize("every", [2, 3])
def test_a_pause_of_the_whole_job_costs_its_length_though_half_of_the_steps_have_it(every: int) -> None:
    case = judged(replace(SMALL, steps=6), f"periodic_pause:60@all,every={every}")
    (pause,) = case.of_kind("periodic_pause")
    assert pause.ranks == ()
    assert pause.cost_ms_per_step == pytest.approx(case.true_cost_ms, rel=0.05)


def test_a_rank_that_pauses_on_a_host_that_is_always_idle_is_named_as_well() -> None:
    free, preparing = idle(10), idle(10, usual_us=2e3)
    free[:8] += 14e3
    free[3, 1::2] += 60e3
    computing = peers_agree(N_RANKS, 10, share=0.5)
    found = detect(evidence_of_idle(computing, free, preparing, WHERE), WHERE)
    assert {(one.kind, one.ranks) for one in found.findings} >= {("periodic_pause", (3,))}


@pytest.mark.parametrize(
    ("collecting", "late_us", "paused_us"),
    [
        pytest.param([], 15e3, 0.0, id="no pauses"),
        pytest.param([1, 3], 15e3, -20e3, id="not longer than others in the steps in which all pause"),
        pytest.param([1, 3], 60e3, 0.0, id="longer in these too, but so are others by chance"),
    ],
)
def test_a_rank_that_launches_late_is_told_where_all_pause_for_unlike_times_in_some_steps(
    collecting: list[int], late_us: float, paused_us: float
) -> None:
    """A step in which peers scatter by more than it loses says nothing of it: it is late in all others."""
    free, preparing = idle(5), idle(5, usual_us=2e3)
    free[RANK] += late_us
    free[:, collecting] += np.random.default_rng(7).uniform(20e3, 80e3, (N_RANKS, len(collecting)))
    free[RANK, collecting] += paused_us
    (alarm,) = alarms_of(free, preparing)
    assert (alarm.kind, alarm.ranks, alarm.pattern) == ("slow_rank", (RANK,), "persistent")


# Whether a device is slow all the time or in some steps, and who sees it most clearly.
N_RANKS, SLOW = 32, 5
FOUR_HOSTS = on_hosts(N_RANKS, 8)


def test_a_few_long_steps_of_a_slightly_slow_device_are_what_is_named() -> None:
    computing = peers_agree(N_RANKS, 8, scatter=0.01)
    computing[SLOW] *= 1.025
    computing[SLOW, [1, 4, 6]] *= 1.4
    (finding,) = (one for one in judged_by_computing(computing, FOUR_HOSTS).findings if one.is_alarm)
    assert (finding.ranks, finding.pattern, finding.steps) == ((SLOW,), "intermittent", (1, 4, 6))


def test_a_device_that_is_always_slow_by_about_as_much_is_persistently_so() -> None:
    computing = peers_agree(N_RANKS, 12)
    computing[SLOW] *= np.exp(np.random.default_rng(2).normal(0.1, 0.02, 12))
    (finding,) = (one for one in judged_by_computing(computing, FOUR_HOSTS).findings if one.is_alarm)
    assert (finding.ranks, finding.pattern) == ((SLOW,), "persistent")


@pytest.mark.slow
def test_among_samples_of_unequal_length_a_device_is_held_against_its_mates() -> None:
    spec = JobSpec(tp=4, pp=4, dp=4, steps=5, microbatches=2, healthy=Healthy(sequence_sigma=0.2))
    case = judged(spec, "slow_rank:1.1@61")
    (finding,) = (one for one in case.detection.findings if one.kind == "slow_rank")
    row = finding.evidence[0]
    assert finding.ranks == (61,)
    assert 1.08 < row.value / row.peers_median < 1.12


def test_small_events_of_other_ranks_do_not_make_large_ones_an_accident() -> None:
    computing = peers_agree(16, 8)
    computing[SLOW, [0, 6]] *= 1.5
    others = np.delete(np.arange(16), SLOW)
    computing[others[:4], [1, 2, 4, 5]] *= 1.08
    (finding,) = [one for one in judged_by_computing(computing, on_hosts(16, 16)).findings if one.is_alarm]
    assert (finding.ranks, finding.pattern) == ((SLOW,), "intermittent")


@pytest.mark.parametrize("cause", ["dispatch", "input"])
def test_a_rank_that_launches_or_begins_late_now_and_then_all_through_those_steps_is_slow_and_pauses_not(
    cause: str,
) -> None:
    spec = replace(SMALL, steps=10)
    case = judged(spec, f"slow_rank:1.2,cause={cause},pattern=intermittent,duty=0.3", seed=3)
    (alarm,) = case.alarms
    assert (alarm.kind, alarm.cause, alarm.pattern) == ("slow_rank", cause, "intermittent")
    assert alarm.cost_ms_per_step == pytest.approx(case.true_cost_ms, rel=0.05)


def test_a_total_that_no_device_can_have_is_judged_as_others_are() -> None:
    computing = peers_agree(16, 5)
    computing[SLOW] = 1e30
    (finding,) = [one for one in judged_by_computing(computing, on_hosts(16, 16)).findings if one.is_alarm]
    assert finding.ranks == (SLOW,)


# Files of r1.x count idle time as computing: what varies may be a pause, and nobody knows which it is.
SLOW = 5
ONE_HOST = on_hosts(16, 16)


def judged_with_idle(slow: dict[int, float], *, knows_idle: bool) -> Detection:
    """Judge a job one rank of which takes so many times as long in some of eight steps."""
    computing = peers_agree(16, 8)
    for step, factor in slow.items():
        computing[SLOW, step] *= factor
    idle = np.full(computing.shape, 1.0 if knows_idle else 0.0)
    return detect(evidence_of_computing(computing, ONE_HOST, idle), ONE_HOST)


@pytest.mark.parametrize("slow", [{3: 1.3}, {3: 1.3, 6: 1.6}], ids=["one step", "two unlike steps"])
@pytest.mark.parametrize("knows_idle", [True, False])
def test_what_may_be_pauses_is_no_slow_device(slow: dict[int, float], *, knows_idle: bool) -> None:
    assert any(one.is_alarm for one in judged_with_idle(slow, knows_idle=knows_idle).findings) == knows_idle


def test_what_lasts_is_told_as_either() -> None:
    (alarm,) = [
        one
        for one in judged_with_idle(dict.fromkeys(range(8), 1.3), knows_idle=False).findings
        if one.is_alarm
    ]
    assert (alarm.ranks, alarm.cause) == ((SLOW,), "unknown")
    assert [one.kind for one in alarm.facts] == ["rank_computing", "computing_or_idle", "cost_is_bound"]


# What a step would be if all were alike, what it is lost to, and how sure a cost is.
HALF = replace(SMALL, steps=5)


def test_the_ideal_step_is_the_healthy_one_and_the_loss_is_the_slow_devices() -> None:
    result = judged(HALF, "slow_rank:1.25@5")
    healthy = judged(HALF)
    ideal = result.detection.ideal
    assert ideal is not None
    assert ideal.ideal_us / 1e3 == pytest.approx(healthy.job.step_ms, rel=0.03)
    first = result.detection.lost[0]
    assert first.part == "slow_devices"
    assert first.ms == pytest.approx(result.true_cost_ms, rel=0.2)


def test_the_parts_of_the_loss_add_up_to_it() -> None:
    result = judged(replace(HALF, healthy=Healthy(stage_work=(1.0, 1.3))), "slow_rank:1.25@5", "slow_link:4")
    ideal = result.detection.ideal
    assert ideal is not None
    assert sum(one.ms for one in result.detection.lost) == pytest.approx(
        (ideal.step_us - ideal.ideal_us) / 1e3, abs=0.01
    )


def test_what_all_ranks_lose_alike_is_no_part_of_the_loss_by_imbalance() -> None:
    result = judged(HALF, "slow_rank:1.25@5", "input_bound:120")
    (late,) = result.of_kind("input_bound")
    ideal = result.detection.ideal
    assert ideal is not None
    saved_ms = max(one.cumulative_saving_ms or 0.0 for one in result.detection.findings)
    assert (ideal.step_us - ideal.ideal_us) / 1e3 < saved_ms - 0.5 * (late.cost_ms_per_step or 0.0)


def test_a_healthy_job_is_hardly_slower_than_its_ideal() -> None:
    ideal = judged(HALF).detection.ideal
    assert ideal is not None
    assert 1.0 <= ideal.slowdown < 1.03


def test_of_two_equal_faults_each_is_an_alarm_with_the_cost_it_has_once_the_other_is_gone() -> None:
    result = judged(
        JobSpec(tp=1, pp=1, dp=16, steps=5, microbatches=2), "slow_rank:1.25@3", "slow_rank:1.25@9"
    )
    alarms = {one.ranks[0]: one for one in result.alarms if one.kind == "slow_rank"}
    assert set(alarms) == {3, 9}
    lost = result.job.step_ms - judged(JobSpec(tp=1, pp=1, dp=16, steps=5, microbatches=2)).job.step_ms
    for one in alarms.values():
        assert one.cost_high_ms == pytest.approx(lost, rel=0.2)
        assert one.severity == "critical"
        assert one.confidence != "high"


def test_a_device_that_is_slow_in_one_step_alone_is_told() -> None:
    computing = peers_agree(16, 6)
    computing[5, 3] *= 1.4
    (finding,) = judged_by_computing(computing, on_hosts(16, 16)).findings
    assert (finding.ranks, finding.pattern, len(finding.steps)) == ((5,), "transient", 1)
    assert finding.is_alarm


@pytest.mark.parametrize("slower", [1.0, 1.4])
def test_a_rank_with_one_long_step_whose_kernels_are_no_slower_had_more_work(slower: float) -> None:
    """One of six steps is longer: kernels that are slower in it are so by a sixth of that in all of them."""
    where, computing = on_hosts(16, 16), peers_agree(16, 6)
    computing[5, 3] *= 1.4
    case = judged(JobSpec(tp=1, pp=1, dp=16, steps=6, microbatches=2), f"slow_rank:{1 + (slower - 1) / 6}@5")
    evidence = replace(evidence_of_computing(computing, where), operators=case.evidence.operators)
    (finding,) = [one for one in detect(evidence, where).findings if one.ranks == (5,)]
    assert finding.is_alarm == (slower > 1.0)


def test_a_host_that_is_a_whole_stage_and_starts_late_is_told_though_it_has_no_peers() -> None:
    spec = JobSpec(tp=4, pp=2, dp=2, ranks_per_host=8, steps=5, microbatches=2)
    result = judged(spec, "slow_host:1.3@1,cause=input")
    (finding,) = [one for one in result.of_kind("input_bound") if one.hosts]
    assert (finding.hosts, len(finding.ranks), finding.separable) == (("1",), 8, False)
    assert finding.is_alarm


def test_where_only_a_part_of_a_ranks_idle_time_is_known_nothing_is_said_of_it() -> None:
    """How late it begins alone made a finding without a number."""
    result = judged(SMALL)
    view = build_view(result.evidence, result.topology)
    idled_us = view.idled_us.copy()
    idled_us[1] = np.nan
    (idle,) = (
        one for one in local_times(replace(view, idled_us=idled_us), Thresholds()) if not one.is_computing
    )
    assert idle.places
    for part in (idle, *idle.places):
        assert np.isnan(part.values[1]).all()
        assert np.isfinite(np.delete(part.values, 1, axis=0)).all()
