"""How much waiting a replay only copies: no repair makes it shorter, so that costs may be too low."""

from __future__ import annotations

import numpy as np

from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray
from cluster_analysis.numeric.sorting import combined, half_octaves, rows_at
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.replay import GAP_TOLERANCE, QUICK_QUANTILE


def copied_waiting_share(view: JobView, graph: Graph) -> float:
    """Return the share of all waiting that the replay of `graph` takes as it was; 0 where nobody waits.

    Waiting is copied in messages whose other end is not known, which last as long as they did, and in gaps
    that are longer than all that their rank did itself. The rest follows from who comes late.
    """
    waited = graph.waits_us
    is_lone = graph.is_p2p & (graph.sender == len(graph.rank)) & (graph.receiver == len(graph.rank))
    copied_us = float(waited[is_lone].sum()) + _of_lone_messages(graph, is_lone) + _of_gaps(view, graph)
    followed_us = float(waited[~is_lone].sum())
    return copied_us / (copied_us + followed_us) if copied_us > 0 else 0.0


def _of_lone_messages(graph: Graph, is_lone: BoolArray) -> float:
    """µs by which lone messages' transfers exceed those of the quick ones of their kind and size."""
    if not is_lone.any():
        return 0.0
    at = np.flatnonzero(graph.is_p2p)
    operator, lone = graph.operator[at], is_lone[at]
    lasted: FloatArray = graph.transfer_us[operator]
    _, alike = combined(graph.operator_type[operator], half_octaves(graph.operator_bytes[operator]))
    longer = 0.0
    for one in np.unique(alike[lone]):
        same = alike == one
        quick = float(np.quantile(lasted[same], QUICK_QUANTILE))
        longer += float(np.maximum(lasted[same & lone] - quick, 0.0).sum())
    return longer


def _of_gaps(view: JobView, graph: Graph) -> float:
    """µs by which the gaps of main streams exceed what their ranks computed and idled."""
    if view.local_us.shape[1] != graph.n_steps:
        return 0.0
    gaps = graph.main_gaps_us
    own = rows_at(graph.ranks, view.ranks, view.local_us, np.nan)
    return float(np.where(gaps > (1.0 + GAP_TOLERANCE) * own, gaps - own, 0.0).sum())
