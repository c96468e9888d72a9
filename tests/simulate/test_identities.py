"""What holds in every simulated job, whatever it is."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.detection.simulated_tables import tables
from cluster_simulate.api import JobSpec, parse_scenario, simulate
from cluster_simulate.files.observed import observe, seen_steps
from cluster_simulate.files.totals import step_totals
from cluster_simulate.job import layout as kinds
from cluster_simulate.job.job import SimulatedJob
from tests.simulate.jobs import VARIETY, specs

#: Time stamps in files are quarters of a µs with one decimal, on clocks that drift by some µs a second.
WRITTEN_US = 0.6


@pytest.fixture(scope="module", params=VARIETY.values(), ids=VARIETY.keys())
def job(request: pytest.FixtureRequest) -> SimulatedJob:
    return simulate(request.param, (), seed=7)


@pytest.mark.slow
@given(spec=specs(), seed=st.integers(0, 2**31))
def test_every_job_runs_and_no_time_is_negative(spec: JobSpec, seed: int) -> None:
    job = simulate(spec, (), seed)
    ops = job.ops
    for column in (ops.elapse_us, ops.transfer_us, ops.compute_us, ops.free_us, job.links.time_us):
        assert (column >= 0).all()
    assert (ops.elapse_us - ops.transfer_us >= 0).all()
    assert (np.diff(job.times.end_us, axis=0) > 0).all()
    assert (job.times.first_task_us >= job.times.begin_us).all()


def test_a_collective_ends_when_its_last_rank_has_come_and_the_data_has_moved(job: SimulatedJob) -> None:
    ops = job.ops
    collective = np.flatnonzero(~np.isin(ops.kind, list(kinds.P2P_KINDS)))
    for group in np.unique(ops.group[collective]):
        rows = collective[ops.group[collective] == group]
        for number in np.unique(ops.number[rows]):
            members = rows[ops.number[rows] == number]
            end = ops.start_us[members] + ops.elapse_us[members]
            wanted = ops.start_us[members].max() + ops.transfer_us[members].max()
            assert len(members) == len(job.groups.members[group])
            assert len(set(ops.kind[members])) == 1
            assert (end >= wanted - 1e-6).all()
            assert (end <= wanted + 400.0).all()


def test_waiting_for_gradients_is_communication_and_neither_a_late_begin_nor_hidden_by_computing() -> None:
    spec = JobSpec(tp=1, pp=1, dp=8, steps=2, microbatches=2, segments=4, dp_mode="overlap")
    healthy, slow = (
        step_totals(simulate(spec, [parse_scenario(text) for text in texts], seed=5), "pt")
        for texts in ((), ("slow_rank:1.5@3",))
    )
    waited = slow.communication_not_overlapped_us - healthy.communication_not_overlapped_us
    longer = slow.computing_us[:, 3] - healthy.computing_us[:, 3]
    others = np.arange(8) != 3
    assert waited[:, others].mean(axis=1) == pytest.approx(longer, rel=0.1)
    assert slow.preparing_us[:, others] == pytest.approx(healthy.preparing_us[:, others], abs=1.0)


def test_no_receive_ends_before_its_data_was_sent(job: SimulatedJob) -> None:
    ops = job.ops
    sends, receives = (np.flatnonzero(ops.kind == kind) for kind in (kinds.SEND, kinds.RECEIVE))
    assert len(sends) == len(receives)
    if len(sends):
        for group in np.unique(ops.group[sends]):
            sent = np.sort((ops.start_us + ops.transfer_us)[sends[ops.group[sends] == group]])
            got = np.sort((ops.start_us + ops.elapse_us)[receives[ops.group[receives] == group]])
            assert (got >= sent - 1e-6).all()


def test_a_batched_send_ends_before_its_stage_computes_on() -> None:
    job = simulate(VARIETY["batch"], (), seed=7)
    first_of_stage_0 = (job.ops.rank == 0) & (job.ops.step == 0)
    reduce, exchange = kinds.ALL_REDUCE, kinds.BATCH_SEND_RECV
    assert job.ops.kind[first_of_stage_0][:9].tolist() == [reduce, reduce, exchange] * 3
    exchanges = job.ops.kind == exchange
    assert (job.ops.elapse_us[exchanges] >= job.ops.transfer_us[exchanges]).all()
    assert (job.ops.transfer_us[exchanges] > 500.0).all()


def test_the_blocking_operators_of_a_rank_follow_each_other(job: SimulatedJob) -> None:
    ops = job.ops
    for rank in range(job.spec.n_ranks):
        mine = (ops.rank == rank) & ~ops.is_side
        end = ops.start_us[mine] + ops.elapse_us[mine]
        assert (ops.start_us[mine][1:] >= end[:-1] - 1e-6).all()


@pytest.mark.parametrize("framework", ["pt", "ms"])
def test_computing_exposed_communication_and_free_make_the_whole_step(
    job: SimulatedJob, framework: str
) -> None:
    totals = step_totals(job, framework)  # type: ignore[arg-type]
    ranks = np.arange(job.spec.n_ranks)
    # Profilers see a step on the clock of its host, which drifts.
    whole = job.clock_us(ranks, job.times.end_us) - job.clock_us(ranks, job.times.first_task_us)
    parts = totals.computing_us + totals.communication_not_overlapped_us + totals.free_us
    steps = seen_steps(job)
    np.testing.assert_allclose(parts[steps], whole[steps], atol=WRITTEN_US)
    np.testing.assert_allclose(
        totals.communication_us, totals.communication_not_overlapped_us + totals.overlapped_us, atol=1e-6
    )
    np.testing.assert_allclose(
        totals.exclude_receive_us, totals.communication_not_overlapped_us - totals.bubble_us, atol=1e-6
    )
    assert (totals.free_us >= 0).all()
    assert (totals.overlapped_us <= totals.computing_us + 0.01).all()


def test_pytorch_splits_a_step_into_stage_and_bubble(job: SimulatedJob) -> None:
    totals = step_totals(job, "pt")
    parts = totals.computing_us + totals.communication_not_overlapped_us + totals.free_us
    np.testing.assert_allclose(totals.stage_us + totals.bubble_us, parts, atol=1e-6)


def test_the_communication_of_a_step_is_the_union_of_its_operators(job: SimulatedJob) -> None:
    totals = step_totals(job, "pt")
    ops = job.ops
    for step in range(job.spec.steps):
        for rank in range(job.spec.n_ranks):
            mine = (ops.rank == rank) & (ops.step == step)
            covered, reached = 0.0, -np.inf
            for begin, end in zip(ops.start_us[mine], (ops.start_us + ops.elapse_us)[mine], strict=True):
                covered += max(0.0, end - max(begin, reached))
                reached = max(reached, end)
            assert totals.communication_us[step, rank] == pytest.approx(covered, abs=WRITTEN_US * mine.sum())


@pytest.mark.parametrize("fields", ["full", "idle", "mixed"])
def test_idle_is_what_transit_and_wait_leave_of_elapse(fields: str) -> None:
    spec = dataclasses.replace(VARIETY["plain"], wait_fields=fields)
    view = observe(simulate(spec, (), 3))
    np.testing.assert_allclose(view.idle_us, view.elapse_us - view.transit_us - view.wait_us, atol=1e-6)
    for column in (view.idle_us, view.wait_us, view.transit_us, view.synchronization_us):
        assert (column >= -1e-9).all()
    assert (view.synchronization_us <= view.wait_us + 1e-9).all()
    collective = view.ops.kind <= kinds.ALL_TO_ALL
    share = (view.idle_us == view.elapse_us)[collective].mean()
    assert {"full": share == 0, "idle": share == 1, "mixed": 0.2 < share < 0.4}[fields]


@pytest.mark.slow
@given(spec=specs(), seed=st.integers(0, 2**31))
def test_the_tables_keep_the_identities(spec: JobSpec, seed: int) -> None:
    by_rank = tables(simulate(spec, (), seed))
    made = by_rank.values()
    steps, ops, links = (
        pa.concat_tables([getattr(one, name) for one in made]).to_pandas()
        for name in ("steps", "collectives", "links")
    )
    whole = steps.computing_us + steps.communication_not_overlapped_us + steps.free_us
    np.testing.assert_allclose(whole, steps.stage_us + steps.bubble_us, atol=1e-6)
    np.testing.assert_allclose(ops.idle_us, ops.elapse_us - ops.transit_us - ops.wait_us, atol=1e-6)
    assert (ops.wait_us >= 0).all()
    assert (links.src_rank == np.repeat(list(by_rank), [len(one.links) for one in made])).all()
    assert ((links.transport == "LOCAL") == (links.src_local == links.dst_local)).all()
