"""Micro-batches of unequal length that fill steps of equal length."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_analysis.judge.detection import detect
from cluster_analysis.judge.view import build_view
from cluster_analysis.replay.role_gaps import RoleGaps
from cluster_simulate.api import Healthy, JobSpec
from tests.analysis.copies import replace
from tests.analysis.jobs import judged
from tests.analysis.totals import with_column


@pytest.mark.parametrize(("sigma", "tp"), [(0.0, 1), (0.25, 1), (0.25, 2)])
def test_they_are_told_whether_or_not_a_rank_has_its_samples_alone(sigma: float, tp: int) -> None:
    spec = JobSpec(tp=tp, pp=2, dp=8, microbatches=4, steps=4, healthy=Healthy(sequence_sigma=sigma))
    case = judged(spec, seed=1)
    table = case.evidence.step_table
    ranks = np.asarray(table["rank"])
    computing = np.asarray(table["computing_us"])
    usual = np.array([np.median(computing[ranks == rank]) for rank in ranks])
    evidence = replace(case.evidence, step_table=with_column(table, "computing_us", usual))
    kinds = {one.kind for one in detect(evidence, case.topology).findings}
    assert ("data_imbalance" in kinds) == (sigma > 0)


@pytest.mark.parametrize(("seed", "lasts"), [(1, False), (2, True)])
def test_a_pause_of_one_replica_makes_no_work_uneven(seed: int, *, lasts: bool) -> None:
    """One replica writes a checkpoint: neither samples nor experts take longer for it."""
    case = judged(JobSpec(tp=2, pp=2, dp=8, microbatches=4, steps=4, healthy=Healthy(sequence_sigma=0.2)))
    view = build_view(case.evidence, case.topology)
    graph, n_steps = view.graph, len(view.steps)
    assert graph is not None
    dice = np.random.default_rng(seed)
    pause_us, step = float(view.step_us.mean()), int(dice.integers(n_steps))
    paused_us = np.zeros(view.step_us.shape)
    paused_us[view.replica == 3, step] = pause_us
    writers = np.flatnonzero((graph.step == step) & np.isin(graph.rank, np.flatnonzero(view.replica == 3)))
    place = int(dice.integers(3, 6))
    is_paused = np.zeros(len(graph.gap_us), bool)
    for rank in np.unique(graph.rank[writers]):
        own = writers[(graph.rank[writers] == rank) & ~graph.is_side[writers]]
        is_paused[own[place]] = True
    longer = RoleGaps(view.ranks, graph.with_gaps(graph.gap_us + pause_us * is_paused))
    usual = RoleGaps(view.ranks, graph).of_work_us(view.role, view.sample, 0 * paused_us, lasts=lasts)
    found = longer.of_work_us(view.role, view.sample, paused_us, lasts=lasts)
    assert np.array_equal(np.isnan(found), np.isnan(usual))
    changed = np.abs(np.nan_to_num(found - usual))
    assert changed.max() < 0.05 * pause_us
