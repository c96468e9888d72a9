"""How long each rank computes and idles: stage work, data, silicon, hosts, pauses, and faults on top."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cluster_simulate.job.arrays import Floats, Ints
from cluster_simulate.job.effects import Effects
from cluster_simulate.job.noise import generator, hashed_normal, noise_seed, standard, step_series
from cluster_simulate.job.spec import JobSpec

#: Around its optimizer a rank idles as often as in this many segments.
OPTIMIZER_SPANS = 4
_RACK_SIGMA = 0.003
_RANK_STEP_SIGMA = 0.003
_TAIL_MEAN = 0.01


@dataclass(frozen=True)
class StepWork:
    """One step's work. `speed` multiplies a rank's computing; `free_us` is its idle time a segment;
    `data` multiplies by [dp, microbatch]; `expert` by rank; a rank pauses `pause_us` in its
    `pause_at`-th pass (-1: not at all)."""

    speed: Floats
    free_us: Floats
    preparing_us: Floats
    data: Floats
    expert: Floats
    pause_us: Floats
    pause_at: Ints


def step_work(spec: JobSpec, effects: Effects, seed: int, run: int) -> list[StepWork]:
    """Return the work of every step; random numbers do not depend on `effects`."""
    noise = noise_seed(seed, run)
    ranks = np.arange(spec.n_ranks, dtype=np.int64)
    speeds = _speeds(spec, seed, noise, ranks)
    host_free = np.exp(spec.noise.host_free_sigma * hashed_normal(seed, "host-free", spec.host_of(ranks)))
    expert = np.exp(spec.healthy.expert_sigma * hashed_normal(seed, "expert", _expert(spec, ranks)))
    n_passes = 2 * spec.microbatches * spec.vpp
    n_idle_spans = n_passes * spec.segments + OPTIMIZER_SPANS
    base_free = spec.free_share * 1.5 * spec.forward_ms * 1e3 / (spec.segments * spec.vpp)
    steps = []
    for step in range(spec.steps):
        rng = generator(noise, "work", step)
        shape = 1.0 / spec.noise.free_cv**2
        free = base_free * host_free * rng.gamma(shape, 1.0 / shape, spec.n_ranks)
        data = np.exp(spec.healthy.sequence_sigma * rng.standard_normal((spec.dp, spec.microbatches)))
        preparing = (
            spec.noise.preparing_ms
            * 1e3
            * (0.7 * rng.gamma(9.0, 1.0 / 9.0) + 0.3 * rng.gamma(4.0, 0.25, spec.n_ranks))
        )
        pause_us, pause_at = _pauses(spec, rng, step, n_passes)
        steps.append(
            StepWork(
                speeds[step] * effects.compute_factor[step],
                np.maximum(free + effects.dispatch_us[step] / n_idle_spans, 0.0),
                preparing + effects.input_us[step],
                data,
                expert,
                pause_us + effects.pause_us[step],
                np.where((pause_at < 0) & (effects.pause_us[step] > 0), n_passes // 2, pause_at),
            )
        )
    return steps


def segment_scatter(spec: JobSpec, rng: np.random.Generator, n: int) -> Floats:
    """Return multipliers [segment, rank] of one pass: part common to the pass, part each segment's own."""
    sigma = spec.noise.microbatch_sigma
    common = 0.8 * standard(spec.noise, rng, (1, n))
    own = 0.6 * standard(spec.noise, rng, (spec.segments, n))
    return np.maximum(1.0 + sigma * (common + own), 0.5)


def _expert(spec: JobSpec, ranks: Ints) -> Ints:
    """Return which share of the experts a rank holds, by stage."""
    dp = ranks // (spec.tp * spec.cp) % spec.dp
    return dp % spec.ep + spec.ep * (ranks // spec.stage_ranks)


def _speeds(spec: JobSpec, seed: int, noise: int, ranks: Ints) -> Floats:
    """Return compute multipliers by [step, rank]: silicon, a common factor a step, in family 2 also racks."""
    silicon = 1.0 + spec.healthy.silicon_sigma * hashed_normal(seed, "silicon", ranks)
    draws = generator(seed, "silicon-tail").random((2, spec.n_ranks))
    silicon += np.where(draws[0] < spec.healthy.silicon_tail, -_TAIL_MEAN * np.log1p(-draws[1]), 0.0)
    common = spec.noise.step_sigma * step_series(spec.noise, noise, "step", spec.steps, 1)
    speeds: Floats = silicon * (1.0 + common)
    if spec.noise.family == "ar1":
        rack = spec.host_of(ranks) // spec.noise.hosts_per_rack
        n_racks = int(rack.max()) + 1
        speeds = speeds * (
            1.0 + _RACK_SIGMA * step_series(spec.noise, noise, "rack", spec.steps, n_racks)[:, rack]
        )
        own = step_series(spec.noise, noise, "rank-step", spec.steps, spec.n_ranks)
        speeds = speeds * (1.0 + _RANK_STEP_SIGMA * own)
    return np.maximum(speeds, 0.5)


def _pauses(spec: JobSpec, rng: np.random.Generator, step: int, n_passes: int) -> tuple[Floats, Ints]:
    """Return each rank's pause and the pass it falls into: hiccups, garbage collection, checkpoints."""
    healthy = spec.healthy
    n = spec.n_ranks
    hit = (rng.random(n) < spec.hiccup_share) & ~np.isin(np.arange(n), healthy.hiccup_free)
    pause = np.where(hit, rng.uniform(*healthy.hiccup_ms, n), 0.0) * 1e3
    at = rng.integers(0, n_passes, n)
    spread = rng.uniform(0.8, 1.2, n)
    number = spec.first_step + step
    if healthy.gc_every and number % healthy.gc_every == 0:
        pause = pause + healthy.gc_ms * 1e3 * spread
    if healthy.checkpoint_every and number % healthy.checkpoint_every == 0:
        pause = pause + healthy.checkpoint_ms * 1e3
        at = np.zeros_like(at)
    return pause, np.where(pause > 0, at, -1)
