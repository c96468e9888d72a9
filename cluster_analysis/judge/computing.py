"""What the totals of computing hold besides a rank's own work: its experts' load, and waiting inside kernels.

Tokens go to their experts in one all-to-all and come back in the next. Computing between the two
follows the experts' load. The rest of a step is the same work on all ranks of a role.

Fused kernels communicate while they compute (matrix products that gather or scatter, the dispatch and
combination of tokens; MC2). They have no record of a call. They last until the last rank has come. As
with collectives, the shortest time of the ranks that do the same work is the transfer.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray, numbers
from cluster_analysis.numeric.sorting import begins, combined, places_in_runs, rows_at
from cluster_analysis.numeric.stats import group_medians
from cluster_analysis.replay.replay import Graph
from cluster_analysis.tables.operations import record_of
from cluster_analysis.thresholds.common import TOLERANCE_SHARE


def dense_us(
    graph: Graph, expert_groups: Collection[str], ranks: IntArray, role: IntArray, *,
    computing_us: FloatArray, free_us: FloatArray, preparing_us: FloatArray,
) -> FloatArray | None:  # fmt: skip
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
    is_exchange, is_inside = exchanges_of(graph, expert_groups)
    if not is_exchange.any():
        return None
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


def exchanges_of(graph: Graph, expert_groups: Collection[str]) -> tuple[BoolArray, BoolArray]:
    """Which calls (V,) of the main stream exchange tokens, and which gaps lie between two such: experts work.

    After an odd number of exchanges of a group in their rank's step tokens are with its experts; where they
    go to a host first, and then to its ranks, the exchanges of one group lie between those of another.
    """
    of_experts = np.array([name in expert_groups for name in graph.groups], bool)[graph.operator_group]
    moves_tokens = [record_of(name).moves == "tokens" for name in graph.types]
    of_experts &= np.array(moves_tokens, bool)[graph.operator_type]
    is_exchange = of_experts[graph.operator] & ~graph.is_side
    at = np.flatnonzero(is_exchange)
    of_group = combined(graph.cell[at], graph.operator_group[graph.operator[at]])[1]
    order, away = np.argsort(of_group, kind="stable"), np.zeros(len(is_exchange), np.int64)
    away[at[order]] = 1 - 2 * (places_in_runs(begins(of_group[order])) % 2)
    n_away = np.cumsum(away) - away
    first = graph.cell_begin[graph.step * len(graph.ranks) + graph.rank]
    return is_exchange, n_away > n_away[first]


def waited_inside_us(
    fused: pa.Table, ranks: IntArray, role: IntArray, computing_us: FloatArray
) -> FloatArray | None:
    """Return how long each rank waited inside `fused` kernels in each step (R, S); None without any.

    Statistics sum over all steps: a rank's waiting is divided over its steps in proportion to its computing.
    """
    if not fused.num_rows:
        return None
    row = np.searchsorted(ranks, fused["rank"].to_numpy())
    spent_us = np.bincount(row, np.nan_to_num(numbers(fused["total_us"])), len(ranks))
    shortest = np.full(role.max() + 2, np.inf)  # of role -1 the last one
    np.minimum.at(shortest, role, spent_us)
    share = (spent_us - shortest[role]) / np.maximum(np.nansum(computing_us, axis=1), 1.0)
    return np.asarray(np.clip(share, 0.0, 1.0)[:, None] * computing_us)


def unnamed_us(fused: pa.Table, ranks: IntArray) -> FloatArray:
    """Return what each rank spends in `fused` kernels beyond its quickest calls, in all steps together (R,).

    If each rank waits for another one at another time, totals do not show for which.
    """
    total, calls, least = (numbers(fused[name]) for name in ("total_us", "n_calls", "min_us"))
    row = np.searchsorted(ranks, fused["rank"].to_numpy())
    return np.bincount(row, np.nan_to_num(total - calls * least), len(ranks)).astype(np.float64)
