"""Whether a device is slow all the time or in some steps, and who sees it most clearly."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_simulate.api import Healthy, JobSpec
from tests.analysis.copies import replace
from tests.analysis.jobs import SMALL, judged
from tests.analysis.totals import judged_by_computing, on_hosts, peers_agree

N_RANKS, SLOW = 32, 5
WHERE = on_hosts(N_RANKS, 8)


def test_a_few_long_steps_of_a_slightly_slow_device_are_what_is_named() -> None:
    computing = peers_agree(N_RANKS, 8, scatter=0.01)
    computing[SLOW] *= 1.025
    computing[SLOW, [1, 4, 6]] *= 1.4
    (finding,) = (one for one in judged_by_computing(computing, WHERE).findings if one.is_alarm)
    assert (finding.ranks, finding.pattern, finding.steps) == ((SLOW,), "intermittent", (1, 4, 6))


def test_a_device_that_is_always_slow_by_about_as_much_is_persistently_so() -> None:
    computing = peers_agree(N_RANKS, 12)
    computing[SLOW] *= np.exp(np.random.default_rng(2).normal(0.1, 0.02, 12))
    (finding,) = (one for one in judged_by_computing(computing, WHERE).findings if one.is_alarm)
    assert (finding.ranks, finding.pattern) == ((SLOW,), "persistent")


def test_among_samples_of_unequal_length_a_device_is_held_against_its_mates() -> None:
    spec = JobSpec(tp=4, pp=4, dp=4, steps=5, microbatches=4, healthy=Healthy(sequence_sigma=0.2))
    for seed in (11, 12, 13):
        case = judged(spec, "slow_rank:1.1@61", seed=seed)
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
