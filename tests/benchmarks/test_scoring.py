"""What counts as found, as wrong, and as false reassurance."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.detection.scoring import Said, score
from benchmarks.models.truth import KnownFault, KnownJob
from cluster_run.findings import Finding, Severity
from cluster_run.kinds import Kind

SLOW = KnownFault("slow_rank", ("slow_rank",), (3,), (), (), cost_ms=10.0, marginal_ms=10.0)


def _job(*faults: KnownFault, saving_ms: float = 0.0) -> KnownJob:
    lost_ms = sum(one.cost_ms for one in faults)
    return KnownJob(Path(), "plain", 1, "a class", "", 8, 100.0, lost_ms, faults, lambda _: saving_ms)


def _finding(
    ranks: tuple[int, ...], cost_ms: float | None, kind: Kind = "slow_rank", severity: Severity = "critical"
) -> Finding:
    return Finding(
        id=f"{kind}-{ranks}", kind=kind, severity=severity, ranks=ranks, hosts=(), links=(), cause="compute",
        pattern="persistent", steps=(), cost_ms_per_step=cost_ms,
        cost_share=None if cost_ms is None else cost_ms / 100, cumulative_saving_ms=None, confidence="high",
        evidence=(),
    )  # type: ignore[arg-type]  # fmt: skip


def _said(*findings: Finding, verdict: str = "degraded") -> Said:
    return Said(verdict, findings, None, {})


def test_the_right_rank_is_found_and_its_cost_is_held_against_the_truth() -> None:
    outcome = score("a model", _job(SLOW), _said(_finding((3,), 11.0)))
    assert (outcome.n_found, outcome.n_wrong, outcome.first_is_right) == (1, 0, True)
    assert outcome.cost_error_shares == pytest.approx((0.01,))


def test_a_line_of_information_is_no_find() -> None:
    outcome = score("a model", _job(SLOW), _said(_finding((3,), 10.0, severity="info"), verdict="healthy"))
    assert (outcome.n_found, outcome.is_reassured) == (0, True)


def test_another_rank_is_wrong_and_the_same_place_by_another_name_is_a_wrong_kind() -> None:
    elsewhere = score("a model", _job(SLOW), _said(_finding((4,), 10.0)))
    assert (elsewhere.n_found, elsewhere.n_wrong, elsewhere.n_wrong_kind) == (0, 1, 0)
    host = score("a model", _job(SLOW, saving_ms=10.0), _said(_finding((2, 3), 10.0, "slow_host")))
    assert (host.n_found, host.n_wrong, host.n_wrong_kind) == (0, 1, 1)


def test_an_alarm_on_a_healthy_job_is_false_unless_what_it_names_truly_costs_time() -> None:
    alarm = _said(_finding((5,), 2.0))
    assert score("a model", _job(), alarm).n_wrong == 1
    by_nature = score("a model", _job(saving_ms=2.0), alarm)
    assert (by_nature.n_wrong, by_nature.n_alarms) == (0, 1)


def test_of_two_faults_that_hide_each_other_any_cost_between_alone_and_last_is_true() -> None:
    twins = (
        KnownFault("slow_rank", ("slow_rank",), (3,), (), (), cost_ms=10.0, marginal_ms=0.0),
        KnownFault("slow_rank", ("slow_rank",), (4,), (), (), cost_ms=10.0, marginal_ms=0.0),
    )
    outcome = score("a model", _job(*twins), _said(_finding((3,), 12.0), _finding((4,), 4.0)))
    assert outcome.n_found == 2
    assert outcome.cost_error_shares == pytest.approx((0.02, 0.0))


def test_a_cost_that_is_not_quoted_is_counted_and_no_error() -> None:
    outcome = score("a model", _job(SLOW), _said(_finding((3,), None)))
    assert (outcome.n_found, outcome.n_without_cost, outcome.cost_error_shares) == (1, 1, ())


def test_healthy_is_false_where_a_fault_costs_a_twentieth_of_the_step() -> None:
    assert score("a model", _job(SLOW), _said(verdict="healthy")).is_reassured
    assert not score("a model", _job(SLOW), _said(verdict="unknown")).is_reassured


def test_a_host_that_is_a_stage_is_told_where_the_stage_is_named_with_its_cost() -> None:
    both = ("slow_host", "stage_imbalance")
    host = KnownFault("slow_host", both, (4, 5, 6, 7), ("2",), (), cost_ms=5.0, marginal_ms=5.0)
    told = _finding((4, 5, 6, 7), 3.0, "stage_imbalance", "info")
    assert score("a model", _job(host), _said(told)).n_found == 1
    too_little = _finding((4, 5, 6, 7), 0.1, "stage_imbalance", "info")
    assert score("a model", _job(host), _said(too_little)).n_found == 0


@pytest.mark.parametrize(("told_ms", "is_reassured"), [(6.0, False), (0.1, True)])
def test_work_that_is_split_unevenly_may_be_healthy_where_its_cost_is_told(
    told_ms: float, is_reassured: bool
) -> None:
    stage = KnownFault("stage_imbalance", ("stage_imbalance",), (4, 5, 6, 7), (), (), 6.0, 6.0)
    told = _finding((4, 5, 6, 7), told_ms, "stage_imbalance", "info")
    assert score("a model", _job(stage), _said(told, verdict="healthy")).is_reassured == is_reassured
    assert score("a model", _job(stage, SLOW), _said(told, verdict="healthy")).is_reassured
