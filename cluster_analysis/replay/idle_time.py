"""Idle time beside calls: the totals count it as communication, the chain of what a rank does holds it."""

from __future__ import annotations

import numpy as np

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.replay.replay import Graph
from cluster_analysis.trace.streams.points import POINT


def whole_idle_us(
    graph: Graph, ranks: IntArray, busy_us: FloatArray, idle_us: FloatArray, role: IntArray
) -> FloatArray:
    """Return the idle time of each rank and step (R, S), with what lies beside calls where that is known.

    It is known where computing was told apart from calls: what a rank does from the begin of its step to its
    last call is then computing or idle time. Ranks of a role are told one way, or else they could not be
    compared.

    Args:
        graph: the job's operators.
        ranks: the ranks of the rows, sorted.
        busy_us: what each rank computes and prepares.
        idle_us: what the totals call idle.
        role: ranks that do the same work (R,).
    """
    if POINT not in graph.types or idle_us.shape[1] != graph.n_steps:
        return idle_us
    is_point = (graph.operator_type == graph.types.index(POINT))[graph.operator]
    chain = graph.main_gaps_us
    has_points = np.bincount(graph.cell, is_point, chain.size).reshape(chain.shape) > 0
    whole = np.full(idle_us.shape, np.nan)
    known = np.isin(ranks, graph.ranks)
    at = np.searchsorted(graph.ranks, ranks[known])
    whole[known] = np.where(has_points[at], chain[at] - busy_us[known], np.nan)
    found = idle_us.copy()
    for one in np.unique(role).tolist():
        inside = role == one
        if np.isfinite(whole[inside]).all():
            found[inside] = np.fmax(idle_us[inside], whole[inside])
    return found
