"""Collects what happens in a simulation, batch by batch, and makes arrays of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cluster_simulate.job.arrays import Floats, Ints
from cluster_simulate.job.job import LinkUses, Ops, Waits

#: Larger messages go in packets of at most this.
_PACKET_BYTES = 125.82912e6


class Recorder:
    """Batches of operators, waits and link uses. An operator's number is the order in which it was added."""

    def __init__(self) -> None:
        self._ops: list[Ops] = []
        self._links: list[LinkUses] = []
        self._waits: list[Waits] = []
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
        first, n, elapse = self._n_ops, len(rank), end - start
        # They are numbered when all are there.
        self._ops.append(
            Ops(
                rank, np.full(n, step), np.full(n, kind), group, np.zeros(n, np.int64), start, elapse,
                np.minimum(transfer, elapse), compute, free, np.full(n, is_side),
            )
        )  # fmt: skip
        self._n_ops += n
        return first

    def add_waits(self, rank: Ints, step: int, at: Floats, compute: Floats) -> None:
        """Add a wait for the second stream on each of `rank`."""
        self._waits.append(Waits(rank, np.full(len(rank), step), at, compute))

    def waits(self) -> Waits:
        """Return all waits, in the order in which they were added."""
        return Waits.joined(self._waits)

    def add_links(self, op: Ints, dst: Ints, transport: Ints, size: Floats, time: Floats) -> None:
        """Add one use of a link to each of the operator rows `op`."""
        packets = np.maximum(1.0, np.ceil(size / _PACKET_BYTES))
        whole = packets * np.rint(size / packets)
        self._links.append(LinkUses(op, dst, transport, whole, time, packets.astype(np.int64)))

    def arrays(self, n_groups: int) -> tuple[Ops, LinkUses]:
        """Return everything, ordered by rank and start; operators are numbered in program order."""
        ops, links = Ops.joined(self._ops), LinkUses.joined(self._links)
        ops = replace(ops, number=_running_number(ops.rank * n_groups + ops.group))
        order = np.lexsort((ops.start_us, ops.rank))
        row_of = np.empty(len(order), dtype=np.int64)
        row_of[order] = np.arange(len(order))
        links = replace(links, op=row_of[links.op])
        return ops.at(order), links.at(np.argsort(links.op, kind="stable"))


def _running_number(key: Ints) -> Ints:
    """Return how many earlier rows have the same key."""
    order = np.argsort(key, kind="stable")
    sorted_key = key[order]
    first = np.r_[True, sorted_key[1:] != sorted_key[:-1]] if len(key) else np.zeros(0, dtype=bool)
    begin = np.maximum.accumulate(np.where(first, np.arange(len(key)), 0))
    number = np.empty(len(key), dtype=np.int64)
    number[order] = np.arange(len(key)) - begin
    return number
