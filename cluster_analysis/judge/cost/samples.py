"""What uneven work makes longer, place by place: each micro-batch and each expert waits for the longest."""

from __future__ import annotations

import numpy as np

from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.sorting import distinct
from cluster_analysis.numeric.stats import beyond_chance, median, sigma
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.common import CLEAR_SIGMAS, FAR_SIGMAS, TWICE


def of_work_us(view: JobView, graph: Graph, *, lasts: bool) -> FloatArray:
    """Return how much longer each gap (V,) is for its work than the peers' mean, less than 0 if shorter.

    Samples differ from micro-batch to micro-batch, so that each place waits for another one. What TP/CP peers
    have in common is the sample's, but for what a rank takes longer in all steps, if that is no chance: it is
    its own, or what its experts get (`lasts`). NaN where peers do not tell.
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
            steady = np.nan_to_num(more).mean(axis=0)
            if lasts:
                more = np.broadcast_to(steady, more.shape)
            else:
                by_step = np.nan_to_num(more).sum(axis=2)
                chance = float(by_step.var(axis=0).mean()) / max(len(more) - 1, 1)
                is_own = np.abs(by_step.mean(axis=0)) > CLEAR_SIGMAS * np.sqrt(chance)
                more -= np.where(is_own[:, None], steady, 0.0)
            own = more[:, distinct(view.sample[ranks])[1]]
            told &= np.isfinite(own)
            found[at[told]] = own[told]
    return found


def by_sample(values: FloatArray, sample: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return means of ranks with one sample (steps, samples, places), and how far each is from its own."""
    _, code = distinct(sample)
    means = np.stack([values[:, code == one].mean(axis=1) for one in range(int(code.max()) + 1)], axis=1)
    return means, values - means[:, code]


def beyond_samples(
    lost: FloatArray, sample: IntArray, peers_us: FloatArray, of_peers: IntArray
) -> FloatArray:
    """What is lost at each place and step (steps, suspects, places), as far as it varies by itself.

    Samples make gaps of single steps longer, the suspects' as the peers'. So what ranks with one sample lose
    together in a step counts between what the place loses on the whole and what it lost then, as the scatter
    of the peers' samples allows; and how such ranks differ, as their peers' differences allow. Pauses lie
    elsewhere.

    Args:
        lost: how much longer each gap is than the peers'.
        sample: a number for the sample of each suspect.
        peers_us: the gaps of peers (steps, peers, places).
        of_peers: a number for the sample of each peer.
    """
    if (of_peers == sample[:, None]).all():
        return lost
    lost, peers_us = _without_pauses(lost), _without_pauses(peers_us)
    usual = profile_of(lost)
    together, own = by_sample(lost, sample)
    together_of_peers, own_of_peers = by_sample(peers_us, of_peers)
    n = together_of_peers.shape[1]
    if n < 2:
        return np.broadcast_to(usual, lost.shape)
    rest, code = together - usual, distinct(sample)[1]
    # Of few samples the scatter is known roughly.
    chance = np.sqrt(TWICE * (1.0 + 1.0 / n) * together_of_peers.var(axis=1, ddof=1))
    found: FloatArray = usual + real_part(rest, chance) * rest[:, code]
    return found + real_part(own, own_of_peers) * own


def _without_pauses(gap_us: FloatArray) -> FloatArray:
    """Gaps, or what is lost in them (steps, ranks, places): with a pause, or unknown, as in other steps."""
    typical = median(gap_us, 0)
    typical = np.where(np.isfinite(typical), typical, median(typical, 0))
    beyond = gap_us - typical
    scale = np.maximum(sigma(beyond.reshape(-1, beyond.shape[2]), 0), sigma(beyond))
    return np.where(beyond <= FAR_SIGMAS * scale, gap_us, typical)


def real_part(values: FloatArray, chance: FloatArray) -> float:
    """Which part of values' variance is no chance, by the mean squares of both."""
    return beyond_chance(float(np.mean(np.square(values))), float(np.mean(np.square(chance))))


def profile_of(lost: FloatArray) -> FloatArray:
    """What is lost at each place (places,), by (steps, suspects, places): as far as places really differ.

    Between the mean over steps and the mean of all places as the scatter from step to step allows (empirical
    Bayes): with samples of unequal length the differences of places are chance.
    """
    by_step: FloatArray = lost.mean(axis=1)
    mean: FloatArray = by_step.mean(axis=0)
    n_steps = len(by_step)
    if n_steps < 2:
        return mean
    noise = float(by_step.var(axis=0, ddof=1).mean()) / n_steps
    real = beyond_chance(float(mean.var()), noise)
    profile: FloatArray = mean.mean() + real * (mean - mean.mean())
    return profile
