"""Step totals of every rank, as step_trace_time.csv has them: what the profilers make of their timelines.

Computing is the union of the kernels, communication the union of the operators, each counted to the step
in which it begins; `Overlapped` is what both have in common, `Free` what is neither, from the first to the
last of them. PyTorch: `Stage` is the whole of that minus `Bubble`, and `Bubble` all receives. MindSpore:
`Stage` is from the first to the last operator, minus `Bubble`, and `Bubble` all sends, receives and
batchSendRecvs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cluster_simulate.files.kernels import stretches
from cluster_simulate.files.observed import NS_PER_US, shown_ns, spans_ns
from cluster_simulate.job import layout as kinds
from cluster_simulate.job.arrays import Floats, Ints
from cluster_simulate.job.job import SimulatedJob
from cluster_simulate.job.spec import Framework

_BUBBLES: dict[Framework, tuple[int, ...]] = {"pt": (kinds.RECEIVE,), "ms": tuple(kinds.P2P_KINDS)}


@dataclass(frozen=True)
class StepTotals:
    """All by [step, rank], to the nanosecond; meaningless for steps that were not profiled."""

    computing_us: Floats
    communication_not_overlapped_us: Floats
    overlapped_us: Floats
    communication_us: Floats
    free_us: Floats
    stage_us: Floats
    bubble_us: Floats
    exclude_receive_us: Floats
    preparing_us: Floats


@dataclass(frozen=True)
class _Spans:
    """Spans of one sort; `cell` numbers rank and step, `begin` and `end` are ns since that step began."""

    cell: Ints
    begin: Ints
    end: Ints


def step_totals(job: SimulatedJob, framework: Framework) -> StepTotals:
    """Return the totals from the operators and the kernels, both on the hosts' clocks."""
    n_ranks, n_steps = job.spec.n_ranks, job.spec.steps
    every_rank = np.repeat(np.arange(n_ranks), n_steps)
    began_ns = shown_ns(job, every_rank, job.times.begin_us.T.ravel())

    def spans(rank: Ints, step: Ints, begin_ns: Ints, end_ns: Ints) -> _Spans:
        cell = rank * n_steps + step
        return _Spans(cell, begin_ns - began_ns[cell], end_ns - began_ns[cell])

    computed = stretches(job, range(n_ranks))
    kernels = spans(computed.rank, computed.step, computed.begin_ns, computed.end_ns)
    operators = spans(job.ops.rank, job.ops.step, *spans_ns(job))
    in_bubble = np.isin(job.ops.kind, _BUBBLES[framework])
    computing, communication, overlapped = _unions(kernels, operators, len(began_ns))
    exposed = communication - overlapped
    lasted = np.where(in_bubble, operators.end - operators.begin, 0)
    bubble = np.bincount(operators.cell, lasted, len(began_ns)).astype(np.int64)
    first, last = _ends((kernels, operators), len(began_ns))
    span = last - first
    if framework == "ms" and len(job.ops):
        first_op, last_op = _ends((operators,), len(began_ns))
        span = np.where(last_op > 0, last_op - first_op, span)
    parts = (
        computing, exposed, overlapped, communication, last - first - computing - exposed, span - bubble,
        bubble, exposed - bubble, first,
    )  # fmt: skip
    return StepTotals(*(part.reshape(n_ranks, n_steps).T / NS_PER_US for part in parts))


def _unions(kernels: _Spans, operators: _Spans, n_cells: int) -> tuple[Ints, Ints, Ints]:
    """Return by cell the ns that kernels cover, that operators cover, and that both do."""
    # An axis on which no two cells meet, so that one pass serves them all.
    stretch = 1 + max((int(one.end.max()) for one in (kernels, operators) if len(one.end)), default=0)
    busy, talking = _disjoint(kernels, stretch), _disjoint(operators, stretch)
    done = np.r_[0, np.cumsum(busy.end - busy.begin)]

    def computed_until(when: Ints) -> Ints:
        n_begun = np.searchsorted(busy.begin, when, side="right")
        to_come = np.maximum(np.r_[0, busy.end][n_begun] - when, 0)
        until: Ints = done[n_begun] - to_come
        return until

    both = computed_until(talking.end) - computed_until(talking.begin)
    sums = (
        (busy.cell, busy.end - busy.begin),
        (talking.cell, talking.end - talking.begin),
        (talking.cell, both),
    )
    computing, communication, overlapped = (
        np.bincount(cell, lengths, n_cells).astype(np.int64) for cell, lengths in sums
    )
    return computing, communication, overlapped


def _disjoint(spans: _Spans, stretch: int) -> _Spans:
    """Return the pieces of spans that no earlier span covers, in order, on one axis for all cells."""
    begin, end = (spans.cell * stretch + side for side in (spans.begin, spans.end))
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], end[order]
    begin = np.maximum(begin, np.maximum.accumulate(np.r_[0, end])[:-1])
    kept = begin < end
    return _Spans(spans.cell[order][kept], begin[kept], end[kept])


def _ends(sorts: Sequence[_Spans], n_cells: int) -> tuple[Ints, Ints]:
    """Return by cell when the first span begins and the last one ends; 0 where there is none."""
    first, last = np.full(n_cells, np.iinfo(np.int64).max), np.zeros(n_cells, dtype=np.int64)
    for spans in sorts:
        np.minimum.at(first, spans.cell, spans.begin)
        np.maximum.at(last, spans.cell, spans.end)
    return np.where(last > 0, first, 0), last
