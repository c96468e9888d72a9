"""Micro-batches of unequal length that fill steps of equal length."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_analysis.judge.detection import detect
from cluster_simulate.api import Healthy, JobSpec
from tests.analysis.copies import replace
from tests.analysis.jobs import judged
from tests.analysis.seeds import seeds
from tests.analysis.totals import with_column


@pytest.mark.parametrize("tp", [1, 2])
@pytest.mark.parametrize("sigma", [0.0, 0.25])
@pytest.mark.parametrize("seed", seeds(1, 2))
def test_they_are_told_whether_or_not_a_rank_has_its_samples_alone(seed: int, sigma: float, tp: int) -> None:
    spec = JobSpec(tp=tp, pp=2, dp=8, microbatches=4, steps=4, healthy=Healthy(sequence_sigma=sigma))
    case = judged(spec, seed=seed)
    table = case.evidence.step_table
    ranks = np.asarray(table["rank"])
    computing = np.asarray(table["computing_us"])
    usual = np.array([np.median(computing[ranks == rank]) for rank in ranks])
    evidence = replace(case.evidence, step_table=with_column(table, "computing_us", usual))
    kinds = {one.kind for one in detect(evidence, case.topology).findings}
    assert ("data_imbalance" in kinds) == (sigma > 0)
