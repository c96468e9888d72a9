"""Waiting inside kernels that communicate counts as computing in files, and is waiting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from cluster_analysis.judge.detection import Detection, detect
from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.tables.kernels import communicate
from cluster_analysis.tables.schema import OPERATORS
from cluster_run.ids import HostId, Rank
from tests.analysis.copies import replace, with_column
from tests.analysis.jobs import Call, collectives_table, evidence_of, small_topology, steps_table
from tests.analysis.totals import evidence_of_computing, on_hosts, peers_agree

N_RANKS, N_STEPS, SLOW = 16, 6, 5
#: Of a step: attention and matrix products, and what tokens take to be sent.
OWN_US, SENT_US = 400e3, 50e3
TIMES = ("min_us", "avg_us", "max_us")
KERNELS = (("MatMulV2", 0.7), ("FusedInferAttentionScore", 0.3))


def operators_of(rows: Sequence[tuple[int, str, str, float]]) -> pa.Table:
    """OPERATORS of kernels: rank, type, core, and µs a step."""
    calls = 10 * N_STEPS
    return pa.Table.from_pylist(
        [
            {
                "rank": rank, "op_type": name, "core_type": core, "n_calls": calls,
                "total_us": N_STEPS * us, **dict.fromkeys(TIMES, N_STEPS * us / calls),
            }
            for rank, name, core, us in rows
        ],
        schema=OPERATORS,
    )  # fmt: skip


def found_where(slower: float) -> Detection:
    """What is found where one rank computes slower, and all others wait for it inside a kernel."""
    own_us = np.full(N_RANKS, OWN_US)
    own_us[SLOW] *= slower
    inside_us = SENT_US + own_us.max() - own_us
    rows = [
        (rank, name, "AI_CORE", share * own_us[rank]) for rank in range(N_RANKS) for name, share in KERNELS
    ]
    rows += [(rank, "MoeDistributeDispatchV2", "MIX_AIC", inside_us[rank]) for rank in range(N_RANKS)]
    table = operators_of(rows)
    computing = peers_agree(N_RANKS, N_STEPS, share=(own_us.max() + SENT_US) / 1e6)
    where = on_hosts(N_RANKS, 8)
    return detect(replace(evidence_of_computing(computing, where), operators=table), where)


def test_a_device_that_others_wait_for_inside_a_kernel_is_told() -> None:
    found = found_where(1.4)
    assert found.verdict == "degraded"
    (alarm,) = [one for one in found.findings if one.is_alarm]
    assert (alarm.kind, alarm.ranks, alarm.cause) == ("slow_rank", (SLOW,), "compute")
    assert alarm.cost_ms_per_step == pytest.approx(0.4 * OWN_US / 1e3, rel=0.02)


def test_nobody_is_told_where_all_are_as_fast() -> None:
    assert found_where(1.0).findings == ()


def test_kernels_that_communicate_are_known_by_their_names_and_calls_are_none() -> None:
    names = [
        "MoeDistributeCombineV2",
        "AllGatherMatmul",
        "MatmulReduceScatter",
        "hcom_allReduce_",
        "MatMulV2",
    ]
    assert communicate(pa.table({"op_type": names})).to_pylist() == [True, True, True, False, False]


def found_on(late_us: FloatArray, inside_us: FloatArray) -> Detection:
    """What is found where ranks (16, steps) idle and wait inside kernels; each of two hosts has two teams."""
    sum_us = 5e3
    teams = {f"tp{i}": tuple(range(4 * i, 4 * i + 4)) for i in range(4)}
    pairs = {f"dp{i}": tuple(range(i, 16, 4)) for i in range(4)}
    roles = dict.fromkeys(teams, "tp") | dict.fromkeys(pairs, "dp")
    where = small_topology(teams | pairs, roles, dict.fromkeys(range(16), 0))  # type: ignore[arg-type]
    where = replace(where, hosts={Rank(rank): HostId(str(1 + rank // 8)) for rank in range(16)})
    chance = np.random.default_rng(3).normal(0.0, 300.0, (16, N_STEPS))
    tables, calls = [], []
    for step in range(N_STEPS):
        own_us = OWN_US + SENT_US + inside_us[:, step] + chance[:, step]
        idle_us = 5e3 + late_us[:, step] + np.roll(chance, 1, axis=0)[:, step] / 3
        end_us = float((own_us + idle_us).max()) + sum_us
        for rank in range(16):
            start_us = float(own_us[rank] + idle_us[rank])
            calls.append(
                Call(rank, "allReduce", start_us, end_us - start_us, f"dp{rank % 4}", step, step=step)
            )
            exposed = end_us - start_us
            table = steps_table({rank: end_us}, step=step, computing_us=float(own_us[rank]))
            table = with_column(table, "communication_not_overlapped_us", [exposed])
            tables.append(with_column(table, "free_us", [float(idle_us[rank])]))
    rows = [(rank, "MatMulV2", "AI_CORE", OWN_US) for rank in range(16)]
    rows += [
        (rank, "AllGatherMatmul", "MIX_AIC", SENT_US + float(inside_us[rank].mean())) for rank in range(16)
    ]
    return detect(
        evidence_of(where, pa.concat_tables(tables), collectives_table(calls), operators=operators_of(rows)),
        where,
    )


def test_ranks_of_a_late_host_that_wait_for_each_other_alone_hold_up_themselves() -> None:
    """Each of its two tensor-parallel groups lies in it: what they wait inside is the host's as well."""
    of_host = np.repeat(np.arange(16) < 8, N_STEPS).reshape(16, N_STEPS)
    found = found_on(30e3 * of_host, 20e3 * of_host)
    (alarm,) = [one for one in found.findings if one.is_alarm]
    assert (alarm.kind, alarm.hosts) == ("slow_host", ("1",))
    assert alarm.cost_ms_per_step == pytest.approx(50.0, rel=0.05)


def test_a_host_costs_no_more_where_its_ranks_wait_for_one_of_them_that_pauses() -> None:
    late_us, inside_us = np.zeros((16, N_STEPS)), np.zeros((16, N_STEPS))
    late_us[:8] = 8e3
    late_us[0, ::2] += 60e3
    inside_us[1:4, ::2] = 60e3
    found = found_on(late_us, inside_us)
    (host,) = [one for one in found.findings if one.kind == "slow_host"]
    assert host.cost_high_ms is not None
    assert host.cost_high_ms < 13.0
