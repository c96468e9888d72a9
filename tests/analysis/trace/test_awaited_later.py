"""Computing beside a call of the main stream that is awaited later, while gradients go on a second stream."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cluster_analysis.replay.graph import build_graph
from cluster_analysis.replay.replay import Graph, Repair
from cluster_analysis.tables.schema import STEPS
from cluster_analysis.trace.reduction import reduce_step
from cluster_run.ids import Step
from tests.analysis.copies import replace
from tests.analysis.jobs import NO_LINKS, Call, collectives_table, small_topology, steps_table

N_RANKS = 6
#: Computing before the exchange, beside it, behind it before each sum of gradients, and at the end.
LOOKUP_US, BESIDE_US, BLOCK_US, UPDATE_US = 4_000.0, 9_000.0, 6_000.0, 3_000.0
SUM_US, LAST_US = 1_500.0, 2_000.0
LATE, LATE_US = 4, 2_000.0


def exchanged(exchange_us: float) -> Graph:
    """A job that exchanges vectors that it looked up, and needs those of others amid a block.

    One rank comes late to the exchange. The last one, beside which the last gradients go, is waited for.
    """
    calls, computing, overlapped = list[Call](), list[float](), list[float]()
    second = LOOKUP_US + LATE_US + BESIDE_US + 2 * BLOCK_US
    end = second + LAST_US + UPDATE_US
    for rank in range(N_RANKS):
        issued = LOOKUP_US + (LATE_US if rank == LATE else 0.0)
        elapse_us = LOOKUP_US + LATE_US + exchange_us - issued
        first = issued + BESIDE_US + BLOCK_US
        calls += [
            Call(rank, "alltoallv", issued, elapse_us, "w", 1),
            Call(rank, "allreduce", first, second - BLOCK_US + SUM_US - first, "d", 2),
            Call(rank, "alltoallv", first + BLOCK_US, second + LAST_US - first - BLOCK_US, "w", 3),
            Call(rank, "allreduce", first + BLOCK_US, second + SUM_US - first - BLOCK_US, "d", 4),
            Call(rank, "allreduce", end, 50.0, "w", 5, size_bytes=8.0),
        ]
        computing.append(first + BLOCK_US + UPDATE_US)
        overlapped.append(elapse_us + second - BLOCK_US + SUM_US - first)
    everyone = tuple(range(N_RANKS))
    rows = steps_table(dict.fromkeys(everyone, end + 50.0)).to_pylist()
    for row in rows:
        rank = row["rank"]
        row |= {"computing_us": computing[rank], "free_us": 0.0, "overlapped_us": overlapped[rank]}
        row["communication_not_overlapped_us"] = end + 50.0 - computing[rank]
    where = small_topology(
        {"w": everyone, "d": everyone}, roles={"d": "dp"}, stages=dict.fromkeys(everyone, 0)
    )
    totals = pa.Table.from_pylist(rows, schema=STEPS)
    found = reduce_step(Step(1), totals, collectives_table(calls), NO_LINKS, where).operators
    assert found is not None
    graph = build_graph([found])
    assert graph is not None
    return replace(graph, first_step_leads=False)


@pytest.mark.parametrize("exchange_us", [1_000.0, 5_000.0, 7_000.0])
def test_a_quicker_exchange_that_nobody_waits_for_saves_nothing(exchange_us: float) -> None:
    graph = exchanged(exchange_us)
    quick = Repair(operators=np.flatnonzero(graph.transfer_us == exchange_us), transfer_us=np.array([100.0]))
    as_it_was, quicker = graph.replay([Repair(), quick])[:, 0]
    assert as_it_was == pytest.approx(graph.measured_us.max(), abs=1.0)
    assert quicker == pytest.approx(as_it_was, abs=1.0)


def test_a_quicker_exchange_that_all_wait_for_saves_its_time() -> None:
    graph = exchanged(5_000.0)
    quick = Repair(operators=np.flatnonzero(graph.transfer_us == LAST_US), transfer_us=np.array([100.0]))
    as_it_was, quicker = graph.replay([Repair(), quick])[:, 0]
    assert as_it_was - quicker == pytest.approx(LAST_US - 100.0, abs=1.0)
