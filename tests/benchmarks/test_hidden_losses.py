"""What hides from a comparison of peers has its cost, or leaves a question: on small jobs of a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.models.flows.faults import Fault
from benchmarks.models.flows.run import Trouble
from benchmarks.models.flows.shape import Shape
from cluster_run.findings import Finding
from tests.benchmarks.test_conservation import DATA, SLOW, judged

FUSED = replace(DATA, experts=4, is_fused=True)
EXPERTS = replace(DATA, experts=8, work_ms=8.0)
SHARED_CARDS = replace(DATA, devices_per_card=2, gradients_mb=120.0)
STAGES = replace(DATA, data=4, stages=3, micros=4)


def told(shape: Shape, fault: Fault, folder: Path) -> tuple[Finding, float, float, str]:
    """Return the costliest finding, its cost and the true one as shares of the step, and the verdict."""
    job, _, found = judged(shape, folder, fault, seed=7)
    one = max(found.findings, key=lambda finding: finding.cost_ms_per_step or 0.0)
    return (
        one,
        (one.cost_ms_per_step or 0.0) / job.step_ms,
        job.faults[0].cost_ms / job.step_ms,
        found.verdict,
    )


def test_ranks_that_wait_inside_fused_kernels_wait_less_once_the_late_one_is_repaired(tmp_path: Path) -> None:
    fault = Fault(Trouble("computes", 0.4, frozenset([SLOW])), "slow_rank", 0.0, ranks=(SLOW,))
    finding, cost, true, verdict = told(FUSED, fault, tmp_path)
    assert (finding.kind, finding.ranks, verdict) == ("slow_rank", (SLOW,), "degraded")
    assert cost == pytest.approx(true, abs=0.03)


def test_a_card_that_two_devices_share_is_one_part_with_the_cost_of_both_links(tmp_path: Path) -> None:
    fault = Fault(Trouble("carries", 5.0, parts=(("card in", 2),)), "slow_nic", 0.0, ranks=(2, 3))
    finding, cost, true, verdict = told(SHARED_CARDS, fault, tmp_path)
    assert {2, 3} <= set(finding.ranks)
    assert (finding.cause, verdict) == ("bandwidth", "degraded")
    assert cost == pytest.approx(true, abs=0.02)


def test_a_slow_network_between_the_only_two_hosts_is_not_called_healthy(tmp_path: Path) -> None:
    parts = (("hosts", 0, 1), ("hosts", 1, 0))
    fault = Fault(Trouble("carries", 20.0, parts=parts), "slow_host_pair", 0.0, hosts=(0, 1))
    job, _, found = judged(SHARED_CARDS, tmp_path, fault, seed=7)
    assert job.cost_ms > 0.05 * job.step_ms
    assert found.verdict == "unknown"
    assert "uncompared_network" in {note.kind for note in found.notes}


def test_a_stage_that_is_one_host_costs_what_it_is_longer_than_the_other_stages(tmp_path: Path) -> None:
    ranks = (4, 5, 6, 7)
    fault = Fault(Trouble("computes", 0.3, frozenset(ranks)), "slow_host", 0.0, ranks=ranks, hosts=(1,))
    finding, cost, true, verdict = told(STAGES, fault, tmp_path)
    assert (finding.kind, verdict) == ("stage_imbalance", "unknown")
    assert cost == pytest.approx(true, abs=0.02)


def test_a_hot_expert_costs_what_its_own_gaps_are_longer(tmp_path: Path) -> None:
    fault = Fault(
        Trouble("is hot", 0.5, frozenset([SLOW])), "expert_imbalance", 0.0, ranks=(SLOW,), is_of_many=True
    )
    finding, cost, true, _ = told(EXPERTS, fault, tmp_path)
    assert finding.kind == "expert_imbalance"
    assert cost == pytest.approx(true, abs=0.015)


def test_samples_of_which_ranks_wait_inside_fused_kernels_leave_a_question(tmp_path: Path) -> None:
    shape = replace(FUSED, length_sigma=0.3)
    everyone = tuple(range(shape.n_ranks))
    fault = Fault(Trouble("samples", 1.0), "data_imbalance", 0.0, ranks=everyone, is_of_many=True)
    job, _, found = judged(shape, tmp_path, fault, seed=7)
    assert job.cost_ms > 0.05 * job.step_ms
    assert found.verdict == "unknown"
    assert "waiting_copied" in {note.kind for note in found.notes}
