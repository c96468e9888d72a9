"""What the benchmark of the detection holds its findings against."""

from __future__ import annotations

import pytest

from benchmarks.detection.simulated import is_unseen, judge, true_saving_share
from cluster_simulate.api import Healthy, JobSpec, parse_scenario, simulate
from tests.analysis.copies import replace
from tests.analysis.jobs import judged

DATA_PARALLEL = JobSpec(tp=1, pp=1, dp=16, steps=3, microbatches=2)


def test_making_a_device_as_fast_as_its_peers_saves_in_truth_what_its_fault_costs() -> None:
    case = judged(DATA_PARALLEL, "slow_rank:1.2@5")
    (finding,) = case.alarms
    saved_ms = true_saving_share(finding, case.job) * case.job.step_ms
    assert saved_ms == pytest.approx(case.true_cost_ms, rel=0.05)


def test_making_a_host_launch_like_its_peers_saves_in_truth_what_its_fault_costs() -> None:
    case = judged(replace(DATA_PARALLEL, tp=4, dp=8), "slow_host:1.2@2")
    (finding,) = case.alarms
    assert finding.cause == "dispatch"
    saved_ms = true_saving_share(finding, case.job) * case.job.step_ms
    assert saved_ms == pytest.approx(case.true_cost_ms, rel=0.05)


def test_what_is_no_device_saves_nothing_by_being_made_one_of_its_peers() -> None:
    case = judged(DATA_PARALLEL, "slow_rank:1.2@5,cause=input")
    (finding,) = case.alarms
    assert true_saving_share(finding, case.job) == 0.0


def test_two_pauses_of_a_healthy_rank_that_are_alike_and_in_a_rhythm_truly_cost_what_is_said() -> None:
    job, said = judge("plain", 700_805, None)
    (finding,) = [one for one in said.findings if one.is_alarm]
    assert finding.kind == "periodic_pause"
    assert finding.cost_ms_per_step == pytest.approx(job.saving_ms(finding), rel=0.01)


@pytest.mark.parametrize(("missing", "unseen"), [(8, True), (9, False)])
def test_a_link_cannot_be_found_if_the_files_of_its_sender_are_missing(missing: int, unseen: bool) -> None:
    spec = replace(DATA_PARALLEL, healthy=Healthy(missing_ranks=(missing,)))
    job = simulate(spec, [parse_scenario("slow_link:3@8-9,dir=one")], seed=3)
    assert is_unseen(job, {missing}) == unseen
