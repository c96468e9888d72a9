"""Empirical Bayes: what is likely of a unit by its own runs and by all others of the fleet.

Healthy units lie about zero, narrowly; few are anywhere. The mixture of both is learned from the fleet (two
normal components of Stephens' adaptive shrinkage, Biostatistics 18, 2017), so that a unit of two runs is
pulled to the others, and one that is slow in thirty is not.
"""

from __future__ import annotations

import math

import numpy as np

from cluster_fleet.judging.evidence import FloatArray

_ROUNDS = 30
_HALVINGS = 30
#: The widths of the wide component as multiples of what is looked for; of the narrow one, at least a share.
_WIDE, _NARROW = 1.5, 0.01
#: As likely before anything is seen (a worker's fault explains few slow jobs), and worth as many units.
_PRIOR_SHARE, _PRIOR_UNITS = 0.02, 50.0
_TAIL = 0.025
#: The normal distribution function as a table, exact to 1e-6: SciPy's takes longer to import than the rest.
_SIGMAS = np.linspace(-8, 8, 4001)
_BELOW = np.array([math.erfc(-one / math.sqrt(2)) / 2 for one in _SIGMAS.tolist()])


def shrunk(mean: FloatArray, variance: FloatArray, slow: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the likely level of each unit (U,), and both ends of the interval that holds it in 95 %.

    Args:
        mean: of its own runs (U,), NaN for none.
        variance: of that mean (U,).
        slow: the effect that is looked for.
    """
    known = np.isfinite(mean)
    own, noise = mean[known], variance[known]
    narrow, wide, share = (_NARROW * slow) ** 2, (_WIDE * slow) ** 2, _PRIOR_SHARE
    centre = float(np.median(own)) if len(own) else 0.0
    is_wide = np.zeros(len(own))
    for _ in range(_ROUNDS if len(own) else 0):
        as_healthy = _density(own - centre, noise + narrow) * (1 - share)
        as_slow = _density(own - centre, noise + wide) * share
        is_wide = as_slow / (as_healthy + as_slow)
        weight = (1 - is_wide) / (noise + narrow) ** 2
        # Moments of those that are healthy: their scatter beyond what their runs scatter.
        found = float(np.sum(weight * ((own - centre) ** 2 - noise)) / max(float(weight.sum()), 1e-300))
        narrow = max(found, (_NARROW * slow) ** 2)
        share = (float(is_wide.sum()) + _PRIOR_SHARE * _PRIOR_UNITS) / (len(own) + _PRIOR_UNITS)
    pulls = [spread / (spread + noise) for spread in (narrow, wide)]
    centres = np.stack([centre + pull * (own - centre) for pull in pulls])
    sigmas = np.stack([np.sqrt(pull * noise) for pull in pulls])
    weights = np.stack([1 - is_wide, is_wide])
    level, low, high = np.full((3, len(mean)), np.nan)
    level[known] = (weights * centres).sum(0)
    low[known] = _quantile(centres, sigmas, weights, _TAIL)
    high[known] = _quantile(centres, sigmas, weights, 1 - _TAIL)
    return level, low, high


def _density(away: FloatArray, variance: FloatArray) -> FloatArray:
    # Not below what a float can hold: a unit a hundred sigmas out is still either.
    exponent = np.maximum(-(away**2) / (2 * variance), -700.0)
    return np.asarray(np.exp(exponent) / np.sqrt(variance))


def _quantile(centres: FloatArray, sigmas: FloatArray, weights: FloatArray, share: float) -> FloatArray:
    """Return the quantile of mixtures (2, U) of normal distributions, by halving (U,)."""
    low, high = (centres - 9 * sigmas).min(0), (centres + 9 * sigmas).max(0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = np.interp((middle - centres) / np.maximum(sigmas, 1e-12), _SIGMAS, _BELOW)
        is_below = (weights * below).sum(0) < share
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return np.asarray((low + high) / 2)
