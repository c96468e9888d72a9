"""The largest deviations of a job's ranks and steps: dealt anew each step they are rarely one rank's."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_analysis.judge.measures.deviation import record_tails
from cluster_simulate.api import Healthy, JobSpec
from tests.analysis.jobs import judged

N_RANKS, N_STEPS, SLOW = 32, 8, 20
ONE_ROLE = np.zeros(N_RANKS, np.int32)
ALONE = JobSpec(tp=1, pp=1, dp=N_RANKS, steps=N_STEPS, healthy=Healthy(sequence_sigma=0.2))


def dealt(seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Deviations that are dealt anew each step, with tails that no normal distribution has."""
    return np.asarray(0.05 * np.random.default_rng(seed).standard_t(3, (N_RANKS, N_STEPS)))


@pytest.mark.parametrize("k", [3, 5])
def test_as_many_of_the_largest_as_one_rank_has_are_as_improbable_as_counting_says(k: int) -> None:
    series = np.clip(dealt(1), None, 0.2)
    series[SLOW] = 0.0
    series[SLOW, :k] = 0.3 + 0.01 * np.arange(k)
    p, cells = record_tails(series, np.full(N_RANKS, 0.05), ONE_ROLE, 0.03)
    by_hand = np.prod([(N_STEPS - i) / (N_RANKS * N_STEPS - i) for i in range(1, k)])
    assert p[SLOW] == pytest.approx(by_hand)
    assert (np.delete(p, SLOW) == 1.0).all()
    assert np.argwhere(cells).tolist() == [[SLOW, step] for step in range(k)]


def test_two_of_the_largest_are_not_enough() -> None:
    series = np.zeros((N_RANKS, N_STEPS))
    series[SLOW, :2] = 0.5
    assert (record_tails(series, np.full(N_RANKS, 0.05), ONE_ROLE, 0.03)[0] == 1.0).all()


def test_deviations_dealt_anew_hardly_ever_have_their_largest_on_one_rank_however_long_their_tails() -> None:
    small = [
        record_tails(dealt(seed), np.full(N_RANKS, 0.001), ONE_ROLE, 0.0)[0].min() for seed in range(2000)
    ]
    # As often as the P that is given: (7/255)(6/254) of the draws, which is 1.3 of 2000.
    assert np.mean(np.array(small) < 1.0) < 0.003


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_device_slow_in_some_steps_is_seen_through_samples_of_unequal_length_without_mates(
    seed: int,
) -> None:
    case = judged(ALONE, "slow_rank:1.4@20,pattern=intermittent,duty=0.5", seed=seed)
    assert [(one.kind, one.ranks) for one in case.alarms] == [("slow_rank", (SLOW,))]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_samples_of_unequal_length_blame_no_device(seed: int) -> None:
    assert judged(ALONE, seed=seed).alarms == ()
