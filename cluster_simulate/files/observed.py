"""Observations of the profilers: operators, clocks, and how they fill the wait fields."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cluster_simulate.job import layout as kinds
from cluster_simulate.job.arrays import Bools, Floats, Ints
from cluster_simulate.job.job import LinkUses, Ops, SimulatedJob
from cluster_simulate.job.noise import generator, noise_seed

#: When every simulated job begins, in µs since 1970. In a float64 such times keep a quarter of a µs.
EPOCH_US = 1_764_246_876_000_000.0
_MIXED_IDLE_SHARE = 0.3
#: Files hold milliseconds with five decimals.
DECIMALS_US = 2
NS_PER_US = 1000
_NS_OF_QUARTER = np.array([0, 200, 500, 800])


@dataclass(frozen=True)
class OpView:
    """Operators as files show them, one row each; times in µs as written, `start_ns` on the host's clock."""

    ops: Ops
    links: LinkUses
    start_us: Floats
    elapse_us: Floats
    transit_us: Floats
    wait_us: Floats
    synchronization_us: Floats

    @property
    def start_ns(self) -> Ints:
        """Start in ns since 1970, as files have it."""
        return _as_written_ns(self.start_us)

    @property
    def idle_us(self) -> Floats:
        """Time that is neither transit nor wait."""
        return (self.elapse_us - self.transit_us - self.wait_us).round(DECIMALS_US)


def observe(job: SimulatedJob) -> OpView:
    """Return what the communication files of a job show: not the records that were lost."""
    ops, links = _without_missing(job)
    rng = generator(noise_seed(job.seed, job.run), "fields")
    n = len(job.ops)
    is_idle = _idle_rows(job, rng, n)
    dispatch = rng.uniform(10.0, 50.0, n)
    sync = rng.uniform(0.9, 1.0, n)
    kept = _kept(job)
    is_idle, dispatch, sync = is_idle[kept], dispatch[kept], sync[kept]
    elapse = ops.elapse_us.round(DECIMALS_US)
    transfer = np.minimum(ops.transfer_us.round(DECIMALS_US), elapse)
    has_transit = ops.kind != kinds.RECEIVE
    transit = np.where(has_transit, transfer - np.minimum(dispatch, 0.3 * transfer), 0.0)
    wait = np.where(has_transit, elapse - transfer, np.maximum(elapse - dispatch, 0.0))
    transit = np.where(is_idle, 0.0, transit).round(DECIMALS_US)
    wait = np.where(is_idle, 0.0, wait).round(DECIMALS_US)
    synchronization = np.where(wait > 5.0, wait * sync, 0.0).round(DECIMALS_US)
    start = EPOCH_US + job.clock_us(ops.rank, ops.start_us)
    return OpView(ops, links, start, elapse, transit, wait, synchronization)


def shown_ns(job: SimulatedJob, rank: Ints, true_us: Floats) -> Ints:
    """Return the ns since 1970 that the hosts of ranks show at true times: what tasks and steps say."""
    shown: Ints = int(EPOCH_US) * NS_PER_US + np.rint(job.clock_us(rank, true_us) * NS_PER_US).astype(
        np.int64
    )
    return shown


def spans_ns(job: SimulatedJob, rows: Ints | slice = slice(None)) -> tuple[Ints, Ints]:
    """Return when operators began and ended, on the hosts' clocks; lost records too.

    Timelines and step totals are made of these; communication files say the same of their operators.
    """
    ops = job.ops
    start = _as_written_ns(EPOCH_US + job.clock_us(ops.rank[rows], ops.start_us[rows]))
    return start, start + np.rint(ops.elapse_us[rows].round(DECIMALS_US) * NS_PER_US).astype(np.int64)


def _as_written_ns(start_us: Floats) -> Ints:
    """A float64 of today keeps quarters of a µs, and its shortest text has one decimal: 0.25 reads 0.2."""
    whole, quarter = np.divmod(np.rint(start_us * 4.0).astype(np.int64), 4)
    start: Ints = whole * NS_PER_US + _NS_OF_QUARTER[quarter]
    return start


def seen_ranks(job: SimulatedJob) -> list[int]:
    """Return the ranks whose files exist."""
    return [rank for rank in range(job.spec.n_ranks) if rank not in job.spec.healthy.missing_ranks]


def seen_steps(job: SimulatedJob) -> list[int]:
    """Return the steps, counted from 0, that the files hold."""
    first = job.spec.first_step
    return [step for step in range(job.spec.steps) if first + step not in job.spec.healthy.missing_steps]


def _idle_rows(job: SimulatedJob, rng: np.random.Generator, n: int) -> Bools:
    draws = rng.random(n)
    if job.spec.wait_fields == "full":
        return np.zeros(n, dtype=bool)
    if job.spec.wait_fields == "idle":
        return np.ones(n, dtype=bool)
    return draws < _MIXED_IDLE_SHARE


def _kept(job: SimulatedJob) -> Bools:
    """Return which operators the files hold."""
    ops, healthy = job.ops, job.spec.healthy
    rng = generator(noise_seed(job.seed, job.run), "missing")
    kept = rng.random(len(ops)) >= job.spec.missing_records
    kept &= np.isin(ops.rank, seen_ranks(job)) & np.isin(ops.step, seen_steps(job))
    for rank in rng.permutation(job.spec.n_ranks)[: healthy.uneven_counts]:
        rows = np.flatnonzero(ops.rank == rank)
        if len(rows):
            kept[rng.choice(rows)] = False
    return kept


def _without_missing(job: SimulatedJob) -> tuple[Ops, LinkUses]:
    kept = _kept(job)
    if kept.all():
        return job.ops, job.links
    new_row = np.cumsum(kept) - 1
    stays = kept[job.links.op]
    links = job.links.at(stays)
    return job.ops.at(kept), replace(links, op=new_row[links.op])
