"""Time that uneven work adds, place by place: each micro-batch and each expert waits for the longest."""

from __future__ import annotations

import numpy as np

from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.numeric.sorting import distinct
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.common import CLEAR_SIGMAS


def of_work_us(view: JobView, graph: Graph, *, lasts: bool) -> FloatArray:
    """Return how much longer each gap (V,) is for its work than the peers' mean, less than 0 if shorter.

    Samples differ from micro-batch to micro-batch, so that each place waits for another one. The common
    part of TP/CP peers belongs to the sample. A significant excess in all steps is the rank's own, or its
    experts' (`lasts`). NaN where peers do not tell.
    """
    found = np.full(len(graph.rank), np.nan)
    assert view.gaps is not None
    for role in np.unique(view.role).tolist():
        ranks = np.flatnonzero(view.role == role)
        for stream in (view.gaps, view.gaps.of_side) if len(ranks) > 1 else ():
            gaps, at = stream.complete(ranks)
            if gaps is None or at is None:
                continue
            since = view.gaps.place[graph.after[at]]
            is_known = (at >= 0) & np.isfinite(gaps) & (since == np.median(since, axis=1, keepdims=True))
            known, sample = np.where(is_known, gaps, np.nan), distinct(view.sample[ranks])[1]
            together = np.stack(
                [known[:, sample == one].mean(axis=1) for one in range(int(sample.max()) + 1)], axis=1
            )
            more = together - np.nansum(together, axis=1, keepdims=True) / np.maximum(
                np.isfinite(together).sum(axis=1, keepdims=True), 1
            )
            steady = np.nan_to_num(more).mean(axis=0)
            if lasts:
                more = np.broadcast_to(steady, more.shape)
            else:
                by_step = np.nan_to_num(more).sum(axis=2)
                varies = by_step.var(axis=0)  # long samples vary more than the middle of all
                chance = np.maximum(varies, varies.mean()) / max(len(more) - 1, 1)
                is_own = np.abs(by_step.mean(axis=0)) > CLEAR_SIGMAS * np.sqrt(chance)
                more -= np.where(is_own[:, None], steady, 0.0)
            own = more[:, sample]
            is_known &= np.isfinite(own)
            found[at[is_known]] = own[is_known]
    return found
