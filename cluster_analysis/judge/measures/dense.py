"""What ranks compute outside of experts, where how many tokens an expert got makes no difference.

Tokens go to their experts in one all-to-all and come back in the next. What is computed between the two
follows the experts' load; everything else of a step is the same work on all ranks of a role.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import stable_order
from cluster_analysis.numeric.stats import group_medians
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.common import TOLERANCE_SHARE


def dense_us(
    graph: Graph,
    expert_groups: Collection[str],
    ranks: IntArray,
    role: IntArray,
    *,
    computing_us: FloatArray,
    free_us: FloatArray,
    preparing_us: FloatArray,
) -> FloatArray | None:
    """Return what ranks compute outside of experts (R, S); None where there are no exchanges of tokens.

    NaN where a rank's all-to-alls do not come in pairs, where it paused, and where its gaps hold waiting.

    Args:
        graph: the job's operators, of as many steps as the times have.
        expert_groups: the groups of expert parallelism.
        ranks: the ranks to tell it for (R,).
        role: ranks that do the same work (R,).
        computing_us: computing of the whole step (R, S).
        free_us: idle time between operators (R, S), taken to be spread like the gaps.
        preparing_us: idle time before the first one (R, S).
    """
    main = np.flatnonzero(~graph.is_side)
    cell = graph.cell[main]
    order = stable_order(cell)
    instances, cell = main[order], cell[order]
    is_exchange = _exchanges(graph, expert_groups)[instances]
    n_cells = len(graph.ranks) * graph.n_steps
    before: IntArray = np.cumsum(is_exchange) - is_exchange
    begin = np.searchsorted(cell, np.arange(n_cells))
    inside = (before - before[np.minimum(begin, len(before) - 1)][cell]) % 2 == 1
    gap = graph.gap_us[instances]
    shape = (len(graph.ranks), graph.n_steps)
    whole, dense, pairs = (
        np.bincount(cell, weight, n_cells).reshape(shape)
        for weight in (gap, np.where(inside, 0.0, gap), is_exchange.astype(np.float64))
    )
    if not pairs.any():
        return None
    known = np.isin(ranks, graph.ranks)
    row = np.searchsorted(graph.ranks, ranks[known])
    is_paired = (pairs > 0) & (pairs % 2 == 0)
    computing = np.full(free_us.shape, np.nan)
    idle = np.nan_to_num(preparing_us[known]) + np.nan_to_num(free_us[known]) * (
        dense[row] / np.maximum(whole[row], 1e-9)
    )
    computing[known] = np.where(is_paired[row] & (dense[row] > idle), dense[row] - idle, np.nan)
    local_us = computing_us[known] + np.nan_to_num(free_us[known]) + np.nan_to_num(preparing_us[known])
    computing[known] = np.where(whole[row] > (1.0 + TOLERANCE_SHARE) * local_us, np.nan, computing[known])
    is_paused = free_us - group_medians(free_us, role) > TOLERANCE_SHARE * computing_us
    return np.where(is_paused, np.nan, computing)


def _exchanges(graph: Graph, expert_groups: Collection[str]) -> BoolArray:
    """Instances (V,) that send tokens to experts or fetch them."""
    is_expert = np.array([name in expert_groups for name in graph.groups], bool)
    is_all_to_all = np.array(["alltoall" in name.lower() for name in graph.types], bool)
    operator = is_expert[graph.operator_group] & is_all_to_all[graph.operator_type]
    return np.asarray(operator[graph.operator])
