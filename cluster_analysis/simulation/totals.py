"""Step totals of every rank, as step_trace_time.csv has them.

`Computing + Communication(Not Overlapped) + Free` is the end-to-end time. PyTorch: `Stage` is that
minus `Bubble`, and `Bubble` all receives. MindSpore: `Stage` is from the first to the last operator, minus
`Bubble`, and `Bubble` all sends, receives and batchSendRecvs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from cluster_analysis.simulation import layout as kinds
from cluster_analysis.simulation.job import SimulatedJob

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Framework = Literal["pt", "ms"]

#: Files hold microseconds with three decimals.
_DECIMALS = 3


@dataclass(frozen=True)
class StepTotals:
    """All by [step, rank], rounded as the files are."""

    computing_us: Floats
    communication_not_overlapped_us: Floats
    overlapped_us: Floats
    communication_us: Floats
    free_us: Floats
    stage_us: Floats
    bubble_us: Floats
    exclude_receive_us: Floats
    preparing_us: Floats


def step_totals(job: SimulatedJob, framework: Framework) -> StepTotals:
    """Return the totals from the operators and the computing between them."""
    ops, times, spec = job.ops, job.times, job.spec
    cell = ops.step * spec.n_ranks + ops.rank
    shape = (spec.steps, spec.n_ranks)
    # One time axis for all ranks: each has its own stretch, so that one pass serves them all.
    stretch = float(times.end_us.max()) + 1.0
    start = ops.start_us + ops.rank * stretch
    end = start + ops.elapse_us
    covered = np.maximum.accumulate(np.r_[-1.0, end])[:-1]
    piece_start = np.minimum(np.maximum(start, covered), end)
    busy = end - piece_start
    computed = _computed_until(start, ops.compute_us, ~ops.is_side)
    beside = computed(end) - computed(piece_start)

    def by_cell(values: Floats) -> Floats:
        sums: Floats = np.bincount(cell, weights=values, minlength=shape[0] * shape[1]).astype(np.float64)
        return sums.reshape(shape)

    communication = by_cell(busy).round(_DECIMALS)
    overlapped = np.abs(by_cell(beside).round(_DECIMALS))
    computing = times.computing_us.round(_DECIMALS)
    exposed = communication - overlapped + 0.0
    whole = (times.end_us - times.first_task_us).round(_DECIMALS)
    free = np.maximum(whole - computing - exposed, 0.0)
    in_bubble = {"pt": [kinds.RECEIVE], "ms": list(kinds.P2P_KINDS)}[framework]
    bubble = by_cell(np.where(np.isin(ops.kind, in_bubble), ops.elapse_us, 0.0)).round(_DECIMALS)
    stage = computing + exposed + free - bubble
    if framework == "ms":
        stage = _span(cell, ops.start_us, ops.start_us + ops.elapse_us, shape).round(_DECIMALS) - bubble
    preparing = (times.first_task_us - times.begin_us).round(_DECIMALS)
    return StepTotals(
        computing, exposed, overlapped, communication, free, stage, bubble, exposed - bubble, preparing
    )


def _computed_until(
    start: Floats, compute: Floats, is_blocking: npt.NDArray[np.bool_]
) -> Callable[[Floats], Floats]:
    """Return a function from a time to all computing before it; a rank computes right before an operator."""
    ends = start[is_blocking]
    amounts = compute[is_blocking]
    edges = np.stack([ends - amounts, ends], axis=1).ravel()
    done = np.cumsum(amounts)
    heights = np.stack([done - amounts, done], axis=1).ravel()
    edges = np.maximum.accumulate(edges) if len(edges) else np.zeros(1)
    heights = heights if len(heights) else np.zeros(1)
    return lambda when: np.interp(when, edges, heights)


def _span(cell: Ints, start: Floats, end: Floats, shape: tuple[int, int]) -> Floats:
    first = np.full(shape[0] * shape[1], np.inf)
    last = np.zeros(shape[0] * shape[1])
    np.minimum.at(first, cell, start)
    np.maximum.at(last, cell, end)
    return np.where(np.isfinite(first), last - first, 0.0).reshape(shape)
