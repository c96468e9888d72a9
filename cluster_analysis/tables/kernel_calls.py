"""Calls of kernels by rank and type, as arrays: OPERATORS without what communicates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from cluster_analysis.numeric.arrays import FloatArray, IntArray, codes, numbers
from cluster_analysis.tables.fused import communicate


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
