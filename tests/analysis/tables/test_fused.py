"""Kernels that communicate while they compute are known by their names, and told apart from computing."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cluster_analysis.tables.columns_described import ComputingApart
from cluster_analysis.tables.kernels import computing_apart, is_fused
from cluster_analysis.tables.schema import OPERATORS


@pytest.mark.parametrize(
    "name",
    [
        "MoeDistributeDispatch",
        "MoeDistributeDispatchV2",
        "MoeDistributeCombineV3",
        "MatmulAllReduce",
        "MatmulAllReduceAddRmsNorm",
        "QuantMatmulAllReduce",
        "MatmulReduceScatter",
        "AllGatherMatmul",
        "AllGatherMatmulV2",
        "AlltoAllAllGatherBatchMatMul",
        "BatchMatMulReduceScatterAlltoAll",
        "AlltoAllvGroupedMatMul",
        "GroupedMatMulAlltoAllv",
        "MoeDistributeCombineAddRmsNorm",
        "DispatchFFNCombine",
        "CamMoeDispatchNormal",
        "NotifyDispatch",
    ],
)
def test_fused_kernels_of_released_operator_libraries_are_known(name: str) -> None:
    assert is_fused(name)


@pytest.mark.parametrize(
    "name",
    [
        "MatMulV2",
        "GroupedMatmul",
        "FusedInferAttentionScore",
        "MoeGatingTopK",
        "MoeInitRouting",
        "MoeTokenPermute",
        "ReduceSum",
        "hcom_allReduce_",
        "hcom_reduceScatter_",
        "hcom_allGather_",
        "RmsNorm",
        "AddRmsNormQuant",
        "DispatchQueue",
    ],
)
def test_kernels_that_cannot_wait_and_plain_communication_are_not(name: str) -> None:
    assert not is_fused(name)


def operators(*rows: tuple[int, str, int, float]) -> pa.Table:
    none = dict.fromkeys(OPERATORS.names)
    return pa.Table.from_pylist(
        [
            {**none, "rank": rank, "op_type": kind, "n_calls": n, "total_us": total}
            for rank, kind, n, total in rows
        ],
        OPERATORS,
    )


def test_the_time_of_a_rank_is_split_in_what_may_wait_and_what_cannot() -> None:
    found = computing_apart(
        operators(
            (0, "MatMulV2", 10, 100.0), (0, "MoeDistributeDispatchV2", 2, 70.0), (1, "MatMulV2", 10, 140.0)
        )
    )
    assert found.to_pylist() == [
        {"rank": 0, "computing_us": 170.0, "fused_us": 70.0, "apart_us": 100.0, "n_fused": 2},
        {"rank": 1, "computing_us": 140.0, "fused_us": 0.0, "apart_us": 140.0, "n_fused": 0},
    ]


def test_a_job_without_such_kernels_has_no_row() -> None:
    assert computing_apart(operators((0, "MatMulV2", 10, 100.0))) == ComputingApart.schema.empty_table()
