"""The kernels that a rank's computing consists of: a fixed mix, run before each communication operator.

The mix is that of a transformer's training step on a real capture, with one call of each kind a segment:
statistics and task tables of one job then agree to the nanosecond.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cluster_simulate.files.observed import NS_PER_US, seen_steps, shown_ns, spans_ns
from cluster_simulate.job.arrays import Columns, Ints
from cluster_simulate.job.job import SimulatedJob

#: Less computing than this is what is left of sums of floats.
_NOTHING_US = 1e-3


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
class Stretches(Columns):
    """Stretches of computing, in order of rank, then of time; ns on the hosts' clocks."""

    rank: Ints
    step: Ints
    begin_ns: Ints
    end_ns: Ints


def stretches(job: SimulatedJob, ranks: range) -> Stretches:
    """Return when these ranks computed in the steps that were profiled.

    A rank computes right before each of its operators and waits, and after the last one of a step.
    """
    ops, waits, times, n_steps = job.ops, job.waits, job.times, job.spec.steps
    rows = slice(*np.searchsorted(ops.rank, [ranks.start, ranks.stop]).tolist())
    every_rank = np.repeat(np.arange(ranks.start, ranks.stop), n_steps)
    every_step = np.tile(np.arange(n_steps), len(ranks))
    waited = np.flatnonzero((waits.rank >= ranks.start) & (waits.rank < ranks.stop))
    rank = np.concatenate([ops.rank[rows], waits.rank[waited]])
    step = np.concatenate([ops.step[rows], waits.step[waited]])
    length_us = np.concatenate([ops.compute_us[rows], waits.compute_us[waited]])
    computed = np.bincount((rank - ranks.start) * n_steps + step, length_us, len(every_rank))
    after_last = times.computing_us[every_step, every_rank] - computed
    rank, step = np.concatenate([rank, every_rank]), np.concatenate([step, every_step])
    length_us = np.concatenate([length_us, np.where(after_last > _NOTHING_US, after_last, 0.0)])
    end_ns = np.concatenate(
        [
            spans_ns(job, rows)[0],
            shown_ns(job, waits.rank[waited], waits.at_us[waited]),
            shown_ns(job, every_rank, times.end_us[every_step, every_rank]),
        ]
    )
    length_ns = np.rint(length_us * NS_PER_US).astype(np.int64)
    kept = np.flatnonzero((length_ns > 0) & np.isin(step, seen_steps(job)))
    kept = kept[np.lexsort((end_ns[kept], step[kept], rank[kept]))]
    return Stretches(rank[kept], step[kept], end_ns[kept] - length_ns[kept], end_ns[kept])


def kernel_calls(job: SimulatedJob, rank: int) -> tuple[Ints, Ints]:
    """Return start (on the host's clock) and length in ns of all calls of a rank that were profiled.

    By [stretch of computing, kernel of `KERNELS`]: together they fill its stretches.
    """
    times, found = job.times, stretches(job, range(rank, rank + 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        cube_share = np.nan_to_num(times.cube_us[found.step, rank] / times.computing_us[found.step, rank])
    shares = np.stack(
        [kernel.share * (cube_share if kernel.is_cube else 1.0 - cube_share) for kernel in KERNELS], axis=-1
    )
    length = (found.end_ns - found.begin_ns)[:, None]
    until = np.rint(np.cumsum(shares, axis=1) * length).astype(np.int64)
    until[:, -1:] = length
    duration = np.diff(until, axis=1, prepend=0)
    return found.begin_ns[:, None] + until - duration, duration


def kernel_statistics(job: SimulatedJob, rank: int) -> list[KernelStatistic]:
    """Return a rank's rows of op_statistic.csv, largest first; none where it never computed."""
    _, duration_ns = kernel_calls(job, rank)
    if not len(duration_ns):
        return []
    n_calls = len(duration_ns)
    sums, least, most = (of(duration_ns, axis=0).tolist() for of in (np.sum, np.min, np.max))
    rows = [
        KernelStatistic(
            op_type=kernel.op_type,
            core_type=kernel.core_type,
            n_calls=n_calls,
            total_us=total / NS_PER_US,
            min_us=low / NS_PER_US,
            avg_us=round(total / n_calls) / NS_PER_US,
            max_us=high / NS_PER_US,
            ratio_percent=round(100.0 * total / sum(sums), 3),
        )
        for kernel, total, low, high in zip(KERNELS, sums, least, most, strict=True)
    ]
    return sorted(rows, key=lambda row: -row.total_us)
