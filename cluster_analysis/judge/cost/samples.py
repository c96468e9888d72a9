"""What part of a loss is real, and what is chance: by its scatter from step to step."""

from __future__ import annotations

import numpy as np

from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.numeric.stats import beyond_chance


def real_part(values: FloatArray, chance: FloatArray) -> float:
    """Which part of values' variance is no chance, by the mean squares of both."""
    return beyond_chance(float(np.mean(np.square(values))), float(np.mean(np.square(chance))))


def profile_of(lost: FloatArray) -> FloatArray:
    """Loss at each place (places,), from (steps, suspects, places): as far as places really differ.

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
