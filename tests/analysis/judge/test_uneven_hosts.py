"""A host whose ranks are held up now and then, never all of them: the middle of its ranks shows nothing."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_analysis.judge.detection import detect
from cluster_analysis.numeric.arrays import FloatArray
from cluster_run.findings import Finding
from tests.analysis.totals import evidence_of_idle, on_hosts, peers_agree

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


def found_in(free_us: FloatArray) -> list[Finding]:
    where = on_hosts(len(free_us), PER_HOST)
    preparing = np.full(free_us.shape, 2e3)
    evidence = evidence_of_idle(peers_agree(*free_us.shape, share=0.5), free_us, preparing, where)
    return [one for one in detect(evidence, where).findings if one.kind == "slow_host"]


def test_a_host_that_holds_up_other_ranks_in_each_step_is_named() -> None:
    (host,) = found_in(held_up(range(8, 16)))
    assert host.is_alarm
    assert host.confidence == "low"  # sure is who it is, not how much it costs
    assert (host.ranks, host.cause, host.pattern) == (tuple(range(8, 16)), "dispatch", "intermittent")


def test_a_host_that_holds_up_one_rank_or_another_in_a_third_of_the_steps_is_named() -> None:
    idle_us = held_up(range(0))
    idle_us[[9, 12, 14], [1, 4, 6]] += [40e3, 60e3, 30e3]
    (host,) = found_in(idle_us)
    assert (host.ranks, host.pattern) == (tuple(range(8, 16)), "intermittent")


def test_a_rank_that_has_most_of_its_host_s_long_pauses_is_no_slow_host() -> None:
    idle_us = held_up(range(0))
    idle_us[9, [1, 3, 4, 7]] += 50e3
    idle_us[[12, 14], [2, 6]] += 50e3
    assert found_in(idle_us) == []


@pytest.mark.parametrize(("late_us", "is_listed"), [(250e3, True), (40e3, False)])
def test_a_host_all_of_whose_ranks_are_late_in_a_third_of_the_steps_is_listed_where_that_is_costly(
    late_us: float, *, is_listed: bool
) -> None:
    """Two of six steps of one host of eight are improbable by 5 %: no alarm, no line if it costs little."""
    idle_us = np.vstack([held_up(range(0)), held_up(range(0))])[:, :6]
    idle_us[8:16, [1, 4]] += late_us
    found = found_in(idle_us)
    assert [(one.ranks, one.is_alarm) for one in found] == (
        [(tuple(range(8, 16)), False)] if is_listed else []
    )


def test_where_the_ranks_of_all_hosts_are_held_up_no_host_is_named() -> None:
    assert found_in(held_up(range(N_RANKS))) == []


def test_a_host_of_which_two_ranks_pause_is_none_that_holds_up_its_ranks() -> None:
    idle_us = held_up(range(0))
    idle_us[[3, 5], 1::2] += 60e3
    assert found_in(idle_us) == []


def test_a_host_that_held_up_its_ranks_in_few_steps_is_not_named() -> None:
    idle_us = held_up(range(0))
    idle_us[:8, 3] += 60e3
    idle_us[:8, 5] += 40e3
    assert found_in(idle_us) == []
