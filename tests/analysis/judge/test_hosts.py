"""Slow hosts beside a single peer host not all of whose ranks were read, and where all ranks pause often."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from cluster_analysis.judge.detection import detect
from cluster_analysis.judge.measures.idle import lost_always_us
from cluster_analysis.judge.view import build_view
from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.numeric.stats import sigma
from cluster_run.findings import Finding
from cluster_run.ids import HostId, Rank
from cluster_simulate.api import Healthy, JobSpec
from tests.analysis.copies import replace
from tests.analysis.jobs import judged
from tests.analysis.totals import evidence_of_computing, evidence_of_idle, on_hosts, peers_agree

#: Two stages of two hosts; of the hosts of the first stage one lacks a rank, or the other one.
TWO_A_STAGE = JobSpec(tp=4, pp=2, dp=4, steps=5, microbatches=2)
SLOW_HOST = HostId("2")


@pytest.mark.parametrize("missing", [4, 12])
@pytest.mark.parametrize("fault", ["slow_host:1.1@2,cause=compute", "slow_host:1.05@2"])
def test_a_slow_host_is_named_whichever_of_two_hosts_lacks_a_rank(fault: str, missing: int) -> None:
    case = judged(replace(TWO_A_STAGE, healthy=Healthy(missing_ranks=(missing,))), fault)
    assert [(one.kind, one.hosts) for one in case.alarms] == [("slow_host", (SLOW_HOST,))]


def test_a_host_that_starts_late_is_named_though_all_ranks_pause_before_half_of_the_steps() -> None:
    pauses = Healthy(gc_every=4, checkpoint_every=5)
    spec = JobSpec(tp=1, pp=1, dp=32, steps=8, microbatches=8, healthy=pauses)
    (alarm,) = judged(spec, "slow_host:1.05@2,cause=input", seed=11).alarms
    assert (alarm.kind, alarm.hosts, alarm.cause) == ("slow_host", (SLOW_HOST,), "input")


def test_a_checkpoint_that_one_stage_begins_with_and_another_makes_later_accuses_no_host() -> None:
    """All ranks pause in the same steps: before the first operator where a stage begins, else behind it."""
    spec = replace(TWO_A_STAGE, steps=8, healthy=Healthy(checkpoint_every=4))
    assert judged(spec, seed=11).of_kind("slow_host") == ()


@pytest.mark.parametrize(("others_ms", "is_named"), [(6.0, True), (11.0, False)])
def test_a_host_is_not_held_against_a_single_quiet_peer_where_other_hosts_idle_as_usual(
    others_ms: float, is_named: bool
) -> None:
    where = on_hosts(32, 8)
    stages = {Rank(rank): rank // 16 for rank in range(32)}
    idle_ms = np.repeat([others_ms, others_ms, 6.0, 18.0], 8)[:, None]
    chance = np.random.default_rng(3).uniform(0.95, 1.05, (32, 8))
    evidence = evidence_of_idle(
        peers_agree(32, 8, share=0.5), 1e3 * idle_ms * chance, np.full((32, 8), 2e3), where
    )
    found = detect(evidence, replace(where, stages=stages))
    assert [one.hosts for one in found.findings if one.is_alarm] == ([("4",)] if is_named else [])


@pytest.mark.parametrize("factor", [1.5, 2.5, 5.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_late_host_scatters_as_its_peers_do_once_it_is_repaired(seed: int, factor: float) -> None:
    """Each rank idles more or less by chance, on the late host `factor` times as long."""
    where = on_hosts(32, 8)
    healthy_us = 5e3 * np.random.default_rng(seed).gamma(20.0, 1 / 20, (32, 8))
    idle_us = healthy_us * np.where(np.arange(32) < 8, factor, 1.0)[:, None]
    evidence = evidence_of_idle(peers_agree(32, 8, share=0.5), idle_us, np.zeros((32, 8)), where)
    own = np.arange(8)
    left_us = idle_us[own] - lost_always_us(build_view(evidence, where), own, idle_us)
    assert float(sigma(left_us)) == pytest.approx(float(sigma(healthy_us[8:])), rel=0.25)
    # Each step waits for the latest of them.
    assert left_us.max(axis=0).mean() == pytest.approx(healthy_us[own].max(axis=0).mean(), rel=0.06)


@pytest.mark.parametrize("seed", range(5))
def test_steps_in_which_all_ranks_pause_for_unlike_times_say_nothing_of_what_a_host_loses(seed: int) -> None:
    dice, where, own = np.random.default_rng(seed), on_hosts(32, 8), np.arange(8)
    idle_us = 1e4 * dice.lognormal(0.0, 0.05, (32, 9))
    idle_us[own] += 4e3 * dice.lognormal(0.0, 0.3, (8, 9))

    def loses_us() -> FloatArray:
        evidence = evidence_of_idle(peers_agree(32, 9, share=0.5), idle_us, np.zeros((32, 9)), where)
        return lost_always_us(build_view(evidence, where), own, idle_us)

    usual_us = loses_us().mean()
    idle_us[:, 2::3] += 6e4 * dice.lognormal(0.0, 0.15, (32, 3))
    assert loses_us().mean() == pytest.approx(usual_us, rel=0.1)


def test_a_host_that_launches_late_costs_what_its_latest_rank_loses_in_each_step() -> None:
    result = judged(JobSpec(tp=1, pp=1, dp=32), "slow_host:1.15", seed=1)
    (finding,) = result.alarms
    assert finding.cost_ms_per_step == pytest.approx(result.true_cost_ms, rel=0.02)


@pytest.mark.parametrize("tp", [4, 8])
def test_a_slow_host_makes_no_slow_host_of_another_stage_that_works_on_other_samples(tp: int) -> None:
    """Host 2 seems to have long samples, so that hosts that share them seem to be quick, and host 3 slow."""
    healthy = Healthy(sequence_sigma=0.02)
    spec = JobSpec(tp=tp, pp=2, dp=16 // tp, ranks_per_host=8, steps=8, microbatches=4, healthy=healthy)
    found = judged(spec, "slow_host:1.1@2,cause=compute", seed=11).detection.findings
    assert [one.hosts for one in found if one.kind == "slow_host"] == [("2",)]


@pytest.mark.parametrize(("tp", "factor"), [(8, 1.3), (4, 1.15)])
def test_a_host_that_is_a_whole_stage_and_launches_late_has_a_cost_and_is_an_alarm(
    tp: int, factor: float
) -> None:
    case = judged(JobSpec(tp=tp, pp=4, dp=8 // tp), f"slow_host:{factor}@2,cause=dispatch", seed=3)
    (alarm,) = case.alarms
    assert (alarm.kind, alarm.hosts) == ("host_bound", (SLOW_HOST,))
    assert alarm.cost_ms_per_step == pytest.approx(case.true_cost_ms, rel=0.5)


# A host whose ranks are held up now and then, never all of them: the middle of its ranks shows nothing.
N_RANKS, N_STEPS, PER_HOST = 32, 8, 8


def held_up(ranks: range) -> FloatArray:
    """Idle times, of which two of eight ranks in each step, each time others, have 30 to 90 ms more."""
    dice = np.random.default_rng(3)
    idle_us = 10e3 * dice.uniform(0.95, 1.05, (N_RANKS, N_STEPS))
    for first in ranks[::PER_HOST]:
        for step in range(N_STEPS):
            hit = first + (3 * step + np.array([0, 5])) % PER_HOST
            idle_us[hit, step] += dice.uniform(30e3, 90e3, 2)
    return np.asarray(idle_us)


def all_found_in(free_us: FloatArray, **known: Mapping[Rank, int]) -> tuple[Finding, ...]:
    where = replace(on_hosts(len(free_us), PER_HOST), **known)
    preparing = np.full(free_us.shape, 2e3)
    evidence = evidence_of_idle(peers_agree(*free_us.shape, share=0.5), free_us, preparing, where)
    return detect(evidence, where).findings


def found_in(free_us: FloatArray, **known: Mapping[Rank, int]) -> list[Finding]:
    return [one for one in all_found_in(free_us, **known) if one.kind == "slow_host"]


def test_a_host_that_holds_up_other_ranks_in_each_step_is_named() -> None:
    (host,) = found_in(held_up(range(8, 16)))
    assert host.is_alarm
    assert host.confidence == "low"  # sure is who it is, not how much it costs
    assert (host.ranks, host.cause, host.pattern) == (tuple(range(8, 16)), "dispatch", "intermittent")


def test_a_rank_that_began_to_record_a_step_later_leaves_what_is_said_of_its_host_finite() -> None:
    where, idle_us = on_hosts(N_RANKS, PER_HOST), held_up(range(8, 16))
    evidence = evidence_of_idle(
        peers_agree(*idle_us.shape, share=0.5), idle_us, np.full(idle_us.shape, 2e3), where
    )
    table = evidence.step_table
    lacks_it = (np.asarray(table["rank"]) == 11) & (np.asarray(table["step"]) == evidence.steps[0])
    found = detect(replace(evidence, step_table=table.filter(~lacks_it)), where).findings
    (host,) = [one for one in found if one.kind == "slow_host"]
    assert host.ranks == tuple(range(8, 16))
    assert np.isfinite([host.evidence[0].peers_median, host.evidence[0].value]).all()


def test_a_host_that_holds_up_one_rank_or_another_in_a_third_of_the_steps_is_named() -> None:
    idle_us = held_up(range(0))
    idle_us[[9, 12, 14], [1, 4, 6]] += [40e3, 60e3, 30e3]
    (host,) = found_in(idle_us)
    assert (host.ranks, host.pattern) == (tuple(range(8, 16)), "intermittent")


@pytest.mark.parametrize("late_us", [250e3, 40e3])
def test_a_host_all_of_whose_ranks_are_late_alike_in_a_third_of_the_steps_is_named(late_us: float) -> None:
    idle_us = np.vstack([held_up(range(0)), held_up(range(0))])[:, :6]
    idle_us[8:16, [1, 4]] += late_us
    (host,) = found_in(idle_us)
    assert (host.ranks, host.is_alarm) == (tuple(range(8, 16)), True)


def test_a_host_one_of_whose_replicas_writes_checkpoints_is_no_alarm_but_a_rank_that_is_later() -> None:
    """All four ranks of a replica stand still together, and the host's other replica never does."""
    idle_us = np.vstack([held_up(range(0)), held_up(range(0))])[:, :6]
    idle_us[8:12, [1, 4]] += 40e3
    replicas = {rank: number // 4 for number, rank in enumerate(on_hosts(len(idle_us), PER_HOST).ranks)}
    assert [one.is_alarm for one in found_in(idle_us, dp_index=replicas)] == [False]
    assert [one.is_alarm for one in found_in(idle_us)] == [True]
    idle_us[9] += 20e3  # more than its replica: it hides no checkpoint, and the host does not hide it
    assert [one.id for one in all_found_in(idle_us, dp_index=replicas) if one.is_alarm] == ["slow_rank-9"]


@pytest.mark.parametrize("n_others", [1, 3])
def test_a_host_that_is_late_in_each_third_step_is_named_beside_few_others(n_others: int) -> None:
    """How often healthy hosts stand still is known: few others need not show it."""
    idle_us = held_up(range(0))[: 8 * (1 + n_others), :6]
    idle_us[:8, [0, 3]] += np.array([30e3, 34e3])
    (host,) = found_in(idle_us)
    assert (host.ranks, host.is_alarm) == (tuple(range(8)), True)


Longer = list[tuple[object, object, float]]


@pytest.mark.parametrize(
    ("ranks", "longer"),
    [
        pytest.param(range(N_RANKS), [], id="the ranks of all hosts are held up"),
        pytest.param(
            range(0), [(9, [1, 3, 4, 7], 50e3), ([12, 14], [2, 6], 50e3)], id="a rank has most pauses"
        ),
        pytest.param(range(0), [(np.ix_([3, 5], range(1, 8, 2)), ..., 60e3)], id="two ranks pause"),
        pytest.param(range(0), [(slice(8), 3, 60e3), (slice(8), 5, 40e3)], id="in few steps"),
    ],
)
def test_a_host_that_does_not_hold_up_one_rank_after_the_other_is_not_named(
    ranks: range, longer: Longer
) -> None:
    idle_us = held_up(ranks)
    for who, steps, more_us in longer:
        idle_us[who if steps is ... else (who, steps)] += more_us  # type: ignore[index]
    assert found_in(idle_us) == []


def test_a_late_host_loses_time_in_all_of_its_gaps_however_unequal_the_samples_are() -> None:
    spec = JobSpec(tp=8, pp=1, dp=4, steps=8, healthy=Healthy(sequence_sigma=0.1))
    result = judged(spec, "slow_host:1.15@4", seed=2)
    (finding,) = [one for one in result.alarms if one.kind == "slow_host"]
    assert finding.cost_ms_per_step == pytest.approx(result.true_cost_ms, rel=0.05)


def seated(n_ranks: int, tp: int) -> dict[Rank, int]:
    return {Rank(rank): rank % tp for rank in range(n_ranks)}


@pytest.mark.parametrize(("later_us", "named"), [(0.0, []), (30e3, ["slow_rank-8"])])
def test_one_that_loads_data_for_its_tensor_parallel_group_is_named_when_it_is_later_than_all_who_do(
    later_us: float, named: list[str]
) -> None:
    idle_us = held_up(range(0))
    idle_us[::4] += 20e3
    idle_us[8] += later_us
    told = [one.id for one in all_found_in(idle_us, tp_index=seated(len(idle_us), 4)) if one.is_alarm]
    assert told == named


def test_a_host_that_is_a_whole_stage_and_late_by_unlike_times_is_one_finding() -> None:
    idle_us = held_up(range(8, 16))
    idle_us[8:16] += 50e3
    stages = {Rank(rank): rank // PER_HOST for rank in range(len(idle_us))}
    assert [one.id for one in all_found_in(idle_us, stages=stages) if one.hosts == (HostId("2"),)] == [
        "host_bound-host-2"
    ]


@pytest.mark.parametrize("n_ranks", [16, 32])
@pytest.mark.parametrize("late_us", [27e3, 12e3])
def test_half_of_a_host_that_is_late_is_one_finding_of_these_ranks(n_ranks: int, late_us: float) -> None:
    """One of two processors of a host is busy: in the middle of all its ranks is nobody.

    Hosts differ by a factor of 1.15, but each of these ranks is late by itself.
    """
    idle_us = held_up(range(0))[:n_ranks]
    idle_us[12:16] += late_us * np.random.default_rng(5).uniform(0.7, 1.3, (4, N_STEPS))
    (alarm,) = [one for one in all_found_in(idle_us) if one.is_alarm]
    assert (alarm.id, alarm.ranks, alarm.cause) == ("slow_host-2", tuple(range(12, 16)), "dispatch")


@pytest.mark.parametrize(
    "others_us", [pytest.param(27e3, id="all are late"), pytest.param(10e3, id="the others are less late")]
)
def test_a_host_all_of_whose_ranks_are_late_is_named_with_all(others_us: float) -> None:
    idle_us = held_up(range(0))
    idle_us[8:16] += np.repeat([others_us, 27e3], 4)[:, None]
    assert [one.ranks for one in found_in(idle_us)] == [tuple(range(8, 16))]


@pytest.mark.parametrize(
    ("late_us", "told"),
    [
        pytest.param({3: 40e3}, {"slow_rank-3": (3,)}, id="one rank"),
        pytest.param({3: 40e3, 20: 25e3}, {"input_bound-shared": (3, 20)}, id="two alike"),
        pytest.param({3: 40e3, 20: 15e3}, {"slow_rank-3": (3,), "slow_rank-20": (20,)}, id="two unlike"),
        pytest.param(
            dict.fromkeys(range(8, 24), 30e3), {"input_bound-shared": tuple(range(8, 24))}, id="two hosts"
        ),
    ],
)
def test_input_that_several_wait_for_alike_is_one_finding_that_blames_none_of_them(
    late_us: dict[int, float], told: dict[str, tuple[int, ...]]
) -> None:
    where, idle_us = on_hosts(N_RANKS, PER_HOST), held_up(range(0))
    preparing_us = np.full(idle_us.shape, 2e3)
    for rank, us in late_us.items():
        preparing_us[rank] += us
    evidence = evidence_of_idle(peers_agree(*idle_us.shape, share=0.5), idle_us, preparing_us, where)
    found = detect(evidence, where)
    assert {one.id: one.ranks for one in found.findings if one.is_alarm} == told
    assert found.verdict == "degraded"


@pytest.mark.parametrize(
    ("slower", "told"),
    [
        pytest.param(
            [1.2, 1.2], {("slow_host-2", True): 1, ("slow_host-3", True): 1}, id="two may have faults"
        ),
        pytest.param([1.2, 1.21, 1.2], {("slow_host-alike", True): 3}, id="three share a reason"),
        pytest.param([1.2] * 4, {("slow_host-alike", False): 4}, id="half of all may be of another kind"),
        pytest.param(
            [1.1, 1.16, 1.3], {(f"slow_host-{host}", True): 1 for host in (2, 3, 4)}, id="three unlike ones"
        ),
    ],
)
def test_three_hosts_that_compute_slowly_alike_are_one_finding(
    slower: list[float], told: dict[tuple[str, bool], int]
) -> None:
    computing = peers_agree(64, 6, share=0.5)
    for host, factor in enumerate(slower, 1):
        computing[8 * host : 8 * host + 8] *= factor
    where = on_hosts(64, 8)
    found = detect(evidence_of_computing(computing, where), where)
    assert {(one.id, one.is_alarm): len(one.hosts) for one in found.findings if one.hosts} == told
    assert found.verdict == ("degraded" if any(is_alarm for _, is_alarm in told) else "unknown")
    alike = [one for one in found.findings if any(said.kind == "hosts_alike" for said in one.facts)]
    assert bool(alike) == (max(slower) < 1.3)


def test_a_pause_of_one_of_two_ranks_of_a_late_host_is_held_against_the_other_one_alone() -> None:
    idle_us = np.full((16, 8), 5e3) * np.random.default_rng(1).uniform(0.95, 1.05, (16, 8))
    idle_us[2:4] += 40e3
    idle_us[2, ::2] += 60e3
    where, preparing_us = on_hosts(16, 2), np.full((16, 8), 2e3)
    found = detect(evidence_of_idle(peers_agree(16, 8, share=0.5), idle_us, preparing_us, where), where)
    (pause,) = [one for one in found.findings if one.kind == "periodic_pause"]
    assert pause.ranks == (2,)
    assert pause.cost_ms_per_step == pytest.approx(30.0, rel=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_no_half_of_a_host_is_late_by_chance(seed: int) -> None:
    """Of each host some ranks always idle longer than others, by up to twice as much."""
    dice = np.random.default_rng(seed)
    idle_us = 10e3 * dice.uniform(1.0, 2.0, (N_RANKS, 1)) * dice.uniform(0.9, 1.1, (N_RANKS, N_STEPS))
    assert found_in(idle_us[:16]) == found_in(idle_us) == []


@pytest.mark.parametrize("seed", [1, 4, 8, 11])
def test_a_host_that_may_be_slow_takes_no_peers_from_ranks_of_other_hosts(seed: int) -> None:
    """Four replicas of two stages with unlike samples: without one of four hosts few peers know a replica."""
    dice, ranks = np.random.default_rng(seed), range(16)
    where = replace(
        on_hosts(16, 4),
        stages={Rank(rank): rank // 8 for rank in ranks},
        dp_index={Rank(rank): rank % 8 // 2 for rank in ranks},
    )
    samples = np.repeat(dice.lognormal(0.0, 0.08, (4, 12)), 2, axis=0)
    computing_us = 5e5 * np.vstack([samples, 1.18 * samples]) * dice.lognormal(0.0, 0.006, (16, 12))
    computing_us[:4] *= 1.01
    computing_us[15] *= np.linspace(1.0, 1.3, 12)
    found = detect(evidence_of_computing(computing_us, where), where).findings
    assert {"slow_rank-15", "slow_host-1"} <= {one.id for one in found}
