"""Link entries of communication_matrix.json: top, middle, bottom and total a link and kind of operator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cluster_simulate.files.observed import DECIMALS_US, OpView
from cluster_simulate.job import layout as kinds
from cluster_simulate.job.arrays import Columns, Floats, Ints
from cluster_simulate.job.job import LOCAL
from cluster_simulate.job.spec import Framework

VARIANTS = ("top1", "middle", "bottom1", "total", "bottom2", "bottom3")
TOTAL = VARIANTS.index("total")
#: Names of entries. The profilers take the first match of their list: reduceScatter becomes `reduce`.
MATRIX_TYPES = (
    "allreduce",
    "reduce",
    "allgather",
    "alltoall",
    "broadcast",
    "send",
    "receive",
    "batchsendrecv",
)
_LOCAL_GBPS = 330.0
_LOCAL_GATHER_GBPS = 36.8


@dataclass(frozen=True)
class LinkEntries(Columns):
    """One row an entry, ordered by rank, step, group, kind, variant, destination. `op` is -1 for totals."""

    rank: Ints
    step: Ints
    group: Ints
    kind: Ints
    variant: Ints
    dst: Ints
    transport: Ints
    size_bytes: Floats
    time_us: Floats
    op: Ints


def link_entries(view: OpView, framework: Framework) -> LinkEntries:
    """Return all entries of all ranks. MindSpore repeats an operator where PyTorch leaves a bottom out."""
    op, dst, transport, size, time = _uses(view)
    ops = view.ops
    with np.errstate(divide="ignore", invalid="ignore"):
        bandwidth = np.where(time > 0, size / time, 0.0)
    order = np.lexsort((op, -bandwidth, dst, ops.kind[op], ops.group[op], ops.step[op], ops.rank[op]))
    op, dst, transport, size, time = op[order], dst[order], transport[order], size[order], time[order]
    keys = np.stack([ops.rank[op], ops.step[op], ops.group[op], ops.kind[op], dst], axis=1)
    is_first = np.r_[True, (keys[1:] != keys[:-1]).any(axis=1)] if len(op) else np.zeros(0, dtype=bool)
    begin = np.flatnonzero(is_first)
    count = np.diff(np.r_[begin, len(op)])
    rows: list[Ints] = []
    variants: list[Ints] = []
    picks = [
        (0, np.zeros_like(count), count > 0),
        (1, count // 2, count > 0),
        (2, count - 1, count > 0),
        (4, np.maximum(count - 2, 0), (count >= 2) | (framework == "ms")),
        (5, np.maximum(count - 3, 0), (count >= 3) | (framework == "ms")),
    ]
    for code, position, is_there in picks:
        rows.append((begin + position)[is_there])
        variants.append(np.full(int(is_there.sum()), code))
    segment = np.cumsum(is_first) - 1
    n_segments = len(begin)
    row = np.concatenate([*rows, begin]) if n_segments else begin
    variant = np.concatenate([*variants, np.full(n_segments, TOTAL)])
    is_total = variant == TOTAL
    sizes, spent = size[row].copy(), time[row].copy()
    sizes[is_total] = np.bincount(segment, weights=size, minlength=n_segments)
    spent[is_total] = np.bincount(segment, weights=time, minlength=n_segments).round(DECIMALS_US)
    entry = LinkEntries(
        ops.rank[op[row]], ops.step[op[row]], ops.group[op[row]], ops.kind[op[row]], variant, dst[row],
        transport[row], sizes, spent, np.where(is_total, -1, op[row]),
    )  # fmt: skip
    final = np.lexsort((entry.dst, entry.variant, entry.kind, entry.group, entry.step, entry.rank))
    return entry.at(final)


def _uses(view: OpView) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    """Return every use of a link, and the copy inside the device that each operator makes."""
    ops, links = view.ops, view.links
    n_ops = len(ops)
    local_size, local_time = local_copies(view, slice(0, n_ops), slice(0, len(links.op)))
    return (
        np.concatenate([links.op, np.arange(n_ops, dtype=np.int64)]),
        np.concatenate([links.dst, ops.rank]),
        np.concatenate([links.transport, np.full(n_ops, LOCAL)]),
        np.concatenate([links.size_bytes, local_size]),
        np.concatenate([links.time_us, local_time]).round(DECIMALS_US),
    )


def link_figures(size_bytes: float, time_us: float) -> tuple[float, float, float]:
    """Return MB, ms and GB/s of what a link carried, as files have them."""
    size_mb, time_ms = round(size_bytes / 1e6, 6), round(time_us / 1e3, 5)
    return size_mb, time_ms, round(size_mb / time_ms, 4) if time_ms else 0


def local_copies(view: OpView, rows: slice, uses: slice) -> tuple[Floats, Floats]:
    """Return bytes and µs of the copy inside the device that each of these operators makes.

    `uses` are the uses of links by these operators.
    """
    size = np.zeros(rows.stop - rows.start)
    np.maximum.at(size, view.links.op[uses] - rows.start, view.links.size_bytes[uses])
    size = np.maximum(2.0 * size, 8.0)
    speed = np.where(view.ops.kind[rows] == kinds.ALL_GATHER, _LOCAL_GATHER_GBPS, _LOCAL_GBPS)
    return size, (1.2 + size / (speed * 1e3)).round(DECIMALS_US)
