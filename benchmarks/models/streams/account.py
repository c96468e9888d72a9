"""Step times of one rank from its operations, by torch_npu's definitions (msprof-analyze.md, section 1.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.models.streams.ops import COLLECTIVE, EXCHANGE, HOST, KERNELS, Op

Interval = tuple[float, float]


@dataclass(frozen=True)
class StepTimes:
    """One row of step_trace_time.csv, in µs."""

    step: int
    computing_us: float
    exposed_us: float
    overlapped_us: float
    communication_us: float
    free_us: float
    stage_us: float
    bubble_us: float
    exposed_without_receiving_us: float
    preparing_us: float


def step_times(ops: Sequence[Op], step: int) -> StepTimes:
    """Return the times of one step of one rank."""
    own = [op for op in ops if op.step == step and op.kind != HOST]
    begun_us = next(op.start_us for op in ops if op.step == step and op.kind == HOST)
    kernels = [_computing(op) for op in own if op.kind == KERNELS]
    calls = union([(op.start_us, op.end_us) for op in own if op.kind in (COLLECTIVE, EXCHANGE)])
    computing = sum(end - start for start, end in kernels)
    communication = sum(end - start for start, end in calls)
    overlapped = common(union(kernels), calls)
    first = min(op.start_us for op in own)
    span = max(op.end_us for op in own) - first
    bubble = sum(op.end_us - op.start_us for op in own if op.name == "receive")
    exposed = communication - overlapped
    return StepTimes(
        step,
        computing,
        exposed,
        overlapped,
        communication,
        span - computing - exposed,
        span - bubble,
        bubble,
        exposed - bubble,
        first - begun_us,
    )


def _computing(op: Op) -> Interval:
    """Return when a block computes: what is idle in it is taken as lying at its end."""
    return op.start_us, op.start_us + op.busy_us


def union(intervals: Sequence[Interval]) -> list[Interval]:
    """Return the intervals without what they share, in order."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def common(left: Sequence[Interval], right: Sequence[Interval]) -> float:
    """Return how long both of two ordered lists of separate intervals hold."""
    total, i, j = 0.0, 0, 0
    while i < len(left) and j < len(right):
        total += max(0.0, min(left[i][1], right[j][1]) - max(left[i][0], right[j][0]))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return total
