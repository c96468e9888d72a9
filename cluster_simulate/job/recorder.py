"""Collects what happens in a simulation, batch by batch, and makes arrays of it."""

from __future__ import annotations

import numpy as np

from cluster_simulate.job.arrays import Floats, Ints
from cluster_simulate.job.job import LinkUses, Ops, Waits

_OP_COLUMNS = 10
#: Larger messages go in packets of at most this.
_PACKET_BYTES = 125.82912e6


class Recorder:
    """Batches of operators, waits and link uses. An operator's number is the order in which it was added."""

    def __init__(self) -> None:
        self._ops: list[tuple[Floats | Ints, ...]] = []
        self._links: list[tuple[Floats | Ints, ...]] = []
        self._waits: list[tuple[Floats | Ints, ...]] = []
        self._n_ops = 0

    def add_ops(
        self,
        *,
        rank: Ints,
        step: int,
        kind: int,
        group: Ints,
        start: Floats,
        end: Floats,
        transfer: Floats,
        compute: Floats,
        free: Floats,
        is_side: bool,
    ) -> int:
        """Add one operator on each of `rank` and return the row of the first one."""
        n = len(rank)
        elapse = end - start
        constant = np.ones(n)
        self._ops.append(
            (rank, constant * step, constant * kind, group, start, elapse, np.minimum(transfer, elapse),
             compute, free, constant * is_side)
        )  # fmt: skip
        first = self._n_ops
        self._n_ops += n
        return first

    def add_waits(self, rank: Ints, step: int, at: Floats, compute: Floats) -> None:
        """Add a wait for the second stream on each of `rank`."""
        self._waits.append((rank, np.full(len(rank), step), at, compute))

    def waits(self) -> Waits:
        """Return all waits, in the order in which they were added."""
        rank, step, at, compute = (
            (np.concatenate(parts) for parts in zip(*self._waits, strict=True))
            if self._waits
            else (np.zeros(0) for _ in range(4))
        )
        return Waits(rank.astype(np.int64), step.astype(np.int64), at, compute)

    def add_links(self, op: Ints, dst: Ints, transport: Ints, size: Floats, time: Floats) -> None:
        """Add one use of a link to each of the operator rows `op`."""
        packets = np.maximum(1.0, np.ceil(size / _PACKET_BYTES))
        self._links.append((op, dst, transport, packets * np.rint(size / packets), time, packets))

    def arrays(self, n_groups: int) -> tuple[Ops, LinkUses]:
        """Return everything, ordered by rank and start; operators are numbered in program order."""
        columns = [np.concatenate(parts) for parts in zip(*self._ops, strict=True)] if self._ops else []
        if not columns:
            columns = [np.zeros(0) for _ in range(_OP_COLUMNS)]
        rank, step, kind, group = (column.astype(np.int64) for column in columns[:4])
        start, elapse, transfer, compute, free, is_side = columns[4:]
        number = _running_number(rank * n_groups + group)
        order = np.lexsort((start, rank))
        ops = Ops(
            rank[order], step[order], kind[order], group[order], number[order], start[order], elapse[order],
            transfer[order], compute[order], free[order], is_side[order].astype(bool),
        )  # fmt: skip
        row_of = np.empty(len(order), dtype=np.int64)
        row_of[order] = np.arange(len(order))
        return ops, self._link_arrays(row_of)

    def _link_arrays(self, row_of: Ints) -> LinkUses:
        if not self._links:
            none = np.zeros(0, dtype=np.int64)
            return LinkUses(none, none, none, np.zeros(0), np.zeros(0), none)
        op, dst, transport, size, time, packets = (
            np.concatenate(parts) for parts in zip(*self._links, strict=True)
        )
        op = row_of[op.astype(np.int64)]
        order = np.argsort(op, kind="stable")
        return LinkUses(
            op[order],
            dst[order].astype(np.int64),
            transport[order].astype(np.int64),
            size[order],
            time[order],
            packets[order].astype(np.int64),
        )


def _running_number(key: Ints) -> Ints:
    """Return how many earlier rows have the same key."""
    order = np.argsort(key, kind="stable")
    sorted_key = key[order]
    first = np.r_[True, sorted_key[1:] != sorted_key[:-1]] if len(key) else np.zeros(0, dtype=bool)
    begin = np.maximum.accumulate(np.where(first, np.arange(len(key)), 0))
    number = np.empty(len(key), dtype=np.int64)
    number[order] = np.arange(len(key)) - begin
    return number
