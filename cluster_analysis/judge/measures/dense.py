"""Computing time outside of experts, which does not depend on the number of tokens an expert got.

Tokens go to their experts in one all-to-all and come back in the next. Computing between the two
follows the experts' load. The rest of a step is the same work on all ranks of a role.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.sorting import rows_at
from cluster_analysis.numeric.stats import group_medians
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.common import TOLERANCE_SHARE
from cluster_analysis.trace.calls import moves_tokens


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
    of_experts = np.array([name in expert_groups for name in graph.groups], bool)[graph.operator_group]
    of_experts &= np.array([moves_tokens(name) for name in graph.types], bool)[graph.operator_type]
    is_exchange = of_experts[graph.operator] & ~graph.is_side
    if not is_exchange.any():
        return None
    n_before: IntArray = np.cumsum(is_exchange) - is_exchange
    first = graph.cell_begin[graph.step * len(graph.ranks) + graph.rank]
    # After an odd number of exchanges of their rank's step tokens are with their experts.
    is_inside = (n_before - n_before[first]) % 2 == 1
    outside_us = np.where(is_inside | graph.is_side, 0.0, graph.gap_us)
    whole, dense, pairs = (
        rows_at(ranks, graph.ranks, by_rank, 0.0)
        for by_rank in (graph.main_gaps_us, graph.sum_by_cell(outside_us), graph.sum_by_cell(is_exchange))
    )
    idle_us = np.nan_to_num(preparing_us) + np.nan_to_num(free_us) * (dense / np.maximum(whole, 1e-9))
    local_us = computing_us + np.nan_to_num(free_us) + np.nan_to_num(preparing_us)
    is_known = (pairs > 0) & (pairs % 2 == 0) & (dense > idle_us)
    is_known &= whole <= (1.0 + TOLERANCE_SHARE) * local_us
    is_known &= free_us - group_medians(free_us, role) <= TOLERANCE_SHARE * computing_us
    return np.where(is_known, dense - idle_us, np.nan)
