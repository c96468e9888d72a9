"""Idle time during calls: the totals count it as communication, the chain of a rank holds it."""

from __future__ import annotations

import numpy as np

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import rows_at
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.calls import QUIET_SHARE


def whole_idle_us(
    graph: Graph, ranks: IntArray, busy_us: FloatArray, idle_us: FloatArray, role: IntArray
) -> FloatArray:
    """Return the idle time of each rank and step (R, S), including that during calls where known.

    It is known where computing is separated from calls: from the begin of its step to its last call
    a rank then computes or idles. All ranks of a role are measured in the same way, or else they could not
    be compared.

    Args:
        ranks: the ranks of the rows, sorted.
        busy_us: what each rank computes and prepares.
        idle_us: what the totals call idle.
        role: ranks that do the same work (R,).
    """
    if idle_us.shape[1] != graph.n_steps:
        return idle_us
    return _with(idle_us, _chain_idle_us(graph, graph.is_point, ranks, busy_us), role)


def likely_idle_us(
    graph: Graph, ranks: IntArray, busy_us: FloatArray, idle_us: FloatArray, role: IntArray
) -> FloatArray:
    """Return what `whole_idle_us` does, and what is likely where calls are on a second stream.

    There the main stream's gaps hold the idle time during those calls, and in some steps waiting for them. So
    the time in the quietest quarter of a rank's steps counts for all of its steps. It is an estimate:
    `whole_idle_us` says who idles longer than the peers.
    """
    if not graph.is_side.any() or idle_us.shape[1] != graph.n_steps:
        return whole_idle_us(graph, ranks, busy_us, idle_us, role)
    during_calls = idle_during_calls_us(graph, ranks, busy_us, idle_us)
    return _with(idle_us, idle_us + np.quantile(during_calls, QUIET_SHARE, axis=1, keepdims=True), role)


def idle_during_calls_us(
    graph: Graph, ranks: IntArray, busy_us: FloatArray, idle_us: FloatArray
) -> FloatArray:
    """Return each rank's idle time during calls of a second stream, and its waiting for them (R, S)."""
    return _chain_idle_us(graph, graph.is_side, ranks, busy_us) - idle_us


def _chain_idle_us(graph: Graph, tells: BoolArray, ranks: IntArray, busy_us: FloatArray) -> FloatArray:
    """Time of each rank between main calls, less computing (R, S); NaN without an instance."""
    chain = np.where(graph.sum_by_cell(tells) > 0, graph.main_gaps_us, np.nan)
    return rows_at(ranks, graph.ranks, chain, np.nan) - busy_us


def _with(idle_us: FloatArray, whole: FloatArray, role: IntArray) -> FloatArray:
    """The larger of both, in roles all of whose ranks are known: others could not be compared."""
    found = idle_us.copy()
    for one in np.unique(role).tolist():
        inside = role == one
        if np.isfinite(whole[inside]).all():
            found[inside] = np.fmax(idle_us[inside], whole[inside])
    return found
