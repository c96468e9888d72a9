"""Evidence of runs on units, as arrays: how far each run scatters, which units are slow since when.

All arrays are (T, U): T runs in the order of time, U units (devices, or hosts); NaN where a unit was not in a
run. Values are how much slower a unit was than its peers in that run (logarithms, or shares of a step), with
what the run itself knows of its error. Pure: no file, no database.

The test is a CUSUM of log likelihood ratios, each clipped: Huber's robust sequential test (Annals of
Mathematical Statistics 36, 1965). Its exponential over the number of runs is an e-value, as it is less
than the sum of Shiryaev and Roberts; the e-values of a fleet are held against each other by e-BH (Wang and
Ramdas, JRSS B 84, 2022), which controls false discoveries whatever depends on what.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: Median absolute deviation to standard deviation of a normal distribution.
_MAD = 1.4826
#: A run of few units leans on the others by as many.
_LEAN = 10.0
#: Nothing is measured more exactly.
_LEAST_SIGMA = 3e-4
#: No single run counts for more (nats): whatever happened in it, it takes others to confirm.
CLIP = 3.0
#: False among the named, at most.
FALSE_SHARE = 0.01
#: Odds at which a slow unit is taken as repaired, in nats.
_REPAIRED = float(np.log(1000.0))
#: Shares of its runs in which an intermittent unit is slow, and a healthy one at most by accident.
_INTERMITTENT_SHARE, _ACCIDENTS = 0.25, 0.01
#: A run in which a unit lies as many standard deviations above the middle between healthy and slow.
_HIT_SIGMAS = 2.0
_CLEARLY = 9.0
_ROUNDS = 3
_HUBER = 2.0
#: This many units tell the scatter of all units of a run within two percent.
_ENOUGH = 2000
#: Units that are worked on at once: what their runs take fits into a processor's cache.
_BLOCK = 256


@dataclass(frozen=True)
class Effect:
    """What is healthy and what is slow, in the unit of the values.

    A mean up to `healthy` is nothing, one of `slow` is what is looked for; from half way on a unit is named.
    """

    healthy: float
    slow: float

    @property
    def middle(self) -> float:
        """From here on a unit is rather slow than healthy."""
        return (self.healthy + self.slow) / 2


@dataclass(frozen=True)
class Course:
    """The history of each unit (U,): run positions, -1 for none.

    Attributes:
        n_runs: runs that it was in.
        onset: first run of the slow time that lasts now.
        repaired: first run after the last slow time that ended.
        n_episodes: slow times, the present one too.
        first: its first run.
        segment: first run of what it is like now.
        intermittent: whether it is slow in some runs only.
        slow_at: (T, U) the slow times.
    """

    n_runs: IntArray
    onset: IntArray
    repaired: IntArray
    n_episodes: IntArray
    first: IntArray
    segment: IntArray
    intermittent: BoolArray
    slow_at: BoolArray


def variances(values: FloatArray, errors: FloatArray) -> FloatArray:
    """Return the variance of each value (T, U) about its unit's own level.

    It is what units of a run scatter by about their own means, or their own error if that is clearly more.
    """
    pooled: FloatArray = np.ones(len(values))
    # At first all runs count alike; then the quiet ones say what a unit's own level is.
    for _ in range(2):
        pooled = _by_run(values, pooled)
    of_run = pooled[:, None].astype(values.dtype)
    variance = errors**2
    # Of few steps an error is known badly: a unit's own counts where chance would hardly make it so large.
    np.copyto(variance, of_run, where=~(variance > _CLEARLY * of_run))
    return variance


def _by_run(values: FloatArray, variance: FloatArray) -> FloatArray:
    """Return the variance of each run (T,) about levels that weigh the runs by an older `variance` (T,)."""
    total, level = np.zeros((2, values.shape[1]))
    for value, weight in zip(values, 1 / variance, strict=True):
        here = np.isfinite(value)
        total += weight * here
        level += weight * np.where(here, value, 0)
    level /= np.maximum(total, 1e-30)
    by_run, n_by_run = np.zeros(len(values)), np.zeros(len(values), np.int64)
    for run, weight in enumerate(1 / variance):
        inside = np.flatnonzero(np.isfinite(values[run]) & (total > weight * (1 + 1e-6)))
        n_by_run[run] = len(inside)
        if len(inside):
            inside = inside[:: len(inside) // _ENOUGH + 1]
            away = np.abs(values[run, inside] - level[inside])
            # A level that the value itself is part of lies nearer to it.
            by_run[run] = _MAD * np.median(away / np.sqrt(1 - weight / total[inside]))
    usual = float(np.median(by_run[n_by_run > 0])) if n_by_run.any() else 0.0
    pooled = (_LEAN * usual**2 + n_by_run * by_run**2) / (_LEAN + n_by_run)
    return np.asarray(np.maximum(pooled, _LEAST_SIGMA**2))


def courses(values: FloatArray, variance: FloatArray, effect: Effect, n_fleet: int) -> Course:
    """Follow each unit through all runs: healthy, slow since, repaired on.

    `n_fleet` is of how many units these were taken because they looked slow; 0 for none but these.
    """
    n_units = values.shape[1]
    hit = float(np.log(_INTERMITTENT_SHARE / _ACCIDENTS))
    miss = float(np.log((1 - _INTERMITTENT_SHARE) / (1 - _ACCIDENTS)))
    # Evidence against a unit's present state: of a healthy one that it is slow, of a slow one that it is
    # healthy.
    evidence, often = np.zeros((2, n_units))
    begin, seen, episodes = np.zeros((3, n_units), np.int64)
    onset, repaired, first = np.full((3, n_units), -1, np.int64)
    is_slow, slow_at = np.zeros(n_units, bool), np.zeros(values.shape, bool)
    fleet = float(np.log(max(n_fleet, n_units, 1) / FALSE_SHARE))
    for run in range(len(values)):
        here = np.isfinite(values[run])
        away = np.where(here, values[run] - effect.middle, 0)
        gain = np.clip((effect.slow - effect.healthy) * away / variance[run], -CLIP, CLIP)
        is_hit = away > _HIT_SIGMAS * np.sqrt(variance[run])
        often = np.maximum(often, 0) + np.where(here, np.where(is_hit, hit, miss), 0)
        seen += here
        first = np.where(here & (first < 0), run, first)
        # It begins anew wherever there is no evidence.
        begin = np.where(here & (evidence <= 0), run, begin)
        evidence = np.maximum(evidence, 0) + np.where(is_slow, -gain, gain)
        # e-BH by turns: as many as are named already share the allowance for mistakes.
        of_fleet = fleet - float(np.log(is_slow.sum() + 1))
        some = np.flatnonzero(evidence >= min(of_fleet, _REPAIRED))
        needed = np.where(is_slow[some], _REPAIRED, of_fleet + np.log(np.maximum(seen[some], 1)))
        for unit in some[evidence[some] >= needed].tolist():
            if is_slow[unit]:
                slow_at[onset[unit] : begin[unit], unit] = True
                onset[unit], repaired[unit] = -1, begin[unit]
            else:
                onset[unit], episodes[unit] = begin[unit], episodes[unit] + 1
            is_slow[unit] = not is_slow[unit]
            evidence[unit] = 0
            # After one slow time it counts anew; who is slow again has to be healthy for longer.
            most = of_fleet + float(np.log(seen[unit])) + _REPAIRED
            often[unit] = min(often[unit], most) if episodes[unit] > 1 else 0
    for unit in np.flatnonzero(is_slow).tolist():
        slow_at[onset[unit] :, unit] = True
    needed = fleet - np.log(is_slow.sum() + 1) + np.log(np.maximum(seen, 1))
    segment = np.maximum(np.where(is_slow, onset, repaired), 0)
    return Course(seen, onset, repaired, episodes, first, segment, ~is_slow & (often >= needed), slow_at)


def levels(
    values: FloatArray, variance: FloatArray, segment: IntArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return what each unit is like since `segment` (U,): mean, variance of that, and of how many runs.

    Huber's mean by a few rounds of weights: an accident in one run pulls no more than two deviations. Its
    variance is what all units show it to be (the sandwich of Huber, Robust Statistics, 1981): the runs' own
    variances are those of single values, whose tails are long.
    """
    n_units = values.shape[1]
    mean, error = np.full((2, n_units), np.nan)
    sums = np.zeros(3)
    n = np.zeros(n_units, np.int64)
    for begin in range(0, n_units, _BLOCK):
        part = slice(begin, begin + _BLOCK)
        mean[part], error[part], n[part], pulls = _levels(values[:, part], variance[:, part], segment[part])
        sums += pulls
    pulled, n_free, n_near = sums
    near = (n_near + _LEAN) / (float(n.sum()) + _LEAN)
    return mean, error * (pulled + _LEAN) / (n_free + _LEAN) / near**2, n


def _levels(
    values: FloatArray, variance: FloatArray, segment: IntArray
) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
    inside = np.isfinite(values) & (np.arange(len(values))[:, None] >= segment)
    weight = np.where(inside, 1 / variance, 0)
    filled, far = np.where(inside, values, 0), _HUBER * np.sqrt(variance)
    total = weight.sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (weight * filled).sum(0) / total
        for _ in range(_ROUNDS):
            pulled = np.clip(filled - mean, -far, far)
            mean = mean + (weight * pulled).sum(0) / total
        n, z = inside.sum(0), np.abs(np.where(inside, (filled - mean) / np.sqrt(variance), 0))
        sums = [(np.minimum(z, _HUBER) ** 2).sum(), np.maximum(n - 1, 0).sum(), (inside & (z < _HUBER)).sum()]
        return mean, 1 / total, n, np.array(sums, float)
