"""The kernels that a rank's computing consists of: a fixed mix, run before each communication operator.

The mix is that of a transformer's training step on a real capture, with one call of each kind a segment:
statistics and task tables of one job then agree to the nanosecond.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cluster_analysis.simulation.job import SimulatedJob
from cluster_analysis.simulation.observed import EPOCH_US, seen_steps

Ints = npt.NDArray[np.int64]

_NS_PER_US = 1000


@dataclass(frozen=True)
class Kernel:
    """A kind of kernel and its share of the matrix (cube) or of the vector work."""

    op_type: str
    core_type: str
    is_cube: bool
    share: float


KERNELS = (
    Kernel("MatMulV3", "AI_CORE", True, 0.62),
    Kernel("FlashAttentionScoreGrad", "MIX_AIC", True, 0.26),
    Kernel("FlashAttentionScore", "MIX_AIC", True, 0.12),
    Kernel("Add", "AI_VECTOR_CORE", False, 0.24),
    Kernel("Mul", "AI_VECTOR_CORE", False, 0.20),
    Kernel("RmsNorm", "AI_VECTOR_CORE", False, 0.18),
    Kernel("SwiGlu", "AI_VECTOR_CORE", False, 0.16),
    Kernel("Cast", "AI_VECTOR_CORE", False, 0.14),
    Kernel("Transpose", "AI_VECTOR_CORE", False, 0.08),
)


@dataclass(frozen=True)
class KernelStatistic:
    """One row of op_statistic.csv, over all profiled steps."""

    op_type: str
    core_type: str
    n_calls: int
    total_us: float
    min_us: float
    avg_us: float
    max_us: float
    ratio_percent: float


@dataclass(frozen=True)
class KernelCalls:
    """Calls by [stretch of computing, kernel of `KERNELS`]; `start_ns` is on the host's clock."""

    start_ns: Ints
    duration_ns: Ints


def kernel_calls(job: SimulatedJob, rank: int) -> KernelCalls:
    """Return all calls of a rank in the steps that were profiled."""
    ops, times = job.ops, job.times
    first, last = np.searchsorted(ops.rank, [rank, rank + 1])
    mine = slice(int(first), int(last))
    steps = seen_steps(job)
    computed = np.bincount(ops.step[mine], ops.compute_us[mine], job.spec.steps)
    after_last = np.maximum(times.computing_us[:, rank] - computed, 0.0)
    step = np.concatenate([ops.step[mine], np.arange(job.spec.steps)])
    compute = np.concatenate([ops.compute_us[mine], np.where(after_last > 1e-3, after_last, 0.0)])
    end = np.concatenate([ops.start_us[mine], times.end_us[:, rank]])
    kept = (compute > 0.0) & np.isin(step, steps)
    step, compute, end = step[kept], compute[kept], end[kept]
    with np.errstate(divide="ignore", invalid="ignore"):
        cube_share = np.nan_to_num(times.cube_us[step, rank] / times.computing_us[step, rank])
    shares = np.stack(
        [kernel.share * (cube_share if kernel.is_cube else 1.0 - cube_share) for kernel in KERNELS], axis=-1
    )
    duration = np.rint(compute[:, None] * shares * _NS_PER_US).astype(np.int64)
    clock = job.clock_us(np.full(len(end), rank, dtype=np.int64), end)
    end_ns = int(EPOCH_US) * _NS_PER_US + np.rint(clock * _NS_PER_US).astype(np.int64)
    begin_ns = end_ns - duration.sum(axis=1)
    start = begin_ns[:, None] + np.cumsum(duration, axis=1) - duration
    return KernelCalls(start, duration)


def kernel_statistics(job: SimulatedJob, rank: int) -> list[KernelStatistic]:
    """Return a rank's rows of op_statistic.csv, largest first; none where it never computed."""
    duration = kernel_calls(job, rank).duration_ns / _NS_PER_US
    if not len(duration):
        return []
    whole = float(duration.sum())
    rows = [
        KernelStatistic(
            op_type=kernel.op_type,
            core_type=kernel.core_type,
            n_calls=len(calls),
            total_us=round(float(calls.sum()), 3),
            min_us=round(float(calls.min()), 3),
            avg_us=round(float(calls.mean()), 3),
            max_us=round(float(calls.max()), 3),
            ratio_percent=round(100.0 * float(calls.sum()) / whole, 3),
        )
        for kernel, calls in zip(KERNELS, duration.T, strict=True)
    ]
    return sorted(rows, key=lambda row: -row.total_us)
