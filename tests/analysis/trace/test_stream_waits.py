"""How long a rank computed before it waited for its gradients, and when it issued them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.replay.graph import build_graph
from cluster_analysis.replay.replay import Repair
from cluster_analysis.tables.model import Topology
from cluster_analysis.tables.schema import STEPS
from cluster_analysis.trace.evidence import StepOperators
from cluster_analysis.trace.reduction import reduce_step
from cluster_analysis.trace.streams.points import POINT, with_points
from cluster_run.ids import Step
from cluster_simulate.api import Healthy, JobSpec
from tests.analysis.copies import replace
from tests.analysis.jobs import NO_LINKS, Call, collectives_table, judged, small_topology, steps_table

N_RANKS = 6
LATE = 4
#: Computing of a rank, and of the late one; gradients are issued after half and after all of it.
WORK_US = 10_000.0
LATE_WORK_US = 13_000.0
SUM_US = 1_000.0


def work_of(rank: int) -> float:
    return LATE_WORK_US if rank == LATE else WORK_US


def gradients(*, with_tensors: bool) -> list[Call]:
    """Two sums of gradients beside the computing, then a call that waits for the second one.

    With tensors there is a call of the main stream beside the first of them.
    """
    calls = []
    first, second = LATE_WORK_US / 2 + SUM_US, LATE_WORK_US + SUM_US
    for rank in range(N_RANKS):
        issued = work_of(rank) / 2
        again = max(work_of(rank), first)
        calls += [
            Call(rank, "allreduce", issued, first - issued, "d", 1),
            Call(rank, "allreduce", again, second - again, "d", 2),
            Call(rank, "allreduce", second, 100.0, "w", 3),
        ]
        if with_tensors:
            calls.append(Call(rank, "allreduce", issued + 10.0, 10.0, f"t{rank}", 4))
    return calls


def reduced(
    *, with_totals: bool = True, with_tensors: bool = True, ranks_a_stage: int = N_RANKS
) -> StepOperators:
    everyone = tuple(range(N_RANKS))
    # Data parallelism only: all calls are one queue.
    roles = {"d": "dp", "w": "world" if with_tensors else "dp"}
    where: Topology = small_topology(
        {"d": everyone, "w": everyone}, roles=roles, stages={rank: rank // ranks_a_stage for rank in everyone}
    )
    total = LATE_WORK_US + SUM_US + 100.0
    rows = steps_table(dict.fromkeys(everyone, total)).to_pylist()
    for row in rows:
        work = work_of(row["rank"])
        exposed = total - work if with_totals else None
        row |= {"computing_us": work, "free_us": 0.0, "communication_not_overlapped_us": exposed}
        row["overlapped_us"] = LATE_WORK_US / 2 + SUM_US - work / 2
    totals = pa.Table.from_pylist(rows, schema=STEPS)
    calls = collectives_table(gradients(with_tensors=with_tensors))
    found = reduce_step(Step(1), totals, calls, NO_LINKS, where).operators
    assert found is not None
    return found


def last_of_main(found: StepOperators, rank: int) -> float:
    return float(found.instance_gap_us[~found.instance_is_side & (found.instance_rank == rank)][-1])


@pytest.mark.parametrize("ranks_a_stage", [N_RANKS, 2], ids=["with peers", "in pairs"])
def test_before_waiting_for_gradients_a_rank_computed_as_long_as_its_totals_say(ranks_a_stage: int) -> None:
    """Where a stage has two ranks, the other members of the next collective tell that all wait for theirs."""
    found = reduced(ranks_a_stage=ranks_a_stage)
    for rank in range(N_RANKS):
        assert last_of_main(found, rank) == pytest.approx(work_of(rank) / 2, abs=150.0)


def test_without_totals_a_rank_computed_until_it_issued_its_last_gradients() -> None:
    found = reduced(with_totals=False)  # so that only what follows a rank's first call is known
    assert last_of_main(found, LATE) == pytest.approx(LATE_WORK_US / 2, abs=150.0)


def test_gradients_that_queued_were_issued_where_in_their_computing_peers_issue_them() -> None:
    found = reduced()
    second = found.instance_is_side & (found.operator_place[found.instance_operator] == 1)
    assert found.instance_gap_us[second] == pytest.approx(
        [work_of(rank) / 2 for rank in range(N_RANKS)], abs=150.0
    )


def counted_from(calls: list[Call]) -> list[int]:
    """After which call of the main stream each call of the second one is issued, rank by rank."""
    everyone = tuple(range(N_RANKS))
    alone = {f"t{rank}": (rank,) for rank in everyone}
    where = small_topology({"d": everyone} | alone, roles={"d": "dp"}, stages=dict.fromkeys(everyone, 0))
    totals = steps_table(dict.fromkeys(everyone, 120_000.0))
    found = reduce_step(Step(1), totals, collectives_table(calls), NO_LINKS, where).operators
    assert found is not None
    side = np.flatnonzero(found.instance_is_side)
    places: list[int] = found.operator_place[found.instance_operator[found.instance_after[side]]].tolist()
    return places


def test_gradients_that_queue_behind_a_late_rank_were_issued_after_the_call_after_which_it_issued_them() -> (
    None
):
    """Three blocks with a call behind each, and gradients beside the next block: all but one rank queue."""
    calls = list[Call]()
    late_us, block_us = 25_000.0, 10_000.0
    sums = [late_us + block_us, late_us + 2 * block_us]
    for rank in range(N_RANKS):
        begun = late_us if rank == LATE else 0.0
        ends = [begun + block_us * number for number in (1, 2, 3)]
        calls += [Call(rank, "allreduce", end, 10.0, f"t{rank}", number) for number, end in enumerate(ends)]
        left = 0.0
        for number, arrived in enumerate(sums):
            start = max(ends[number] + 20.0, left)
            left = arrived + 20.0 + SUM_US
            calls.append(Call(rank, "allreduce", start, left - start, "d", number))
    assert counted_from(calls) == [0, 1] * N_RANKS


def test_gradients_that_queue_on_all_ranks_were_issued_evenly() -> None:
    """Five blocks with a call behind each; gradients after the first, third and last, on a slow network."""
    calls = list[Call]()
    for rank in range(N_RANKS):
        ends = [10_000.0 * number for number in range(1, 6)]
        calls += [Call(rank, "allreduce", end, 10.0, f"t{rank}", number) for number, end in enumerate(ends)]
        calls += [Call(rank, "allreduce", 10_020.0 + 35e3 * n, 35e3, "d", n) for n in range(3)]
    assert counted_from(calls) == [0, 2, 4] * N_RANKS


def test_the_last_gradients_were_issued_when_all_was_computed_whatever_is_fetched_behind_them() -> None:
    """The same five blocks and gradients; then their norm, and weights are gathered."""
    calls = list[Call]()
    for rank in range(N_RANKS):
        ends = [10_000.0 * number for number in (1, 2, 3, 4, 5, 11.6)]
        calls += [Call(rank, "allreduce", end, 10.0, f"t{rank}", number) for number, end in enumerate(ends)]
        calls += [Call(rank, "reducescatter", 10_020.0 + 35e3 * n, 35e3, "d", n) for n in range(3)]
        calls.append(Call(rank, "allgather", 117_000.0, 3e3, "d", 3))
    assert counted_from(calls) == [0, 2, 4, 5] * N_RANKS


def test_gradients_that_queue_on_all_ranks_behind_the_last_call_were_issued_when_they_were_computed() -> None:
    """Two sums of gradients, made in the middle and at the end of what is left to compute."""
    everyone = tuple(range(N_RANKS))
    end = WORK_US / 2 + 12e3
    calls = list[Call]()
    for rank in everyone:
        calls += [
            Call(rank, "allreduce", 0.0, 10.0, f"t{rank}", 1),
            Call(rank, "allreduce", end, 10.0, "w", 1),
        ]
        calls += [Call(rank, "allreduce", WORK_US / 2 + 6e3 * n, 6e3, "d", n) for n in range(2)]
    alone = {f"t{rank}": (rank,) for rank in everyone}
    where = small_topology(
        {"d": everyone, "w": everyone} | alone, roles={"d": "dp"}, stages=dict.fromkeys(everyone, 0)
    )
    totals = steps_table(dict.fromkeys(everyone, end + 10.0), computing_us=WORK_US).to_pylist()
    more = {
        "free_us": 0.0,
        "communication_not_overlapped_us": end + 20.0 - WORK_US,
        "overlapped_us": WORK_US / 2,
    }
    table = pa.Table.from_pylist([row | more for row in totals], schema=STEPS)
    found = reduce_step(Step(1), table, collectives_table(calls), NO_LINKS, where).operators
    assert found is not None
    assert found.instance_gap_us[found.instance_is_side] == pytest.approx(
        [WORK_US / 2, WORK_US] * N_RANKS, abs=50.0
    )


@pytest.mark.parametrize(("size_bytes", "behind_us"), [(1e6, WORK_US / 6), (10.0, 0.0)])
def test_nothing_is_computed_between_the_last_gradients_and_a_sum_of_a_few_numbers(
    size_bytes: float, behind_us: float
) -> None:
    """Of three calls that queue, the last may sum up more gradients, or the norm of those before it."""
    everyone = tuple(range(N_RANKS))
    calls = list[Call]()
    for rank in everyone:
        calls += [Call(rank, "allreduce", WORK_US / 2 + 9e3 * n, 9e3, "d", n) for n in range(2)]
        calls.append(Call(rank, "allreduce", WORK_US / 2 + 18e3, 100.0, "w", 3, size_bytes))
    where = small_topology(
        {"d": everyone, "w": everyone}, roles={"d": "dp", "w": "dp"}, stages=dict.fromkeys(everyone, 0)
    )
    total = WORK_US / 2 + 18e3 + 100.0
    rows = steps_table(dict.fromkeys(everyone, total), computing_us=WORK_US).to_pylist()
    more = {"free_us": 0.0, "communication_not_overlapped_us": total - WORK_US, "overlapped_us": WORK_US / 2}
    table = pa.Table.from_pylist([row | more for row in rows], schema=STEPS)
    operators = reduce_step(Step(1), table, collectives_table(calls), NO_LINKS, where).operators
    assert operators is not None
    (found,) = with_points([operators])
    points = found.instance_gap_us[found.operator_type[found.instance_operator] == found.types.index(POINT)]
    worked = points.reshape(N_RANKS, 3, 2).sum(axis=2)
    assert worked.sum(axis=1) == pytest.approx(WORK_US, abs=10.0)
    assert worked[:, 2] == pytest.approx(behind_us, abs=WORK_US / 10)


def test_computing_beside_a_single_queue_of_calls_is_counted_from_issue_to_issue() -> None:
    (found,) = with_points([reduced(with_tensors=False)])
    for rank in range(N_RANKS):
        own = found.instance_rank == rank
        by_type = [found.types[kind] for kind in found.operator_type[found.instance_operator[own]]]
        gaps = found.instance_gap_us[own]
        points = gaps[[name == POINT for name in by_type]].reshape(3, 2).sum(axis=1)
        assert points == pytest.approx([work_of(rank) / 2, work_of(rank) / 2, 0.0], abs=1.0)
        assert not gaps[[name != POINT for name in by_type]].any()


def test_a_quicker_sum_of_gradients_leaves_the_computing_beside_it_as_long_as_it_is() -> None:
    graph = build_graph([reduced(with_tensors=False)])
    assert graph is not None
    graph = replace(graph, first_step_leads=False)
    sums = np.flatnonzero(graph.transfer_us > 0)
    quick = Repair(operators=sums, transfer_us=np.full(len(sums), 10.0))
    as_it_was, quicker = graph.replay([Repair(), quick])[:, 0]
    assert as_it_was == pytest.approx(LATE_WORK_US + SUM_US + 100.0, abs=1.0)
    assert quicker == pytest.approx(LATE_WORK_US + 20.0, abs=1.0)


@pytest.mark.many
@pytest.mark.parametrize(("records", "accuracy"), [(0.0, 0.06), (0.05, 0.19)])
@pytest.mark.parametrize("fault", ["slow_rank:1.2@5", "slow_host:1.15@2,cause=compute"])
def test_gradients_beside_the_computing_do_not_hide_what_a_fault_costs(
    fault: str, records: float, accuracy: float
) -> None:
    healthy = Healthy(missing_records=records)
    spec = JobSpec(tp=4, pp=2, dp=4, steps=6, microbatches=4, dp_mode="overlap", healthy=healthy)
    case = judged(spec, fault, seed=5)
    assert case.alarms[0].cost_ms_per_step == pytest.approx(case.true_cost_ms, rel=accuracy)


def hybrid(slow_us: float) -> StepOperators:
    """Weights are gathered and gradients scattered in shards of four; each block's are summed over replicas.

    Sums go on a second stream when a block is computed. The first rank takes `slow_us` longer for each.
    """
    everyone = np.arange(8)
    chance = np.random.default_rng(5)
    calls, busy, times = list[Call](), np.zeros((2, 8)), list[tuple[FloatArray, FloatArray]]()

    def call(kind: str, issued: FloatArray, number: int, teams: IntArray, took_us: float) -> FloatArray:
        stream = int(kind == "allreduce" and teams.max() == 3)
        start = np.maximum(issued, busy[stream] + 1.0)
        end = np.array([start[teams == team].max() for team in teams]) + took_us
        name = "sum" if stream else "all" if kind == "allreduce" else "shard"
        for rank in everyone:
            lasts_us = float(end[rank] - start[rank])
            calls.append(Call(int(rank), kind, float(start[rank]), lasts_us, f"{name}{teams[rank]}", number))
        busy[stream] = end
        times.append((start, end))
        return end

    now, done, computed = np.zeros(8), np.zeros(8), list[tuple[FloatArray, FloatArray]]()
    gathered = call("allgather", now, 0, everyone // 4, 3_000.0)
    for block in range(6):
        begun = np.maximum(now, gathered)
        if block < 5:
            gathered = call("allgather", begun + 5.0, 2 * block + 1, everyone // 4, 3_000.0)
        now = begun + 20_000.0 * chance.normal(1.0, 0.002, 8) + np.where(everyone == 0, slow_us, 0.0)
        computed.append((begun, now))
        scattered = call("reducescatter", now + 1.0, 2 * block + 2, everyone // 4, 3_000.0)
        done = np.maximum(scattered, call("allreduce", now + 2.0, block, everyone % 4, 2_000.0))
    end = call("allreduce", done + 500.0, 0, np.zeros(8, np.int64), 100.0)
    covered = [
        sum(max(0.0, min(e[r], f[r]) - max(b[r], c[r])) for b, e in times for c, f in computed)
        for r in everyone
    ]
    work = np.sum([f - b for b, f in computed], axis=0)
    ranks = tuple(range(8))
    groups = {f"shard{n}": ranks[4 * n : 4 * n + 4] for n in (0, 1)} | {
        f"sum{n}": (n, n + 4) for n in range(4)
    }
    where = small_topology(
        groups | {"all0": ranks}, roles=dict.fromkeys(groups, "dp"), stages=dict.fromkeys(ranks, 0)
    )
    rows = steps_table({rank: float(end[rank]) for rank in ranks}).to_pylist()
    for rank, row in enumerate(rows):
        row |= {
            "computing_us": float(work[rank]), "overlapped_us": covered[rank], "free_us": 0.0,
            "communication_not_overlapped_us": float(end[rank] - work[rank]),
        }  # fmt: skip
    steps = pa.Table.from_pylist(rows, schema=STEPS)
    found = reduce_step(Step(1), steps, collectives_table(calls), NO_LINKS, where).operators
    assert found is not None
    return found


def test_sums_beside_gathered_weights_are_issued_earlier_once_computing_before_them_is_quicker() -> None:
    graph, quick = build_graph([hybrid(10_000.0)]), build_graph([hybrid(0.0)])
    assert graph is not None
    assert quick is not None
    is_point = graph.operator_type[graph.operator] == graph.types.index(POINT)
    at = np.flatnonzero((graph.rank == 0) & is_point & (graph.gap_us > 15_000.0))
    repaired = graph.replay([Repair(at, graph.gap_us[at] - 10_000.0)])
    assert len(at) == 6
    assert repaired[0] == pytest.approx(quick.replay([Repair()])[0], rel=0.005)
