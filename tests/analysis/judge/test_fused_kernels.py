"""Waiting inside kernels that communicate counts as computing in files, and is waiting."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cluster_analysis.judge.detection import Detection, detect
from cluster_analysis.judge.measures.computing import communicate
from cluster_analysis.tables.schema import OPERATORS
from tests.analysis.copies import replace
from tests.analysis.totals import evidence_of_computing, on_hosts, peers_agree

N_RANKS, N_STEPS, SLOW = 16, 6, 5
#: Of a step: attention and matrix products, and what tokens take to be sent.
OWN_US, SENT_US = 400e3, 50e3
TIMES = ("min_us", "avg_us", "max_us")
KERNELS = (("MatMulV2", 0.7), ("FusedInferAttentionScore", 0.3))


def found_where(slower: float) -> Detection:
    """What is found where one rank computes slower, and all others wait for it inside a kernel."""
    own_us = np.full(N_RANKS, OWN_US)
    own_us[SLOW] *= slower
    inside_us = SENT_US + own_us.max() - own_us
    rows = [
        (rank, name, "AI_CORE", share * own_us[rank]) for rank in range(N_RANKS) for name, share in KERNELS
    ]
    rows += [(rank, "MoeDistributeDispatchV2", "MIX_AIC", inside_us[rank]) for rank in range(N_RANKS)]
    calls = 10 * N_STEPS
    table = pa.Table.from_pylist(
        [
            {
                "rank": rank, "op_type": name, "core_type": core, "n_calls": calls,
                "total_us": N_STEPS * us, **dict.fromkeys(TIMES, N_STEPS * us / calls),
            }
            for rank, name, core, us in rows
        ],
        schema=OPERATORS,
    )  # fmt: skip
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
