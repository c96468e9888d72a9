"""Random numbers that stay the same whatever the faults are.

Numbers that belong to a thing (a rank's silicon, a link's quality) come from a hash of the seed and the
thing's id; numbers of a step come from generators named by seed, purpose and step, and are drawn in
program order, which faults do not change. So a job with and without a fault differ by the fault only.
"""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

from cluster_simulate.job.arrays import Floats, Ints
from cluster_simulate.job.spec import Noise

_T3_SCALE = 1.0 / np.sqrt(3.0)
_AR1_RHO = 0.7


def noise_seed(seed: int, run: int) -> int:
    """Return the seed of the differences between runs of the same job on the same machines."""
    return seed if run == 0 else zlib.crc32(f"{seed}/{run}".encode())


def generator(seed: int, purpose: str, number: int = 0) -> np.random.Generator:
    """Return the generator of one purpose; `number` is a step or another counter."""
    return np.random.default_rng([seed, zlib.crc32(purpose.encode()), number])


def standard(noise: Noise, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Return standard draws of the family: normal, or Student t with 3 degrees scaled to variance 1."""
    if noise.family == "ar1":
        tailed: Floats = np.clip(rng.standard_t(3, shape) * _T3_SCALE, -8.0, 8.0)
        return tailed
    normal: Floats = rng.standard_normal(shape)
    return normal


def hashed_normal(seed: int, purpose: str, first: Ints, second: Ints | int = 0) -> Floats:
    """Return a standard normal for each pair of ids, the same in every run with this seed."""
    salt = np.uint64(zlib.crc32(purpose.encode()) + (seed << 32) & 0xFFFFFFFFFFFFFFFF)
    with np.errstate(over="ignore"):
        key = first.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        key = key + np.asarray(second).astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F) + salt
        one, two = _mixed(key), _mixed(key + np.uint64(0x165667B19E3779F9))
    uniform_one = (one >> np.uint64(11)).astype(np.float64) / 2.0**53
    uniform_two = (two >> np.uint64(11)).astype(np.float64) / 2.0**53
    normal: Floats = np.sqrt(-2.0 * np.log1p(-uniform_one)) * np.cos(2.0 * np.pi * uniform_two)
    return normal


def step_series(noise: Noise, seed: int, purpose: str, n_steps: int, n_things: int) -> Floats:
    """Return standard [step, thing] draws: independent, or AR(1) with rho 0.7 in the second family."""
    draws = standard(noise, generator(seed, purpose), (n_steps, n_things))
    if noise.family == "lognormal":
        return draws
    series = draws.copy()
    for step in range(1, n_steps):
        series[step] = _AR1_RHO * series[step - 1] + np.sqrt(1.0 - _AR1_RHO**2) * draws[step]
    return series


def _mixed(value: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Finalise a 64-bit hash (SplitMix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: npt.NDArray[np.uint64] = value ^ (value >> np.uint64(31))
    return mixed
