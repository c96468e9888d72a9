"""Kinds of kernels that a rank ran, as op_statistic.csv has them: computing split over a fixed mix."""

from __future__ import annotations

from dataclasses import dataclass

from cluster_analysis.simulation.job import SimulatedJob
from cluster_analysis.simulation.observed import seen_steps


@dataclass(frozen=True)
class Kernel:
    """A kind of kernel: its share of the matrix or of the vector work, and its launches a segment."""

    op_type: str
    core_type: str
    is_cube: bool
    share: float
    n_per_segment: int


#: The mix of a transformer's training step on a real capture.
KERNELS = (
    Kernel("MatMulV3", "AI_CORE", True, 0.62, 10),
    Kernel("FlashAttentionScoreGrad", "MIX_AIC", True, 0.26, 1),
    Kernel("FlashAttentionScore", "MIX_AIC", True, 0.12, 1),
    Kernel("Add", "AI_VECTOR_CORE", False, 0.24, 14),
    Kernel("Mul", "AI_VECTOR_CORE", False, 0.20, 16),
    Kernel("RmsNorm", "AI_VECTOR_CORE", False, 0.18, 2),
    Kernel("SwiGlu", "AI_VECTOR_CORE", False, 0.16, 1),
    Kernel("Cast", "AI_VECTOR_CORE", False, 0.14, 8),
    Kernel("Transpose", "AI_VECTOR_CORE", False, 0.08, 4),
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


def kernel_statistics(job: SimulatedJob, rank: int) -> list[KernelStatistic]:
    """Return a rank's rows, largest first."""
    steps = seen_steps(job)
    computing = float(job.times.computing_us[steps, rank].sum())
    cube = float(job.times.cube_us[steps, rank].sum())
    spec = job.spec
    n_segments = 2 * spec.microbatches * spec.vpp * spec.segments * len(steps)
    rows = []
    for kernel in KERNELS:
        total = round((cube if kernel.is_cube else computing - cube) * kernel.share, 3)
        n_calls = max(kernel.n_per_segment * n_segments, 1)
        avg = total / n_calls
        rows.append(
            KernelStatistic(
                kernel.op_type,
                kernel.core_type,
                n_calls,
                total,
                round(0.55 * avg, 3),
                round(avg, 3),
                round(1.9 * avg, 3),
                round(100.0 * total / computing, 3) if computing else 0.0,
            )  # fmt: skip
        )
    return sorted(rows, key=lambda row: -row.total_us)
