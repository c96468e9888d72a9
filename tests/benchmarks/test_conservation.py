"""What a rank works and what it waits for sums to its step, and what a fault costs lies where it is lost.

On small jobs of the model whose main stream waits for gradients before it works out their norm.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.models.flows.faults import Fault
from benchmarks.models.flows.model import made
from benchmarks.models.flows.program import Program
from benchmarks.models.flows.run import Trouble
from benchmarks.models.flows.shape import Shape
from benchmarks.models.truth import KnownJob
from cluster_analysis import pipeline
from cluster_analysis.judge.detection import Detection, detect
from cluster_analysis.judge.view import JobView, build_view
from cluster_analysis.options import AnalyseOptions

SLOW = 3
DATA = Shape(data=8, steps=4, per_host=4, per_mesh=4, hosts_per_rack=1)
RINGS = replace(DATA, data=2, context=4, ring_mb=4.0)
TENSORS = replace(DATA, data=4, tensor=2)
PIPELINE = replace(DATA, data=4, stages=2, micros=4, buckets=2)
INTERLEAVED = replace(PIPELINE, chunks=2)
#: What is wrong with one rank, and by how much.
HELD_BACK = Trouble("holds back", 20.0, frozenset([SLOW]))
LATE = Trouble("dispatches", 30.0, frozenset([SLOW]))
SLOW_DEVICE = Trouble("computes", 0.4, frozenset([SLOW]))


def judged(shape: Shape, folder: Path, fault: Fault | None, seed: int) -> tuple[KnownJob, JobView, Detection]:
    job = made(Program(shape, seed), [] if fault is None else [fault], folder)
    options = AnalyseOptions(run=folder, scheduler="threads", n_workers=1, write_report=False)
    with pipeline.examined(options) as known:
        return job, build_view(known.evidence, known.topology), detect(known.evidence, known.topology)


#: How far off a cost may be, as a share of the step: what is lost beside a ring's messages is seen in part.
EXACT, ROUGH = 0.01, 0.025


@pytest.mark.many
@pytest.mark.parametrize(
    ("shape", "trouble", "off"),
    [
        (DATA, HELD_BACK, EXACT),
        (DATA, SLOW_DEVICE, EXACT),
        (DATA, LATE, ROUGH),
        (RINGS, HELD_BACK, EXACT),
        (RINGS, LATE, ROUGH),
        (TENSORS, HELD_BACK, EXACT),
        (TENSORS, SLOW_DEVICE, EXACT),
        (TENSORS, LATE, EXACT),
        (PIPELINE, HELD_BACK, EXACT),
        (PIPELINE, SLOW_DEVICE, EXACT),
        (PIPELINE, LATE, ROUGH),
        (INTERLEAVED, HELD_BACK, EXACT),
        (INTERLEAVED, SLOW_DEVICE, EXACT),
        (INTERLEAVED, LATE, ROUGH),
    ],
)
def test_a_rank_costs_what_it_loses_wherever_in_its_step_that_is(
    shape: Shape, trouble: Trouble, off: float, tmp_path: Path
) -> None:
    fault = Fault(trouble, "slow_rank", 0.0, ranks=(SLOW,))
    job, view, found = judged(shape, tmp_path, fault, seed=7)
    (true,) = job.faults
    (told,) = [one for one in found.findings if one.is_alarm]
    assert (told.kind, told.ranks) == ("slow_rank", (SLOW,))
    assert told.cost_ms_per_step == pytest.approx(true.cost_ms, abs=off * job.step_ms)
    assert found.replay["error_share"] < 0.005
    assert view.graph is not None
    # No gaps of the main stream hold waiting: no rank does more in them than its totals say.
    assert np.median(view.graph.main_gaps_us / view.local_us) < 1.01
    assert found.replay["copied_waiting_share"] < 0.01


LONG = replace(PIPELINE, tensor=2, micros=8, length_sigma=0.15, steps=5)


@pytest.mark.parametrize(
    ("uneven", "off"),
    [
        pytest.param(replace(DATA, length_sigma=0.3, micros=4), 0.02, id="data"),
        pytest.param(replace(TENSORS, length_sigma=0.3, micros=4), 0.02, id="tensors"),
        pytest.param(LONG, 0.01, marks=pytest.mark.slow, id="they fill steps of equal length"),
    ],
)
def test_samples_of_unequal_length_cost_what_each_micro_batch_waits_for_the_longest(
    uneven: Shape, off: float, tmp_path: Path
) -> None:
    everyone = tuple(range(uneven.n_ranks))
    fault = Fault(Trouble("samples", 1.0), "data_imbalance", 0.0, ranks=everyone, is_of_many=True)
    job, _, found = judged(uneven, tmp_path, fault, seed=7)
    (told,) = [one for one in found.findings if one.kind == "data_imbalance"]
    assert told.cost_ms_per_step == pytest.approx(job.faults[0].cost_ms, abs=off * job.step_ms)
