"""What is too costly to call a job healthy, and what is the work's own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cluster_analysis.judge.detection import detect
from cluster_analysis.judge.open_questions import _unexplained
from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.findings import Evidence, Finding
from cluster_run.ids import HostId, Rank
from cluster_simulate.api import Healthy, JobSpec
from tests.analysis.copies import replace
from tests.analysis.jobs import judged
from tests.analysis.totals import evidence_of_idle, judged_by_computing, on_hosts, peers_agree

N_RANKS, N_STEPS, PAUSE_US = 16, 5, 110e3
UNEVEN = Healthy(sequence_sigma=0.4)


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_samples_that_differ_among_the_replicas_of_a_host_are_not_the_hosts(seed: int) -> None:
    found = judged(JobSpec(tp=2, pp=1, dp=16, steps=5, microbatches=1, healthy=UNEVEN), seed=seed).detection
    (uneven,) = [one for one in found.findings if one.kind == "data_imbalance"]
    assert uneven.cost_share is not None
    assert uneven.cost_share > 0.05
    assert found.verdict == "healthy"


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_samples_of_replicas_that_are_a_host_each_may_be_slow_hosts(seed: int) -> None:
    found = judged(JobSpec(tp=8, pp=1, dp=8, steps=5, microbatches=1, healthy=UNEVEN), seed=seed).detection
    assert found.verdict == "unknown"


@pytest.mark.parametrize(("unseen", "verdict"), [(0.0, "healthy"), (0.02, "healthy"), (0.3, "unknown")])
def test_a_job_in_which_ranks_wait_for_what_no_record_shows_is_not_called_healthy(
    unseen: float, verdict: str
) -> None:
    job = judged(seed=5)
    steps = job.evidence.step_table
    waited = unseen * np.asarray(steps["computing_us"])
    for name, more in (("computing_us", -waited), ("communication_not_overlapped_us", waited)):
        at = steps.schema.get_field_index(name)
        steps = steps.set_column(at, steps.schema.field(at), pa.array(np.asarray(steps[name]) + more))
    found = detect(replace(job.evidence, step_table=steps), job.topology)
    assert found.verdict == verdict
    assert ("waiting_copied" in [one.kind for one in found.notes]) == (verdict == "unknown")


def is_told(steps: tuple[int, ...], pause_us: float) -> bool:
    """Whether a job is not called healthy in which a rank idles in these steps, and all wait for it."""
    free: FloatArray = np.full((N_RANKS, N_STEPS), 20e3)
    for one in steps:
        free[3, one] += pause_us
    where = on_hosts(N_RANKS, 4)
    evidence = evidence_of_idle(np.full(free.shape, 380e3), free, np.ones(free.shape), where)
    table, exposed = (
        evidence.step_table,
        np.repeat(free.max(axis=0), N_RANKS).reshape(N_STEPS, N_RANKS).T - free,
    )
    at = table.schema.get_field_index("communication_not_overlapped_us")
    waited = pa.array(exposed[np.asarray(table["rank"]), np.asarray(table["step"])])
    found = detect(replace(evidence, step_table=table.set_column(at, table.schema.field(at), waited)), where)
    asked = [one.kind for one in found.notes if one.kind == "costly_unexplained"]
    return bool(asked) or any(one.is_alarm for one in found.findings)


def test_two_pauses_of_one_rank_that_cost_much_leave_a_question_though_each_is_short() -> None:
    assert is_told((0, 3), PAUSE_US)


def test_short_pauses_that_cost_little_leave_none() -> None:
    assert not is_told((2,), 90e3)


def test_a_single_pause_that_costs_much_leaves_a_question_though_healthy_hosts_pause_too() -> None:
    assert is_told((2,), 160e3)


@pytest.mark.parametrize(("idle_us", "asked"), [(250e3, ["costly_unexplained"]), (25e3, [])])
def test_a_host_that_is_a_stage_and_idles_leaves_a_question_though_nobody_can_tell_its_cost(
    idle_us: float, asked: list[str]
) -> None:
    row = Evidence("free_us", idle_us, 18e3, 5e3, 24)
    found = Finding(
        id="host_bound-host-3", kind="host_bound", severity="info", ranks=tuple(map(Rank, range(16, 24))),
        hosts=(HostId("3"),), links=(), cause="dispatch", pattern="persistent", steps=(), confidence="low",
        cost_ms_per_step=None, cost_share=None, cumulative_saving_ms=None, evidence=(row,), separable=False,
    )  # fmt: skip
    view: Any = SimpleNamespace(mean_step_us=700e3)
    assert [one.kind for one in _unexplained(view, [found], Thresholds())] == asked


def test_a_host_that_costs_much_and_may_be_slow_is_listed_and_leaves_the_question_open() -> None:
    """Each host has samples of its own; the third one is 13 % behind in most steps, with a chance of 2 %."""
    behind = [
        [-0.05, 0.00, -0.04, 0.00, -0.01],
        [0.04, 0.00, -0.04, 0.04, -0.06],
        [0.16, 0.14, 0.10, 0.00, 0.13],
        [-0.04, -0.02, 0.04, -0.09, 0.01],
    ]
    computing = peers_agree(32, 5, share=0.6) * np.exp(np.repeat(behind, 8, axis=0))
    found = judged_by_computing(computing, on_hosts(32, 8))
    assert [(one.id, one.severity) for one in found.findings] == [("slow_host-3", "info")]
    assert found.verdict == "unknown"
    assert "costly_unexplained" in [one.kind for one in found.notes]
