"""Judges each unit of a fleet by the measurements of its runs. Pure: arrays in, arrays out.

A device is compared with its peers in each run, and across runs with zero. The part that all devices of a
host share is the host's: it is judged as a unit of its own, and its slow times are taken from its devices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cluster_fleet.judging.evidence import (
    Course,
    Effect,
    FloatArray,
    IntArray,
    Samples,
    courses,
    levels,
    variances,
)
from cluster_fleet.judging.shrink import shrunk

State = Literal["slow", "intermittent", "repaired", "replaced", "healthy", "unknown"]
#: Sizes that are slow, and that are healthy, by metric: logarithms of times, or shares of a step.
EFFECTS = {
    "compute": Effect(0.01, 0.04),
    "link": Effect(0.10, 0.40),
    "dispatch": Effect(0.01, 0.04),
    "input": Effect(0.01, 0.04),
}


def kind_of(metric: str) -> str:
    """Return `link` of `link:RDMA`."""
    return metric.partition(":")[0]


def effect_of(metric: str) -> Effect | None:
    """Return the effect of a metric; None for one that only explains."""
    return EFFECTS.get(kind_of(metric))


#: Fewer devices of a host say nothing of the host.
_FEWEST = 3
#: With fewer runs no unit is called healthy.
FEWEST_RUNS = 3


@dataclass(frozen=True)
class Judged:
    """What is said of units (U,): the likely `level`, both ends of its interval in 95 %, and the course.

    `n_now` is the number of runs since the last change.
    """

    effect: Effect
    level: FloatArray
    low: FloatArray
    high: FloatArray
    n_now: IntArray
    course: Course

    def state(self, unit: int) -> State:
        """Return what a unit is; `unknown` with too few runs to say anything."""
        if self.course.onset[unit] >= 0:
            return "slow"
        if self.course.intermittent[unit]:
            return "intermittent"
        if self.course.n_runs[unit] < FEWEST_RUNS:
            return "unknown"
        # A level clearly between is neither: more runs will tell.
        if self.low[unit] > self.effect.healthy:
            return "unknown"
        return "repaired" if self.course.repaired[unit] >= 0 else "healthy"

    def is_born_slow(self, unit: int) -> bool:
        """Whether it was slow from its first runs on; what was healthy before has turned slow."""
        onset, first = self.course.onset[unit], self.course.first[unit]
        return bool(onset >= 0 and self.course.n_runs[unit] - self.n_now[unit] < 2 and onset >= first)

    @property
    def named(self) -> IntArray:
        """Units that are slow, always or intermittently, the slowest first."""
        found = np.flatnonzero((self.course.onset >= 0) | self.course.intermittent)
        return found[np.argsort(-self.level[found], kind="stable")]


def judge(samples: Samples, effect: Effect, host: IntArray | None = None) -> tuple[Judged, Judged, IntArray]:
    """Judge devices and, with `host` (U,), the hosts that they share; -1 is no host.

    Args:
        samples: how much slower than its peers each unit was in each run.
        effect: what is looked for.
        host: the host of each unit (U,), a number.

    Returns:
        Of the units, and of the hosts that may share something with their devices, with which they are.
    """
    variance = variances(samples)
    of_units = _judged(samples, variance, effect)
    host = np.full(samples.n_units, -1) if host is None else host
    hosts = _candidates(of_units, host, effect)
    series, count = _host_series(samples, host, hosts)
    # The least of a run is what all of its units scatter by; the middle of n scatters by pi / 2n of that.
    usual = np.array([variance[part].min(initial=np.inf) for part in samples.parts()])
    n_hosts = len(np.unique(host[host >= 0]))
    of_hosts = _judged(series, usual[series.run] * np.pi / 2 / count, effect, n_hosts)
    if of_hosts.course.slow_times:
        shared = np.zeros(len(samples.values))
        for at, begin, end in of_hosts.course.slow_times:
            during = np.zeros(samples.n_runs)
            named = (series.unit == at) & (series.run >= begin) & (series.run < end)
            during[series.run[named]] = series.values[named]
            shared += np.where(host[samples.unit] == hosts[at], during[samples.run], 0)
        of_units = _judged(replace(samples, values=samples.values - shared), variance, effect)
    return of_units, of_hosts, hosts


def _judged(samples: Samples, variance: FloatArray, effect: Effect, n_fleet: int = 0) -> Judged:
    course = courses(samples, variance, effect, n_fleet)
    mean, error, n_now = levels(samples, variance, course.segment)
    # Intermittently slow: what its runs scatter by is more than what a run scatters by.
    n = np.maximum(course.n_runs, 1)
    over_all = samples.sums(lambda part: samples.values[part]) / n
    scatter = samples.sums(lambda part: (samples.values[part] - over_all[samples.unit[part]]) ** 2) / n
    mean = np.where(course.intermittent, over_all, mean)
    error = np.where(course.intermittent, scatter / n, error)
    level, low, high = shrunk(mean, error, effect.slow)
    return Judged(effect, level, low, high, n_now, course)


def _candidates(of_units: Judged, host: IntArray, effect: Effect) -> IntArray:
    """Hosts half of whose devices have been slow, or may be: only these may share a cause."""
    known = (host >= 0) & np.isfinite(of_units.level)
    may_be = known & ((of_units.course.n_episodes > 0) | (of_units.level > effect.healthy))
    n = np.bincount(host[known])
    return np.flatnonzero((n >= _FEWEST) & (2 * np.bincount(host[may_be], minlength=len(n)) >= n))


def _host_series(samples: Samples, host: IntArray, hosts: IntArray) -> tuple[Samples, IntArray]:
    """Return the middle of each of the hosts' devices by run, where enough are there, and how many are."""
    place = np.full(int(host.max(initial=-1)) + 2, -1)
    place[hosts] = np.arange(len(hosts))
    of = place[host[samples.unit]]
    own = np.flatnonzero(of >= 0)
    own = own[np.lexsort((samples.values[own], of[own], samples.run[own]))]
    _, begin, count = np.unique(
        samples.run[own] * np.int64(len(hosts)) + of[own], return_index=True, return_counts=True
    )
    begin, count = begin[count >= _FEWEST], count[count >= _FEWEST]
    low, high = own[begin + (count - 1) // 2], own[begin + count // 2]
    middle = (samples.values[low] + samples.values[high]) / 2
    unknown = np.full(len(middle), np.nan)
    return Samples(samples.run[low], of[low], middle, unknown, samples.n_runs, len(hosts)), count
