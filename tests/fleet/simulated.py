"""A fleet with known faults, told as what each job measures. Shares nothing with what judges."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cluster_fleet.judging.evidence import Samples

Array = npt.NDArray[np.float64]
MONTH_DAYS = 30.0


@dataclass
class SimulatedFleet:
    """What jobs measured (T, U) with the truth: levels (T, U), and which devices have which fault."""

    days: Array
    host: npt.NDArray[np.int64]
    values: Array
    errors: Array
    truth: Array
    faults: dict[int, str] = field(default_factory=dict)
    begin_day: dict[int, float] = field(default_factory=dict)


def simulate(
    seed: int, *, n_jobs: int = 500, n_hosts: int = 400, n_devices: int = 8, faulty: bool = True,
    n_days: float = 180.0, noise: float = 0.006, scale: float = 1.0, accidents: float = 0.02,
) -> SimulatedFleet:  # fmt: skip
    """Place jobs on hosts at random and measure them; `scale` makes effects of links of those of devices."""
    chance = np.random.default_rng(seed)
    n_units = n_hosts * n_devices
    host = np.repeat(np.arange(n_hosts), n_devices)
    days = np.sort(chance.uniform(0, n_days, n_jobs))
    # Luck of silicon: most within half a percent, some hosts warmer than others.
    level = scale * (chance.normal(0, 0.003, n_units) + chance.normal(0, 0.001, n_hosts)[host])
    truth = np.tile(level, (n_jobs, 1))
    fleet = SimulatedFleet(days, host, np.full_like(truth, np.nan), np.full_like(truth, np.nan), truth)
    if faulty:
        for unit in chance.choice(n_units, n_units // 60, replace=False).tolist():
            _break(fleet, unit, chance, n_days, scale)
    for job in range(n_jobs):
        size = int(np.clip(2 ** chance.uniform(2, 7), 4, n_hosts))
        hosts = chance.choice(n_hosts, size, replace=False)
        here = np.flatnonzero(np.isin(host, hosts))
        sigma = scale * noise * np.exp(chance.normal(0, 0.5))
        n_steps = int(chance.integers(3, 12))
        # Student's tails, and accidents that last for a whole capture: another job on the host, a hot day.
        drawn = chance.standard_t(4, (n_steps, len(here))) * sigma
        drawn += np.where(chance.random(len(here)) < accidents, chance.exponential(0.1 * scale, len(here)), 0)
        ms = np.exp(fleet.truth[job, here] + drawn) * chance.uniform(100, 900)
        stages = int(chance.choice([1, 2, 4]))
        stage = np.searchsorted(hosts, host[here]) % stages if stages > 1 else np.zeros(len(here), int)
        logs = np.log(ms)
        for one in range(stages):
            inside = stage == one
            if inside.sum() > 2:
                beside = logs[:, inside] - np.median(logs[:, inside], axis=1, keepdims=True)
                fleet.values[job, here[inside]] = beside.mean(0)
                fleet.errors[job, here[inside]] = beside.std(0, ddof=1) / np.sqrt(n_steps)
    return fleet


def _break(
    fleet: SimulatedFleet, unit: int, chance: np.random.Generator, n_days: float, scale: float
) -> None:
    kind = str(chance.choice(["born", "turned", "repaired", "intermittent"]))
    begin = 0.0 if kind == "born" else float(chance.uniform(0.1, 0.5) * n_days)
    end = n_days if kind != "repaired" else begin + 0.35 * n_days
    slow = (fleet.days >= begin) & (fleet.days < end)
    if kind == "intermittent":
        slow &= chance.random(len(slow)) < 0.35
    fleet.truth[slow, unit] += scale * chance.uniform(0.05, 0.10)
    fleet.faults[unit], fleet.begin_day[unit] = kind, begin


def samples_of(values: Array, errors: Array | None = None) -> Samples:
    """Return what runs say of units, from tables (T, U) with NaN where a unit was not in a run."""
    run, unit = np.nonzero(np.isfinite(values))
    scatter = np.full(values.shape, np.nan) if errors is None else errors
    return Samples(run, unit, values[run, unit], scatter[run, unit], *values.shape)
