"""In which gaps of a step a slow device loses its time."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_analysis.judge.cost.placement import repair_of
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import build_view
from cluster_analysis.replay.role_gaps import RoleGaps
from cluster_simulate.api import Healthy, JobSpec
from tests.analysis.copies import replace
from tests.analysis.jobs import judged


@pytest.mark.parametrize(("seed", "sigma"), [(1, 0.0), (3, 0.2)])
def test_a_device_that_halts_for_unlike_times_loses_them_where_it_halts(seed: int, sigma: float) -> None:
    """Memory that corrects errors halts single kernels: no share of all gaps gives back what is lost.

    Of few steps, halts that fall into the same places of most by chance pass for a share (seed 2).
    """
    case = judged(JobSpec(tp=4, pp=2, dp=4, microbatches=4, steps=5, healthy=Healthy(sequence_sigma=sigma)))
    view = build_view(case.evidence, case.topology)
    graph = view.graph
    assert graph is not None
    dice = np.random.default_rng(seed)
    slow = int(dice.integers(len(view.ranks)))
    own = np.flatnonzero((graph.rank == slow) & ~graph.is_side)
    usual = graph.gap_us[own].mean()
    halts = np.where(dice.random(len(own)) < 0.1, dice.uniform(2.0, 8.0, len(own)) * usual, 0.0)
    gap_us = graph.gap_us.copy()
    gap_us[own] += halts
    late = graph.with_gaps(gap_us)
    excess = np.zeros(view.step_us.shape)
    excess[slow] = np.bincount(graph.step[own], halts, graph.n_steps)
    one = Suspect(
        "slow_rank", "slow_rank", (), ranks=view.rank_ids([slow]), cause="compute", excess_us=excess
    )
    slower = replace(view, graph=late, gaps=RoleGaps(view.ranks, late))
    repair = repair_of(slower, late, [one])
    mended = late.gap_us.copy()
    mended[repair.instances] = repair.gap_us
    assert np.abs(mended - graph.gap_us).sum() < 0.1 * halts.sum()
