"""Ranks with one peer or none, as in deep pipelines: all ranks are peers in what knows no stage."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_analysis.judge.detection import detect
from cluster_analysis.numeric.arrays import FloatArray
from cluster_run.findings import Finding
from cluster_run.ids import Rank
from cluster_simulate.api import JobSpec
from tests.analysis.copies import replace
from tests.analysis.jobs import judged
from tests.analysis.totals import evidence_of_idle, on_hosts, peers_agree

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


def test_a_rank_with_one_peer_that_idles_twice_as_long_as_the_others_may_have_another_stage() -> None:
    assert alarms({5: 22e3}) == []


def test_a_stage_both_of_whose_ranks_idle_long_is_no_two_slow_ranks() -> None:
    assert alarms({4: 60e3, 5: 60e3}) == []


def test_a_rank_that_is_a_stage_of_its_own_is_not_told_from_its_stage() -> None:
    assert alarms({5: 60e3}, ALONE) == []


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
