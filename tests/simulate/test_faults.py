"""A fault changes what it should and nothing else, and its cost is that of a job without it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_simulate.api import Healthy, JobSpec, Noise, parse_scenario, simulate, truth
from cluster_simulate.job.effects import effects_of
from cluster_simulate.job.job import RDMA, SimulatedJob
from cluster_simulate.job.work import step_work

SPEC = JobSpec(
    tp=2, pp=2, dp=4, microbatches=4, steps=4, ranks_per_host=4, healthy=Healthy(hiccup_share=0.0)
)  # fmt: skip
SCENARIOS = (
    "slow_rank:1.3@5", "slow_rank:1.05@5,cause=dispatch", "slow_rank:1.05@5,cause=input",
    "slow_rank:1.5@5,op=vector", "slow_rank:1.5@5,pattern=intermittent,duty=0.5",
    "slow_rank:1.5@5,pattern=trend", "slow_rank:1.5@5,pattern=transient", "slow_host:1.1@2",
    "slow_host:1.1@2,cause=input", "slow_host:1.2@2,cause=compute", "slow_link:4@0-1",
    "slow_link:4@0-1,dir=one", "slow_nic:4@2", "slow_nic:4@2,dir=tx", "slow_nic:4@2,dir=rx",
    "slow_nic:4@2,via=hccs", "slow_host_pair:4@1-2", "slow_uplink:4@1", "retransmission:4000@0-2",
    "periodic_pause:80@5,every=2", "periodic_pause:80@all,every=2", "stage_imbalance:1.4",
    "data_imbalance:0.3", "small_packets:100", "input_bound:60", "host_bound:0.4",
)  # fmt: skip


def gaps(job: SimulatedJob) -> np.ndarray:
    """Return what every rank computed, by [step, rank]."""
    return job.times.computing_us


@pytest.fixture(scope="module")
def healthy() -> SimulatedJob:
    return simulate(SPEC, (), 11)


@pytest.mark.many
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_true_cost_is_the_difference_to_the_job_without_the_fault(
    healthy: SimulatedJob, scenario: str
) -> None:
    fault = parse_scenario(scenario)
    job = simulate(SPEC, [fault], 11)
    answer = truth(job)
    (found,) = answer.faults
    assert found.kind == fault.kind
    assert found.cost_ms_per_step == pytest.approx(job.step_ms - healthy.step_ms)
    assert found.cost_ms_per_step >= 0.0
    assert found.cumulative_saving_ms == pytest.approx(found.cost_ms_per_step)
    assert answer.healthy_step_ms == pytest.approx(healthy.step_ms)


@pytest.mark.slow
@settings(max_examples=8)
@given(chosen=st.lists(st.sampled_from(SCENARIOS), min_size=1, max_size=3), seed=st.integers(0, 10**6))
def test_no_combination_of_faults_makes_a_job_faster(chosen: list[str], seed: int) -> None:
    answer = truth(simulate(SPEC, [parse_scenario(text) for text in chosen], seed))
    # Data that differ from micro-batch to micro-batch have no sign: a seed may draw light ones. More
    # operators are other operators, which meet other congestion.
    if not any(text.startswith(("data_imbalance", "small_packets")) for text in chosen):
        assert all(fault.cost_ms_per_step >= -1e-9 for fault in answer.faults)
    savings = [fault.cumulative_saving_ms for fault in answer.faults]
    assert savings[-1] == pytest.approx(answer.step_ms - answer.healthy_step_ms)


def test_a_slow_rank_slows_no_other_ranks_computing(healthy: SimulatedJob) -> None:
    job = simulate(SPEC, [parse_scenario("slow_rank:1.3@5")], 11)
    ratio = gaps(job) / gaps(healthy)
    np.testing.assert_allclose(ratio[:, 5], 1.3)
    np.testing.assert_allclose(np.delete(ratio, 5, axis=1), 1.0)
    np.testing.assert_allclose(job.links.time_us, healthy.links.time_us)
    np.testing.assert_allclose(job.ops.free_us, healthy.ops.free_us, rtol=1e-9)


def test_a_host_that_feeds_too_slowly_adds_idle_time_on_its_ranks_only(healthy: SimulatedJob) -> None:
    job = simulate(SPEC, [parse_scenario("slow_host:1.1@2")], 11)
    np.testing.assert_allclose(gaps(job), gaps(healthy))
    added = np.bincount(job.ops.rank, job.ops.free_us) - np.bincount(healthy.ops.rank, healthy.ops.free_us)
    expected = 0.1 * SPEC.nominal_step_ms * 1e3 * SPEC.steps
    assert added[4:8] == pytest.approx(np.full(4, expected), rel=0.25)
    assert np.delete(added, [4, 5, 6, 7]) == pytest.approx(0.0, abs=1e-3)


def test_a_late_input_delays_the_first_task_and_nothing_else(healthy: SimulatedJob) -> None:
    job = simulate(SPEC, [parse_scenario("slow_rank:1.1@1,cause=input")], 11)
    preparing = job.times.first_task_us - job.times.begin_us
    before = healthy.times.first_task_us - healthy.times.begin_us
    assert (preparing[:, 1] - before[:, 1] > 20e3).all()
    np.testing.assert_allclose(np.delete(preparing - before, 1, axis=1), 0.0, atol=1e-3)
    np.testing.assert_allclose(gaps(job), gaps(healthy))


@pytest.mark.parametrize(
    ("scenario", "slow"),
    [
        ("slow_link:4@0-1", lambda src, dst, rdma: {src, dst} == {0, 1}),
        ("slow_link:4@0-1,dir=one", lambda src, dst, rdma: (src, dst) == (0, 1)),
        ("slow_nic:4@2", lambda src, dst, rdma: rdma and 2 in (src, dst)),
        ("slow_nic:4@2,dir=tx", lambda src, dst, rdma: rdma and src == 2),
        ("slow_nic:4@2,dir=rx", lambda src, dst, rdma: rdma and dst == 2),
        ("slow_nic:4@2,via=hccs", lambda src, dst, rdma: not rdma and 2 in (src, dst)),
        ("slow_host_pair:4@1-2", lambda src, dst, rdma: rdma and {src // 4, dst // 4} == {0, 1}),
        ("slow_uplink:4@1", lambda src, dst, rdma: rdma and 0 in (src // 4, dst // 4)),
    ],
)
def test_a_link_fault_slows_exactly_the_links_it_is_about(healthy: SimulatedJob, scenario: str, slow) -> None:
    job = simulate(SPEC, [parse_scenario(scenario)], 11)
    links = job.links
    src = job.ops.rank[links.op]
    large = links.size_bytes > 1e5
    np.testing.assert_array_equal(links.dst, healthy.links.dst)
    ratio = links.time_us / healthy.links.time_us
    expected = np.array(
        [slow(a, b, code == RDMA) for a, b, code in zip(src, links.dst, links.transport, strict=True)]
    )
    assert expected[large].any()
    assert (ratio[expected & large] > 3.0).all()
    np.testing.assert_allclose(ratio[~expected | ~large], 1.0)
    np.testing.assert_allclose(gaps(job), gaps(healthy))


def test_an_operator_kind_can_be_slow_alone(healthy: SimulatedJob) -> None:
    job = simulate(SPEC, [parse_scenario("slow_rank:1.5@5,op=vector")], 11)
    before = healthy.times
    np.testing.assert_allclose(job.times.cube_us, before.cube_us)
    vector = (job.times.computing_us - job.times.cube_us) / (before.computing_us - before.cube_us)
    np.testing.assert_allclose(vector[:, 5], 1.5)
    np.testing.assert_allclose(np.delete(vector, 5, axis=1), 1.0)


@pytest.mark.parametrize(
    ("pattern", "active"), [("intermittent,duty=0.5", 2), ("transient", 1), ("persistent", 4)]
)
def test_a_pattern_says_in_how_many_steps_a_fault_is_there(
    healthy: SimulatedJob, pattern: str, active: int
) -> None:
    job = simulate(SPEC, [parse_scenario(f"slow_rank:1.5@5,pattern={pattern}")], 11)
    ratio = gaps(job)[:, 5] / gaps(healthy)[:, 5]
    assert (np.abs(ratio - 1.5) < 1e-9).sum() == active
    assert (np.abs(ratio - 1.0) < 1e-9).sum() == 4 - active


def test_the_truth_names_the_steps_in_which_a_fault_was_there(healthy: SimulatedJob) -> None:
    job = simulate(SPEC, [parse_scenario("slow_rank:1.5@5,pattern=intermittent,duty=0.5")], 11)
    slower = np.flatnonzero(gaps(job)[:, 5] > 1.4 * gaps(healthy)[:, 5])
    assert truth(job).faults[0].steps == tuple(slower + SPEC.first_step)


def test_another_run_has_the_same_machines_and_other_noise(healthy: SimulatedJob) -> None:
    other = simulate(SPEC, (), 11, run=1)
    ratio = gaps(other).mean(axis=0) / gaps(healthy).mean(axis=0)
    assert (gaps(other) != gaps(healthy)).all()
    strange = gaps(simulate(SPEC, (), 12)).mean(axis=0) / gaps(healthy).mean(axis=0)
    assert np.std(ratio) < np.std(strange)
    np.testing.assert_array_equal(other.clock_offset_us, healthy.clock_offset_us)
    fault = parse_scenario("slow_rank:1.3")
    assert simulate(SPEC, [fault], 11, run=1).faults == simulate(SPEC, [fault], 11).faults


def test_a_slow_device_has_a_slow_clock_and_slow_operators_alone_do_not(healthy: SimulatedJob) -> None:
    assert (healthy.times.frequency_mhz == 1800.0).all()
    job = simulate(SPEC, [parse_scenario("slow_rank:1.2@5"), parse_scenario("slow_rank:1.2@6,op=cube")], 11)
    assert (job.times.frequency_mhz[:, 5] == 1500.0).all()
    assert (np.delete(job.times.frequency_mhz, 5, axis=1) == 1800.0).all()


def test_a_trend_grows_from_nothing_to_its_severity(healthy: SimulatedJob) -> None:
    job = simulate(SPEC, [parse_scenario("slow_rank:1.3@5,pattern=trend")], 11)
    ratio = gaps(job)[:, 5] / gaps(healthy)[:, 5]
    np.testing.assert_allclose(ratio, [1.0, 1.1, 1.2, 1.3])


def test_a_retransmission_lengthens_one_operator_once(healthy: SimulatedJob) -> None:
    job = simulate(SPEC, [parse_scenario("retransmission:4000@0-2")], 11)
    longer = job.ops.transfer_us - healthy.ops.transfer_us > 3e6
    assert len({(job.ops.group[row], job.ops.number[row]) for row in np.flatnonzero(longer)}) == 1
    assert job.step_ms - healthy.step_ms == pytest.approx(4000 / SPEC.steps, rel=0.05)


def test_a_retransmission_shows_on_its_own_link_only(healthy: SimulatedJob) -> None:
    job = simulate(SPEC, [parse_scenario("retransmission:4000@2-4")], 11)
    (row,) = np.flatnonzero(job.links.time_us - healthy.links.time_us > 1e6)
    assert (job.ops.rank[job.links.op[row]], job.links.dst[row]) == (2, 4)


def test_the_truth_lists_the_links_that_would_show_a_fault() -> None:
    job = simulate(SPEC, [parse_scenario("slow_uplink:4@1"), parse_scenario("slow_link:4@0-1")], 11)
    by_kind = {fault.kind: fault.used_links for fault in truth(job).faults}
    src = job.ops.rank[job.links.op]
    remote = (src // 4 != job.links.dst // 4) & (job.links.size_bytes > 1e5)
    touching = remote & ((src < 4) | (job.links.dst < 4))
    assert set(by_kind["slow_uplink"]) == set(zip(src[touching], job.links.dst[touching], strict=True))
    assert by_kind["slow_link"] == ((0, 1), (1, 0))


@pytest.mark.slow
def test_taking_one_fault_away_leaves_the_others_as_they_were() -> None:
    faults = [
        parse_scenario(text)
        for text in ("slow_rank:1.1@1", "slow_rank:1.5@5,pattern=transient", "retransmission:4000@0-2")
    ]
    spec = dataclasses.replace(SPEC, steps=8)
    all_three, without = (
        {(one.kind, one.ranks): one.steps for one in truth(simulate(spec, these, 0)).faults}
        for these in (faults, faults[1:])
    )
    assert without.items() < all_three.items()


def test_two_slow_ranks_of_one_group_mask_each_other() -> None:
    job = simulate(SPEC, [parse_scenario("slow_rank:1.4@4"), parse_scenario("slow_rank:1.2@5")], 11)
    costly, masked = truth(job).faults
    assert costly.ranks == (4,)
    assert masked.cost_ms_per_step < 0.1 * costly.cost_ms_per_step
    assert masked.cumulative_saving_ms > costly.cost_ms_per_step


@pytest.mark.parametrize("family", ["lognormal", "ar1"])
def test_more_of_a_fault_costs_more(family: str) -> None:
    spec = dataclasses.replace(SPEC, noise=Noise(family=family))
    costs = [
        truth(simulate(spec, [parse_scenario(f"slow_rank:{factor}@5")], 3)).faults[0].cost_ms_per_step
        for factor in (1.05, 1.2, 1.5)
    ]
    assert costs == sorted(costs)
    assert costs[0] < costs[-1]


@pytest.mark.slow
def test_a_fault_without_a_place_gets_one_of_the_job() -> None:
    kinds = (
        "slow_rank",
        "slow_host",
        "slow_link",
        "slow_nic",
        "slow_host_pair",
        "slow_uplink",
        "retransmission",
    )
    for kind in kinds:
        job = simulate(SPEC, [parse_scenario(kind)], 0)
        (fault,) = job.faults
        assert fault.ranks or fault.hosts or fault.links
        assert truth(job).faults[0].cost_ms_per_step >= 0.0


def test_two_drawn_ranks_are_two_ranks() -> None:
    for seed in range(10):
        one, other = simulate(SPEC, [parse_scenario("slow_rank"), parse_scenario("slow_rank")], seed).faults
        assert one.ranks != other.ranks


def test_a_rank_without_pauses_of_its_own_changes_those_of_no_other_rank() -> None:
    often = dataclasses.replace(SPEC, healthy=Healthy(hiccup_share=0.5))
    spared = dataclasses.replace(SPEC, healthy=Healthy(hiccup_share=0.5, hiccup_free=(5,)))
    before, after = (
        np.array([one.pause_us for one in step_work(spec, effects_of(spec, (), 11), 11, 0)])
        for spec in (often, spared)
    )
    others = np.arange(SPEC.n_ranks) != 5
    np.testing.assert_array_equal(after[:, others], before[:, others])
    assert before[:, 5].any()
    assert not after[:, 5].any()
