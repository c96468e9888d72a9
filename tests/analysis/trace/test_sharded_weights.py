"""Weights that are gathered on a second stream, one block ahead: which of them each block waits for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cluster_analysis.tables.schema import STEPS
from cluster_analysis.trace.calls import calls_of
from cluster_analysis.trace.matching import match_calls
from cluster_analysis.trace.missing.imputation import with_missing_calls
from cluster_analysis.trace.streams.free import data_is_free
from cluster_analysis.trace.streams.streams import sequence
from cluster_simulate.api import Healthy, JobSpec
from tests.analysis.copies import replace
from tests.analysis.jobs import Call, collectives_table, judged, small_topology

SHARDED = JobSpec(tp=4, pp=2, dp=4, steps=3, dp_mode="zero3")
N_RANKS = 8
FIRST_US, GATHER_US, WORK_US = 1_000.0, 4_000.0, 10_000.0


def two_gatherings(slow: float) -> list[Call]:
    """Weights of two blocks, gathered one after the other in two groups; then the blocks, each with a call.

    In one of the groups a gathering takes so many times as long.
    """
    calls = []
    for rank in range(N_RANKS):
        group, takes = f"d{rank % 2}", GATHER_US * (slow if rank % 2 else 1.0)
        gathered = [FIRST_US + takes, FIRST_US + 2 * takes]
        # Nobody works for exactly as long as another one.
        done = gathered[0] + WORK_US + 20.0 * rank
        second = max(done + 10.0, gathered[1]) + WORK_US - 15.0 * rank
        calls += [
            Call(rank, "allreduce", 0.0, FIRST_US, f"t{rank}", 1),
            Call(rank, "allgather", FIRST_US, takes, group, 1),
            Call(rank, "allgather", FIRST_US + takes, takes, group, 2),
            Call(rank, "allreduce", done, 10.0, f"t{rank}", 2),
            Call(rank, "allreduce", second, 10.0, f"t{rank}", 3),
        ]
    return calls


@pytest.mark.parametrize("ahead_us", [-100.0, 100.0], ids=["sums begin first", "weights begin first"])
def test_weights_are_fetched_by_the_main_stream_whichever_of_them_and_their_sums_begins_first(
    ahead_us: float,
) -> None:
    """What was scattered in a group is summed in another one; the next weights go at about that time."""
    calls = list[Call]()
    for rank in range(N_RANKS):
        shard, replicas = f"d{rank // 4}", f"d{2 + rank % 4}"
        for block in range(4):
            begun = WORK_US * block
            calls += [
                Call(rank, "reducescatter", begun, GATHER_US, shard, 2 * block),
                Call(rank, "allreduce", begun + GATHER_US + 200.0, GATHER_US, replicas, block),
                Call(
                    rank, "allgather", begun + GATHER_US + 200.0 - ahead_us, GATHER_US, shard, 2 * block + 1
                ),
            ]
    own = calls_of(collectives_table(calls))
    found = sequence(own, np.zeros(N_RANKS, int), frozenset(own.groups))
    is_sum = np.array(own.types)[own.kind] == "allreduce"
    assert found.is_side.tolist() == is_sum.tolist()
    assert found.fetches


@pytest.mark.parametrize(("covered_us", "is_free"), [(GATHER_US, True), (4 * GATHER_US, False)])
def test_gradients_are_not_what_computing_covers_if_more_is_covered_than_they_last(
    covered_us: float, *, is_free: bool
) -> None:
    """An outer sum over hosts, every few steps, beside inner ones that computing covers."""
    calls = calls_of(collectives_table(two_gatherings(1.0)))
    rows = [{"step": 1, "rank": rank, "overlapped_us": covered_us} for rank in range(N_RANKS)]
    steps = pa.Table.from_pylist(rows, schema=STEPS)
    assert data_is_free(calls, frozenset({"d0", "d1"}), calls.elapse_us, steps) == is_free


@pytest.mark.parametrize("slow", [1.5, 2.0])
def test_all_peers_wait_for_the_weights_that_were_asked_for_first(slow: float) -> None:
    calls = calls_of(collectives_table(two_gatherings(slow)))
    found = sequence(calls, np.zeros(N_RANKS, int), frozenset({"d0", "d1"}), data_is_free=True)
    kinds = np.array(calls.types)[calls.kind]
    first, second = (np.flatnonzero((kinds == "allgather") & (calls.number == one)) for one in (1, 2))
    block = np.flatnonzero((kinds == "allreduce") & (calls.number == 2))
    assert found.join[block].tolist() == first.tolist()
    assert not np.isin(found.join[block], second).any()
    assert found.gap_us[block] == pytest.approx(WORK_US + 20.0 * np.arange(N_RANKS))


@pytest.mark.slow
def test_what_is_lost_around_weights_hides_no_cost() -> None:
    lost = replace(SHARDED, healthy=Healthy(missing_records=0.05))
    result = judged(lost, "slow_nic:4,dir=rx", seed=3)
    (finding,) = result.alarms
    assert finding.cost_ms_per_step == pytest.approx(result.true_cost_ms, rel=0.02)


@pytest.mark.parametrize("spec", [SHARDED, replace(SHARDED, tp=8)])
def test_what_a_slow_card_costs_is_told_where_blocks_wait_for_their_weights(spec: JobSpec) -> None:
    result = judged(spec, "slow_nic:4,dir=tx", seed=1)
    assert result.detection.replay["error_share"] < 0.001
    assert result.alarms[0].cost_ms_per_step == pytest.approx(result.true_cost_ms, rel=0.015)


@pytest.mark.slow
def test_messages_that_are_filled_in_keep_their_place_beside_a_second_stream() -> None:
    result = judged(replace(SHARDED, healthy=Healthy(missing_records=0.01)), "slow_rank:1.2", seed=1)
    assert result.detection.replay["mean_error_share"] < 0.001
    assert result.alarms[0].cost_ms_per_step == pytest.approx(result.true_cost_ms, rel=0.025)


@pytest.mark.slow
def test_samples_that_differ_do_not_hide_that_blocks_wait_for_their_weights() -> None:
    uneven = replace(SHARDED, tp=8, healthy=Healthy(sequence_sigma=0.2))
    result = judged(uneven, "slow_nic:4,dir=tx", seed=1)
    assert result.detection.replay["error_share"] < 0.006
    assert result.alarms[0].cost_ms_per_step == pytest.approx(result.true_cost_ms, rel=0.02)


def test_a_lost_call_ends_before_the_call_of_the_second_stream_that_it_issued() -> None:
    """Clocks of hosts are compared to 15 µs: the others seem to have left the lost call later than this."""
    late, everyone = 3, tuple(range(6))
    calls = []
    for rank in everyone:
        off = 0.0 if rank == late else 15.0
        calls += [
            Call(rank, "allreduce", 0.0, 100.0, "t", 1),
            Call(rank, "allreduce", 5_000.0 + off, 100.0, "t", 2),
            Call(rank, "allgather", 5_100.0 + off, 3_000.0, "d", 1),
            Call(rank, "allreduce", 7_000.0, 100.0, "t", 3),
        ]
    given = [one for one in calls if (one.rank, one.group, one.number) != (late, "t", 2)]
    groups = small_topology(
        {"t": everyone, "d": everyone}, {"t": "tp", "d": "dp"}, stages=dict.fromkeys(everyone, 0)
    )
    found = calls_of(collectives_table(given))
    operator, _ = match_calls(found)
    local = sequence(found, np.zeros(6, int), frozenset({"d"}), data_is_free=True)
    filled, _ = with_missing_calls(found, operator, np.zeros(6), groups, (), local, np.full((2, 6), np.nan))
    lost = np.flatnonzero(filled.rows < 0)
    again = sequence(filled, np.zeros(6, int), frozenset({"d"}), data_is_free=True)
    issued = np.flatnonzero(again.is_side & (filled.rank == late))
    assert filled.end_us[lost] == pytest.approx([5_100.0])
    assert again.after[issued].tolist() == lost.tolist()
    assert again.gap_us[issued] == pytest.approx([0.0])
