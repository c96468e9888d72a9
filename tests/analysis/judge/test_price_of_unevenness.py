"""What a step would be if all were alike, what it is lost to, and how sure a cost is."""

from __future__ import annotations

import pytest

from cluster_simulate.api import Healthy, JobSpec
from tests.analysis.copies import replace
from tests.analysis.jobs import SMALL, judged
from tests.analysis.totals import judged_by_computing, on_hosts, peers_agree

HALF = replace(SMALL, steps=5)


def test_the_ideal_step_is_the_healthy_one_and_the_loss_is_the_slow_devices() -> None:
    result = judged(HALF, "slow_rank:1.25@5")
    healthy = judged(HALF)
    ideal = result.detection.ideal
    assert ideal is not None
    assert ideal.ideal_us / 1e3 == pytest.approx(healthy.job.step_ms, rel=0.03)
    first = result.detection.lost[0]
    assert first.part == "slow_devices"
    assert first.ms == pytest.approx(result.true_cost_ms, rel=0.2)


def test_the_parts_of_the_loss_add_up_to_it() -> None:
    result = judged(replace(HALF, healthy=Healthy(stage_work=(1.0, 1.3))), "slow_rank:1.25@5", "slow_link:4")
    ideal = result.detection.ideal
    assert ideal is not None
    assert sum(one.ms for one in result.detection.lost) == pytest.approx(
        (ideal.step_us - ideal.ideal_us) / 1e3, abs=0.01
    )


def test_a_healthy_job_is_hardly_slower_than_its_ideal() -> None:
    ideal = judged(HALF).detection.ideal
    assert ideal is not None
    assert 1.0 <= ideal.slowdown < 1.03


def test_of_two_equal_faults_each_is_an_alarm_with_the_cost_it_has_once_the_other_is_gone() -> None:
    result = judged(JobSpec(tp=1, pp=1, dp=16, steps=5), "slow_rank:1.25@3", "slow_rank:1.25@9")
    alarms = {one.ranks[0]: one for one in result.alarms if one.kind == "slow_rank"}
    assert set(alarms) == {3, 9}
    lost = result.job.step_ms - judged(JobSpec(tp=1, pp=1, dp=16, steps=5)).job.step_ms
    for one in alarms.values():
        assert one.cost_high_ms == pytest.approx(lost, rel=0.2)
        assert one.severity == "critical"
        assert one.confidence != "high"


def test_a_device_that_is_slow_in_one_step_alone_is_told() -> None:
    computing = peers_agree(16, 6)
    computing[5, 3] *= 1.4
    (finding,) = judged_by_computing(computing, on_hosts(16, 16)).findings
    assert (finding.ranks, finding.pattern, len(finding.steps)) == ((5,), "transient", 1)
    assert finding.is_alarm


def test_a_host_that_is_a_whole_stage_and_starts_late_is_told_though_it_has_no_peers() -> None:
    spec = JobSpec(tp=4, pp=2, dp=2, ranks_per_host=8, steps=5)
    result = judged(spec, "slow_host:1.3@1,cause=input")
    (finding,) = [one for one in result.of_kind("input_bound") if one.hosts]
    assert (finding.hosts, len(finding.ranks), finding.separable) == (("1",), 8, False)
    assert finding.is_alarm
