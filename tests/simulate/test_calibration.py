"""Healthy jobs scatter as real captures do; the bounds are those measured on real files."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from cluster_simulate.api import Healthy, JobSpec, Noise, simulate
from cluster_simulate.files.totals import step_totals
from cluster_simulate.job import layout as kinds
from cluster_simulate.job.job import HCCS, RDMA, SimulatedJob

SPEC = JobSpec(steps=12, healthy=Healthy(hiccup_share=0.0))


@pytest.fixture(scope="module")
def job() -> SimulatedJob:
    return simulate(SPEC, (), 4)


def robust_spread(values: np.ndarray) -> float:
    """Return the scaled median deviation over the median."""
    centre = np.median(values)
    return float(1.4826 * np.median(np.abs(values - centre)) / centre)


def bandwidth(job: SimulatedJob, transport: int, kind: int) -> np.ndarray:
    links = job.links
    here = (links.transport == transport) & (job.ops.kind[links.op] == kind) & (links.size_bytes > 4e6)
    return links.size_bytes[here] / links.time_us[here] / 1e3


def test_ranks_of_one_stage_compute_within_one_percent(job: SimulatedJob) -> None:
    for stage in range(4):
        peers = job.times.computing_us[:, stage * 16 : (stage + 1) * 16]
        assert 0.0005 < np.median([robust_spread(step) for step in peers]) < 0.01


def test_steps_last_alike_within_two_percent(job: SimulatedJob) -> None:
    ends = job.times.end_us.max(axis=1)
    steps = np.diff(np.r_[0.0, ends])
    assert 0.001 < steps.std() / steps.mean() < 0.02


def test_a_step_is_mostly_computing_then_communication_then_bubble(job: SimulatedJob) -> None:
    totals = step_totals(job, "pt")
    whole = (job.times.end_us - job.times.first_task_us).mean()
    assert 0.5 < totals.computing_us.mean() / whole < 0.7
    assert 0.02 < totals.communication_not_overlapped_us.mean() / whole < 0.45
    assert 0.1 < totals.bubble_us.mean() / whole < 0.35
    assert 0.01 < totals.free_us.mean() / whole < 0.04


def test_links_inside_a_host_move_what_was_measured_and_sometimes_a_third_less(job: SimulatedJob) -> None:
    found = bandwidth(job, HCCS, kinds.ALL_REDUCE)
    assert 17.0 < np.median(found) < 19.5
    assert robust_spread(found) < 0.02
    slow = (found < 0.7 * np.median(found)).mean()
    assert 0.01 < slow < 0.05


def test_links_between_hosts_move_close_to_the_line_rate(job: SimulatedJob) -> None:
    assert 23.5 < np.median(bandwidth(job, RDMA, kinds.REDUCE_SCATTER)) < 24.5


def test_the_shortest_elapse_of_an_operator_is_its_transfer(job: SimulatedJob) -> None:
    ops = job.ops
    rows = ops.kind == kinds.ALL_REDUCE
    key = ops.group[rows] * 100_000 + ops.number[rows]
    shortest = np.full(key.max() + 1, np.inf)
    np.minimum.at(shortest, key, ops.elapse_us[rows])
    above = shortest[key] - ops.transfer_us[rows]
    assert (above >= -1e-6).all()
    assert np.median(above) < 20.0


def test_hosts_clocks_differ_and_ranks_of_one_host_share_one(job: SimulatedJob) -> None:
    assert len(set(job.clock_offset_us)) == 8
    assert 300.0 < job.clock_offset_us.std() < 6000.0
    ranks = np.arange(64)
    shown = job.clock_us(ranks, np.full(64, 1e6))
    assert len(set(shown)) == 8


def test_uneven_sequences_slow_a_replica_on_all_its_stages_alike() -> None:
    job = simulate(dataclasses.replace(SPEC, healthy=Healthy(sequence_sigma=0.2, hiccup_share=0.0)), (), 4)
    by_place = job.times.computing_us.reshape(12, 4, 4, 4)
    replica = by_place.mean(axis=3)
    relative = np.log(replica) - np.log(replica).mean(axis=2, keepdims=True)
    one, other = relative[:, 0].ravel(), relative[:, 3].ravel()
    assert np.corrcoef(one, other)[0, 1] > 0.95
    assert relative.std() > 0.03


def test_busy_experts_are_sent_more_and_compute_longer() -> None:
    spec = JobSpec(tp=1, pp=1, dp=4, ep=4, ranks_per_host=2, healthy=Healthy(expert_sigma=0.3))
    job = simulate(spec, (), 4)
    links = job.links
    moved = job.ops.kind[links.op] == kinds.ALL_TO_ALL
    received = np.bincount(links.dst[moved], links.size_bytes[moved])
    pairs = set(zip(job.ops.rank[links.op[moved]].tolist(), links.dst[moved].tolist(), strict=True))
    assert len(pairs) == 4 * 3
    assert received.max() > 1.2 * received.min()
    assert (np.argsort(received) == np.argsort(job.times.computing_us.mean(axis=0))).all()


def test_the_second_family_has_memory_tails_and_gaps() -> None:
    spec = dataclasses.replace(SPEC, steps=60, microbatches=2, noise=Noise(family="ar1"))
    job = simulate(spec, (), 4)
    steps = np.log(np.median(job.times.computing_us, axis=1))
    steps = steps - steps.mean()
    assert (steps[1:] * steps[:-1]).mean() / (steps**2).mean() > 0.4
    assert spec.missing_records == 0.05
    own = np.log(job.times.computing_us) - np.log(np.median(job.times.computing_us, axis=1, keepdims=True))
    scaled = (own - own.mean(axis=0)) / own.std()
    assert (scaled**4).mean() > 3.2
