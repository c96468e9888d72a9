"""What ranks compute: calls of kernels that cannot wait, apart from fused ones.

Fused kernels communicate while they compute. Profilers count their time as computing, though it may hold
waiting for other ranks: a slow rank is seen by the kernels that cannot wait, and by them alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from cluster_analysis.numeric.arrays import FloatArray, IntArray, codes, numbers
from cluster_analysis.tables.columns_described import ComputingApart
from cluster_analysis.tables.schema import rows_of

#: A collective with what it is fused with (`MatmulAllReduce`, `AllGatherMatmulV2`, `AlltoAllvGroupedMatMul`)
#: or on cores that compute, and the two halves of a mixture of experts (`MoeDistributeDispatchV2`,
#: `MoeDistributeCombine`, `DispatchFFNCombine`, `CamMoeDispatchNormal`, `NotifyDispatch`).
_FUSED = re.compile(
    r"allreduce|reducescatter|allgather|alltoall"
    r"|distribute(?:dispatch|combine)|(?:moe|cam).*(?:dispatch|combine)|dispatch.*combine"
    r"|(?:notify|normal)dispatch|dispatchlayout|dispatchffn|gmmcombine",
    re.IGNORECASE,
)
#: Kernels that only communicate have a table of their own.
_PURE = re.compile(r"^(?:hcom|hccl|lccl)_", re.IGNORECASE)


def is_fused(op_type: str) -> bool:
    """Return whether a kernel of this type communicates while it computes."""
    plain = op_type.replace("_", "")
    return not _PURE.match(op_type) and bool(_FUSED.search(plain))


def communicate(operators: pa.Table) -> pa.Array:
    """Return which of OPERATORS are fused kernels."""
    names = operators["op_type"].cast(pa.string()).combine_chunks()
    return pc.is_in(names, pa.array(_fused_types(operators), pa.string()))


def communicating(operators: pa.Table, ranks: npt.NDArray[np.int32]) -> pa.Table:
    """Return the fused kernels among the OPERATORS of `ranks`."""
    return operators.filter(pc.and_(communicate(operators), pa.array(np.isin(operators["rank"], ranks))))


def computing_apart(operators: pa.Table) -> pa.Table:
    """Return `ComputingApart` of OPERATORS; no row where no rank has such a kernel.

    Times are sums over all that was recorded, µs, one kernel after the other.
    """
    fused = frozenset(_fused_types(operators))
    if not fused:
        return ComputingApart.schema.empty_table()
    sums: dict[int, list[float]] = {}
    for rank, kind, total_us, n_calls in rows_of(operators, "rank", "op_type", "total_us", "n_calls"):
        own = sums.setdefault(rank, [0.0, 0.0, 0.0])
        own[kind in fused] += total_us or 0.0
        own[2] += (n_calls or 0) if kind in fused else 0
    rows = sorted(sums.items())
    return pa.table(
        {
            "rank": [rank for rank, _ in rows],
            "computing_us": [apart + within for _, (apart, within, _) in rows],
            "fused_us": [within for _, (_, within, _) in rows],
            "apart_us": [apart for _, (apart, _, _) in rows],
            "n_fused": [int(n) for _, (_, _, n) in rows],
        },
        schema=ComputingApart.schema,
    )


def _fused_types(operators: pa.Table) -> list[str]:
    types = operators["op_type"].unique().to_pylist()
    return [one for one in types if one is not None and is_fused(one)]


class KernelCalls(Struct, frozen=True):
    """What ranks (R,) spend in types of kernels (T,), names with the cores that run them; each (R, T).

    0 where a rank has none. `shortest_us` is the shortest call, infinite where none was measured.
    """

    types: Sequence[tuple[str, str]]
    spent_us: FloatArray
    n_calls: FloatArray
    shortest_us: FloatArray

    @property
    def expected_us(self) -> FloatArray:
        """What each rank computes by its number of calls (R,), each the mean call of its type."""
        return np.asarray(self.n_calls @ (self.spent_us.sum(0) / np.maximum(self.n_calls.sum(0), 1.0)))


def kernel_calls(operators: pa.Table, ranks: IntArray) -> KernelCalls:
    """Sum OPERATORS of `ranks`, in order; a type that runs on two kinds of cores is two."""
    operators = operators.filter(pc.invert(communicate(operators)))
    table = operators.filter(pa.array(np.isin(operators["rank"].to_numpy(), ranks)))
    (names, name), (cores, core) = codes(table["op_type"]), codes(table["core_type"])
    both, kind = np.unique(name * len(cores) + core, return_inverse=True)
    row = np.searchsorted(ranks, table["rank"].to_numpy())
    spent, calls = np.zeros((2, len(ranks), len(both)))
    np.add.at(spent, (row, kind), np.nan_to_num(numbers(table["total_us"])))
    np.add.at(calls, (row, kind), np.nan_to_num(numbers(table["n_calls"])))
    shortest_us, least_us = np.full(spent.shape, np.inf), numbers(table["min_us"])
    np.fmin.at(shortest_us, (row, kind), np.where(least_us > 0, least_us, np.nan))  # 0 was not measured
    types = [(names[one // len(cores)], cores[one % len(cores)]) for one in both.tolist()]
    return KernelCalls(types, spent, calls, shortest_us)
