"""Which pauses are a rank's own, and which are the job's or an accident."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_analysis.judge.detection import detect
from cluster_analysis.numeric.arrays import FloatArray
from cluster_run.findings import Finding
from tests.analysis.totals import evidence_of_idle, on_hosts, peers_agree

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
