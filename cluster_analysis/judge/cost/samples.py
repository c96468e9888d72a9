"""What samples of unequal length make longer, place by place: each micro-batch waits for the longest."""

from __future__ import annotations

import numpy as np

from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.sorting import distinct
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.common import CLEAR_SIGMAS


def of_samples_us(view: JobView, graph: Graph) -> FloatArray:
    """Return how much longer each gap (V,) is for its sample than the peers' mean, less than 0 if shorter.

    Samples differ from micro-batch to micro-batch, so that each place waits for another one. What TP/CP peers
    have in common is the sample's, but for what a rank takes longer in all steps, if that is no chance: it is
    its own. NaN where peers do not tell.
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
            told = (at >= 0) & np.isfinite(gaps) & (since == np.median(since, axis=1, keepdims=True))
            together, _ = by_sample(np.where(told, gaps, np.nan), view.sample[ranks])
            more = together - np.nansum(together, axis=1, keepdims=True) / np.maximum(
                np.isfinite(together).sum(axis=1, keepdims=True), 1
            )
            by_step = np.nan_to_num(more).sum(axis=2)
            chance = float(by_step.var(axis=0).mean()) / max(len(more) - 1, 1)
            is_own = np.abs(by_step.mean(axis=0)) > CLEAR_SIGMAS * np.sqrt(chance)
            more -= np.where(is_own[:, None], np.nan_to_num(more).mean(axis=0), 0.0)
            own = more[:, distinct(view.sample[ranks])[1]]
            told &= np.isfinite(own)
            found[at[told]] = own[told]
    return found


def by_sample(values: FloatArray, sample: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return means of ranks with one sample (steps, samples, places), and how far each is from its own."""
    _, code = distinct(sample)
    means = np.stack([values[:, code == one].mean(axis=1) for one in range(int(code.max()) + 1)], axis=1)
    return means, values - means[:, code]
