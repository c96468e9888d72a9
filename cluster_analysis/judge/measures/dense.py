"""What ranks compute outside of experts, where how many tokens an expert got makes no difference.

Tokens go to their experts in one all-to-all and come back in the next. What is computed between the two
follows the experts' load; everything else of a step is the same work on all ranks of a role.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import rows_at, stable_order
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
    is_exchange = _exchanges(graph, expert_groups) & ~graph.is_side
    if not is_exchange.any():
        return None
    outside_us = np.where(_between_exchanges(graph, is_exchange) | graph.is_side, 0.0, graph.gap_us)
    whole, dense, pairs = (
        rows_at(ranks, graph.ranks, by_rank, 0.0)
        for by_rank in (graph.main_gaps_us, graph.sum_by_cell(outside_us), graph.sum_by_cell(is_exchange))
    )
    idle = np.nan_to_num(preparing_us) + np.nan_to_num(free_us) * (dense / np.maximum(whole, 1e-9))
    is_told = (pairs > 0) & (pairs % 2 == 0) & (dense > idle)
    local_us = computing_us + np.nan_to_num(free_us) + np.nan_to_num(preparing_us)
    holds_waiting = whole > (1.0 + TOLERANCE_SHARE) * local_us
    is_paused = free_us - group_medians(free_us, role) > TOLERANCE_SHARE * computing_us
    return np.where(is_told & ~holds_waiting & ~is_paused, dense - idle, np.nan)


def _between_exchanges(graph: Graph, is_exchange: BoolArray) -> BoolArray:
    """Instances (V,) after an odd number of exchanges of their rank's step: tokens are with their experts."""
    order = stable_order(graph.cell)
    cell = graph.cell[order]
    before: IntArray = np.cumsum(is_exchange[order]) - is_exchange[order]
    found = np.empty(len(cell), bool)
    found[order] = (before - before[np.searchsorted(cell, cell)]) % 2 == 1
    return found


def _exchanges(graph: Graph, expert_groups: Collection[str]) -> BoolArray:
    """Instances (V,) that send tokens to experts or fetch them."""
    is_expert = np.array([name in expert_groups for name in graph.groups], bool)
    is_all_to_all = np.array(["alltoall" in name.lower() for name in graph.types], bool)
    operator = is_expert[graph.operator_group] & is_all_to_all[graph.operator_type]
    return np.asarray(operator[graph.operator])
