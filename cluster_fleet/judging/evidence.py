"""Evidence of runs on units, as arrays: how far each run scatters, which units are slow since when.

Arrays are (N,): one entry for each run that a unit was in (`Samples`); or (T,) by run, (U,) by unit (devices,
or hosts). Pure: no file, no database.

The test is a CUSUM of log likelihood ratios, each clipped: Huber's robust sequential test (Annals of
Mathematical Statistics 36, 1965). Its exponential over the number of runs is an e-value, as it is less
than the sum of Shiryaev and Roberts; the e-values of a fleet are held against each other by e-BH (Wang and
Ramdas, JRSS B 84, 2022), which controls false discoveries whatever depends on what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, starmap

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating]
IntArray = npt.NDArray[np.integer]
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
#: Entries that are worked on at once: they fit into a processor's cache.
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Samples:
    """What each run says of the units that were in it, in the order of the runs.

    Attributes:
        run: (N,) the position of the run, in the order of time, below `n_runs`.
        unit: (N,) the position of the unit, below `n_units`; once in a run.
        values: (N,) how much slower it was than its peers in that run: a logarithm, or a share of a step.
        errors: (N,) what the run itself knows of the value's error; NaN where it does not show it.
    """

    run: IntArray
    unit: IntArray
    values: FloatArray
    errors: FloatArray
    n_runs: int
    n_units: int

    def parts(self) -> Iterator[slice]:
        """Give the entries of each run."""
        return starmap(
            slice,
            pairwise(np.searchsorted(self.run, np.arange(self.n_runs + 1, dtype=self.run.dtype)).tolist()),
        )

    def sums(self, amounts: Callable[[slice], FloatArray | BoolArray]) -> FloatArray:
        """Return the sum by unit (U,) of what `amounts` says of a part of the entries."""
        total = np.zeros(self.n_units)
        for begin in range(0, len(self.unit), _BLOCK):
            part = slice(begin, begin + _BLOCK)
            total += np.bincount(self.unit[part], amounts(part), self.n_units)
        return total

    def of(self, units: IntArray) -> FloatArray:
        """Return the values of some units by run, NaN where a unit was not in it."""
        column = np.full(self.n_units, -1)
        column[units] = np.arange(len(units))
        at = column[self.unit]
        table = np.full((self.n_runs, len(units)), np.nan)
        table[self.run[at >= 0], at[at >= 0]] = self.values[at >= 0]
        return table


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
        slow_times: unit, first run, and the run after its last one, of each slow time.
    """

    n_runs: IntArray
    onset: IntArray
    repaired: IntArray
    n_episodes: IntArray
    first: IntArray
    segment: IntArray
    intermittent: BoolArray
    slow_times: Sequence[tuple[int, int, int]]


def variances(samples: Samples) -> FloatArray:
    """Return the variance of each value (N,) about its unit's own level.

    It is what units of a run scatter by about their own means, or their own error if that is clearly more.
    """
    pooled: FloatArray = np.ones(samples.n_runs)
    # At first all runs count alike; then the quiet ones say what a unit's own level is.
    for _ in range(2):
        pooled = _by_run(samples, pooled)
    of_run = pooled.astype(samples.values.dtype)[samples.run]
    variance = samples.errors**2
    # Of few steps an error is known badly: a unit's own counts where chance would hardly make it so large.
    np.copyto(variance, of_run, where=~(variance > _CLEARLY * of_run))
    return variance


def _by_run(samples: Samples, variance: FloatArray) -> FloatArray:
    """Return the variance of each run (T,) about levels that weigh the runs by an older `variance` (T,)."""
    weights = 1 / variance
    total = samples.sums(lambda part: weights[samples.run[part]])
    level = samples.sums(lambda part: weights[samples.run[part]] * samples.values[part])
    level /= np.maximum(total, 1e-30)
    by_run, n_by_run = np.zeros(len(variance)), np.zeros(len(variance), np.int64)
    for run, part in enumerate(samples.parts()):
        weight, values, totals = weights[run], samples.values[part], total[samples.unit[part]]
        inside = np.flatnonzero(totals > weight * (1 + 1e-6))
        n_by_run[run] = len(inside)
        if len(inside):
            inside = inside[:: len(inside) // _ENOUGH + 1]
            away = np.abs(values[inside] - level[samples.unit[part][inside]])
            # A level that the value itself is part of lies nearer to it.
            by_run[run] = _MAD * np.median(away / np.sqrt(1 - weight / totals[inside]))
    usual = float(np.median(by_run[n_by_run > 0])) if n_by_run.any() else 0.0
    pooled = (_LEAN * usual**2 + n_by_run * by_run**2) / (_LEAN + n_by_run)
    return np.asarray(np.maximum(pooled, _LEAST_SIGMA**2))


def courses(samples: Samples, variance: FloatArray, effect: Effect, n_fleet: int) -> Course:
    """Follow each unit through all runs: healthy, slow since, repaired on.

    `n_fleet` is of how many units these were taken because they looked slow; 0 for none but these.
    """
    n_units = samples.n_units
    hit = float(np.log(_INTERMITTENT_SHARE / _ACCIDENTS))
    miss = float(np.log((1 - _INTERMITTENT_SHARE) / (1 - _ACCIDENTS)))
    # Evidence against a unit's present state: of a healthy one that it is slow, of a slow one that it is
    # healthy.
    evidence, often = np.zeros((2, n_units))
    begin, seen, episodes = np.zeros((3, n_units), np.int64)
    onset, repaired, first = np.full((3, n_units), -1, np.int64)
    is_slow, times = np.zeros(n_units, bool), list[tuple[int, int, int]]()
    fleet = float(np.log(max(n_fleet, n_units, 1) / FALSE_SHARE))
    for run, part in enumerate(samples.parts()):
        here = samples.unit[part]
        away = samples.values[part] - effect.middle
        gain = np.clip((effect.slow - effect.healthy) * away / variance[part], -CLIP, CLIP)
        is_hit = away > _HIT_SIGMAS * np.sqrt(variance[part])
        often[here] = np.maximum(often[here], 0) + np.where(is_hit, hit, miss)
        seen[here] += 1
        first[here[first[here] < 0]] = run
        # It begins anew wherever there is no evidence.
        begin[here[evidence[here] <= 0]] = run
        evidence[here] = np.maximum(evidence[here], 0) + np.where(is_slow[here], -gain, gain)
        # e-BH by turns: as many as are named already share the allowance for mistakes.
        of_fleet = fleet - float(np.log(is_slow.sum() + 1))
        some = np.flatnonzero(evidence >= min(of_fleet, _REPAIRED))
        needed = np.where(is_slow[some], _REPAIRED, of_fleet + np.log(np.maximum(seen[some], 1)))
        for unit in some[evidence[some] >= needed].tolist():
            if is_slow[unit]:
                times.append((unit, onset[unit], begin[unit]))
                onset[unit], repaired[unit] = -1, begin[unit]
            else:
                onset[unit], episodes[unit] = begin[unit], episodes[unit] + 1
            is_slow[unit] = not is_slow[unit]
            evidence[unit] = 0
            # After one slow time it counts anew; who is slow again has to be healthy for longer.
            most = of_fleet + float(np.log(seen[unit])) + _REPAIRED
            often[unit] = min(often[unit], most) if episodes[unit] > 1 else 0
    times += [(unit, onset[unit], samples.n_runs) for unit in np.flatnonzero(is_slow).tolist()]
    needed = fleet - np.log(is_slow.sum() + 1) + np.log(np.maximum(seen, 1))
    segment = np.maximum(np.where(is_slow, onset, repaired), 0)
    return Course(seen, onset, repaired, episodes, first, segment, ~is_slow & (often >= needed), times)


def levels(
    samples: Samples, variance: FloatArray, segment: IntArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return what each unit is like since `segment` (U,): mean, variance of that, and of how many runs.

    Huber's mean by a few rounds of weights: an accident in one run pulls no more than two deviations. Its
    variance is what all units show it to be (the sandwich of Huber, Robust Statistics, 1981): the runs' own
    variances are those of single values, whose tails are long.
    """

    is_since = samples.run >= segment.astype(samples.run.dtype)[samples.unit]
    weight = np.where(is_since, 1 / variance, 0)

    def near(part: slice) -> FloatArray:
        z = (samples.values[part] - mean[samples.unit[part]]) / np.sqrt(variance[part])
        return np.clip(np.where(is_since[part], z, 0), -_HUBER, _HUBER)

    n = samples.sums(lambda part: is_since[part]).astype(np.int64)
    total = samples.sums(lambda part: weight[part])
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = samples.sums(lambda part: weight[part] * samples.values[part]) / total
        for _ in range(_ROUNDS):
            mean = (
                mean + samples.sums(lambda part: weight[part] * near(part) * np.sqrt(variance[part])) / total
            )
        pulled = samples.sums(lambda part: near(part) ** 2).sum()
        n_near = n.sum() - samples.sums(lambda part: np.abs(near(part)) >= _HUBER).sum()
        share = (n_near + _LEAN) / (n.sum() + _LEAN)
        return mean, 1 / total * (pulled + _LEAN) / (np.maximum(n - 1, 0).sum() + _LEAN) / share**2, n
