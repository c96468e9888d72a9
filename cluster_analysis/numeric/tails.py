"""How probable a value as large is by chance: upper tails, from SciPy.

A module of its own: SciPy takes 0.15 s to import. Only judging needs it, and is imported while others read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import bdtrc, stdtr

from cluster_analysis.numeric.arrays import FloatArray, IntArray


def student_tail(t: FloatArray, df: FloatArray | float) -> FloatArray:
    """P(T > t) of Student's distribution with `df` > 0 degrees of freedom; 1 where `t` is NaN."""
    known = np.nan_to_num(np.asarray(t, np.float64), nan=-np.inf)
    return np.asarray(stdtr(df, -known))


def binomial_tail(events: IntArray | int, trials: IntArray | int, rate: FloatArray | float) -> FloatArray:
    """P(X >= events) for X binomial, with `rate` from 0 to 1 the probability of each of the trials."""
    beyond = bdtrc(np.maximum(events, 1) - 1, trials, np.clip(rate, 0.0, 1.0))
    return np.where(np.greater(events, 0), beyond, 1.0)


def over_looks(chances: Sequence[float], n_looks: int) -> float:
    """P of such `chances` where each unit is tested in `n_looks` ways; the tests not among them say nothing.

    Their harmonic mean, which holds however the tests depend on each other (Wilson, PNAS 2019): one that says
    what the others say is no further look, one that says it alone counts as often as there are tests.
    """
    surprise = sum(1.0 / max(one, 1e-300) for one in chances) + n_looks - len(chances)
    return min(1.0, n_looks / surprise)
