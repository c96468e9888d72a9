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
from cluster_analysis.numeric.stats import group_medians
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

    0 where a rank has none. `shortest_us` and `longest_us` are its calls', NaN where none was measured.
    """

    types: Sequence[tuple[str, str]]
    spent_us: FloatArray
    n_calls: FloatArray
    shortest_us: FloatArray
    longest_us: FloatArray

    def of_other_calls_us(self, role: IntArray) -> FloatArray:
        """Return what calls take that most of a rank's `role` (R,) do not make, less what it lacks (R, T).

        None takes longer than the longest; a slow device is slow in its shortest calls, too.
        """
        slower = np.log(self.shortest_us) - group_medians(np.log(self.shortest_us), role)
        spent_us = self.spent_us / np.exp(np.fmax(slower, 0.0))
        n_other = np.abs(self.n_calls - group_medians(self.n_calls, role))
        most_us = n_other * np.fmax(self.longest_us, self.spent_us / np.maximum(self.n_calls, 1.0))
        return np.nan_to_num(np.clip(spent_us - group_medians(spent_us, role), -most_us, most_us))

    def longer_by_calls(self, role: IntArray) -> FloatArray:
        """How much longer ranks compute by calls that most of their `role` (R,) do not make: logarithms."""
        total_us = group_medians(self.spent_us, role).sum(axis=1)
        share = self.of_other_calls_us(role).sum(axis=1) / np.where(total_us > 0, total_us, np.inf)
        return np.asarray(np.log1p(share), np.float64)


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
    shortest_us, longest_us = np.full((2, *spent.shape), np.nan)
    for found_us, column, extreme in ((shortest_us, "min_us", np.fmin), (longest_us, "max_us", np.fmax)):
        own_us = numbers(table[column])
        extreme.at(found_us, (row, kind), np.where(own_us > 0, own_us, np.nan))  # 0 was not measured
    types = [(names[one // len(cores)], cores[one % len(cores)]) for one in both.tolist()]
    return KernelCalls(types, spent, calls, shortest_us, longest_us)
