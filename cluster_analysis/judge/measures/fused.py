"""Waiting inside kernels that communicate: they count as computing, and no call of theirs is recorded.

Matrix products that gather or scatter, and the dispatch and combination of tokens (MC2), last until the last
rank has come. As of collectives, the shortest of the ranks that do the same work is the transfer.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.tables.fused import is_fused
from cluster_analysis.trace.calls import numbers


def communicate(operators: pa.Table) -> pa.Array:
    """Return which of OPERATORS are kernels that communicate inside."""
    names = operators["op_type"].cast(pa.string()).combine_chunks()
    fused = [one for one in pc.unique(names).to_pylist() if one is not None and is_fused(one)]
    return pc.is_in(names, pa.array(fused, pa.string()))


def waited_inside_us(
    operators: pa.Table, ranks: IntArray, role: IntArray, computing_us: FloatArray
) -> FloatArray | None:
    """Return how long each rank waited inside such kernels in each step (R, S); None without any.

    Statistics sum over all steps: a rank's waiting is dealt to its steps as its computing is.
    """
    table = operators.filter(pc.and_(communicate(operators), pa.array(np.isin(operators["rank"], ranks))))
    if not table.num_rows:
        return None
    spent_us = np.zeros((len(ranks), 1))
    np.add.at(
        spent_us[:, 0], np.searchsorted(ranks, table["rank"]), np.nan_to_num(numbers(table["total_us"]))
    )
    shortest = np.full(spent_us.shape, np.inf)
    for one in np.unique(role):
        shortest[role == one] = spent_us[role == one].min()
    share = (spent_us - shortest) / np.maximum(np.nansum(computing_us, axis=1, keepdims=True), 1.0)
    return np.asarray(np.clip(share, 0.0, 1.0) * computing_us)


def unnamed_share(operators: pa.Table, ranks: IntArray, steps_us: float) -> float:
    """Return what the typical rank spends in such kernels beyond its quickest ones, as a share of all steps.

    Each rank waits for another one at another time, so that totals name nobody.
    """
    table = operators.filter(pc.and_(communicate(operators), pa.array(np.isin(operators["rank"], ranks))))
    total, calls, least = (numbers(table[name]) for name in ("total_us", "n_calls", "min_us"))
    beyond = np.zeros(len(ranks))
    np.add.at(beyond, np.searchsorted(ranks, table["rank"]), np.nan_to_num(total - calls * least))
    return float(np.median(beyond)) / max(steps_us, 1.0)
