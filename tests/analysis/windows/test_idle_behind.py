"""Idle time behind the last call of a step is replayed where it lies."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cluster_analysis.engine.totals import step_calls
from cluster_analysis.replay.graph import build_graph
from cluster_analysis.replay.replay import Repair
from cluster_analysis.tables.model import Group, Topology
from cluster_analysis.tables.schema import COLLECTIVES, LINKS, STEPS
from cluster_analysis.trace.reduction import CALLS, reduce_step
from cluster_analysis.windows.between import between_steps
from cluster_run.ids import HostId, ParallelSizes, Rank, Step

N_RANKS, N_STEPS, TRANSFER_US = 4, 6, 2_000.0


def test_steps_last_as_long_in_the_replay_as_recorded_whoever_idles_behind_its_last_call() -> None:
    """Hosts log, save or evaluate behind the sum of all gradients, each for as long as it likes."""
    dice = np.random.default_rng(7)
    computed_us = dice.uniform(9.9e3, 1.01e4, (N_STEPS, N_RANKS))
    behind_us = dice.uniform(0.0, 8e3, (N_STEPS, N_RANKS))
    steps, calls = [], []
    free_from_us, sums_end_us = np.zeros(N_RANKS), []
    for step in range(N_STEPS):
        came_us = free_from_us + computed_us[step]
        end_us = came_us.max() + TRANSFER_US
        for rank in range(N_RANKS):
            lasted_us = end_us - came_us[rank]
            times = {"computing_us": computed_us[step, rank], "free_us": behind_us[step, rank]}
            times["communication_not_overlapped_us"] = lasted_us
            steps.append(dict.fromkeys(STEPS.names, 0.0) | times | {"rank": rank, "step": step})
            start_ns = 10**15 + 10**9 * rank + round(1000 * came_us[rank])
            call = {"rank": rank, "step": step, "group": "1", "op_type": "allreduce", "op_index": step}
            calls.append(call | {"op_name": "sum", "start_ns": start_ns, "elapse_us": lasted_us})
        free_from_us = end_us + behind_us[step]
        sums_end_us.append(end_us)
    collectives = pa.Table.from_pylist(calls, COLLECTIVES)
    totals = between_steps(pa.Table.from_pylist(steps, STEPS), step_calls(collectives))
    ranks = tuple(map(Rank, range(N_RANKS)))
    topology = Topology(
        ranks=ranks,
        hosts=dict.fromkeys(ranks, HostId("1")),
        devices={},
        groups={"1": Group("1", "dp", ranks, "high")},
        parallel=ParallelSizes(),
        stages={},
    )
    parts = (
        reduce_step(Step(step), totals, collectives.select(CALLS.names), LINKS.empty_table(), topology)
        for step in range(N_STEPS)
    )
    graph = build_graph([one.operators for one in parts if one.operators is not None])
    assert graph is not None
    replayed_us = graph.replay([Repair()])[0]
    # What it computes before the sum differs by 1 %: so much may be told as time that no column holds.
    assert replayed_us[1:] == pytest.approx(np.diff(sums_end_us), rel=0.01)
