"""One run through the blocks of a job: when each operator ends with these local times and transfers.

Local times are kept by *entry*: one for each instance, but one, the longest, for all members of an operator
that come together. An entry is formed once, and again only if a scenario changes it.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import distinct
from cluster_analysis.replay.order import Block, Partners, ReplayOrder


class Meeting(Struct, frozen=True):
    """Messages of a block, `at`, that wait for their partners, which lie at `place`.

    `arrival` is where the partners' own arrivals are found, None where one of them is only formed later.
    """

    at: slice | IntArray
    arrival: IntArray | None
    entry: IntArray
    partners: Partners


class Stage(Struct, frozen=True):
    """One block in a pass: rows of its operators, entries of its local times, rows that these count from.

    `joins` and `late_joins` are those of the block. `arrivals` is where those of its messages are kept.
    """

    block: Block
    rows: slice
    entries: slice
    after: IntArray
    joins: slice | IntArray
    late_joins: slice | IntArray
    arrivals: slice
    meetings: tuple[Meeting, ...]


class Entries(Struct, frozen=True):
    """Where local times lie by entry; `n_messages` are there in all.

    By block, and last for members without one (B + 1,): its first `place` and `entry`, its `n_operators` and
    `n_members`, and whether its members come together. `own_at` are places of messages that last `own_us`.
    """

    order: ReplayOrder
    stages: tuple[Stage, ...]
    n: int
    n_messages: int
    place: IntArray
    entry: IntArray
    n_operators: IntArray
    n_members: IntArray
    is_joint: BoolArray
    own_at: IntArray
    own_us: FloatArray

    def local_us(self, gap_us: FloatArray) -> FloatArray:
        """Return the local times (n,) of instances with these gaps (V,), in µs."""
        by_place = gap_us[self.order.instances]
        local = np.empty(self.n)
        for stage in self.stages:
            block = stage.block
            own = by_place[block.begin : block.end]
            if block.is_joint:
                own.reshape(block.n_members, block.n_operators).max(axis=0, out=local[stage.entries])
            else:
                local[stage.entries] = own
        local[self.entry[-1] :] = by_place[self.place[-1] :]
        return local

    def changes(
        self, instances: IntArray, changed_us: FloatArray, gap_us: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """Return the entries that other gaps change, and their local times.

        Args:
            instances: whose gaps are others (N,), each once.
            changed_us: these gaps (N,).
            gap_us: the gaps of all instances, as they were (V,).
        """
        place = self.order.place[instances]
        block = np.searchsorted(self.place, place, side="right") - 1
        within = place - self.place[block]
        joint = self.is_joint[block]
        apart = ~joint
        entries, values = self.entry[block[apart]] + within[apart], changed_us[apart]
        if not joint.any():
            return entries, values
        block, within = block[joint], within[joint]
        member, number = np.divmod(within, self.n_operators[block])
        longest, of = distinct(self.entry[block] + number)
        one = np.empty(len(longest), np.intp)
        one[of] = np.arange(len(of))
        n_members, stride = self.n_members[block[one]], self.n_operators[block[one]]
        begin = np.cumsum(n_members) - n_members
        at = np.arange(int(n_members.sum())) - np.repeat(begin, n_members)
        places = np.repeat(self.place[block[one]] + number[one], n_members) + at * np.repeat(
            stride, n_members
        )
        own = gap_us[self.order.instances[places]]
        own[begin[of] + member] = changed_us[joint]
        return np.concatenate([entries, longest]), np.concatenate([values, np.maximum.reduceat(own, begin)])


def entries_of(order: ReplayOrder) -> Entries:
    """Return where local times lie for an order."""
    blocks = order.blocks
    is_joint = np.array([*(one.is_joint for one in blocks), False])
    is_messages = np.array([*(one.is_messages for one in blocks), False])
    n_operators = np.array([*(one.n_operators for one in blocks), 1])
    n_members = np.array([*(one.n_members for one in blocks), 1])
    counts = np.where(is_joint, 1, n_members) * n_operators
    entry = np.concatenate([[0], np.cumsum(counts[:-1])])
    arrival = np.concatenate([[0], np.cumsum(np.where(is_messages, counts, 0)[:-1])])
    place = np.array([0, *(one.end for one in blocks)])

    def meeting(block: Block, one: Partners) -> Meeting:
        # Partners are messages too, so that each has an entry of its own.
        of = np.searchsorted(place, one.place, side="right") - 1
        within = one.place - place[of]
        is_known = bool((is_messages[of] & (one.place < block.end)).all())
        return Meeting(_run(one.at), arrival[of] + within if is_known else None, entry[of] + within, one)

    stages = []
    for number, (block, count) in enumerate(zip(blocks, counts[:-1].tolist(), strict=True)):
        first = int(entry[number])
        stages.append(
            Stage(
                block,
                slice(block.first, block.first + block.n_operators),
                slice(first, first + count),
                order.after[block.begin : block.begin + count].astype(np.intp),
                _run(block.joins),
                _run(block.late_joins),
                slice(int(arrival[number]), int(arrival[number + 1])),
                tuple(meeting(block, one) for one in block.partners),
            )
        )
    own = [one for one in blocks if len(one.own_at)]
    own_at = np.concatenate([one.own_at + one.first for one in own]) if own else np.empty(0, np.intp)
    own_us = np.concatenate([one.own_us for one in own]) if own else np.empty(0)
    n = int(entry[-1]) + len(order.instances) - int(place[-1])
    return Entries(
        order, tuple(stages), n, int(arrival[-1]), place, entry, n_operators, n_members, is_joint,
        own_at, own_us,
    )  # fmt: skip


def _run(positions: IntArray) -> slice | IntArray:
    """Positions, sorted, as a slice where they follow each other: NumPy takes a fifth of the time for it."""
    if not len(positions):
        return slice(0, 0)
    first, last = int(positions[0]), int(positions[-1])
    return slice(first, last + 1) if last - first + 1 == len(positions) else positions


def ends_of(entries: Entries, local: FloatArray, moved: FloatArray, lead: FloatArray) -> FloatArray:
    """Return the end of every row of the order in µs, (rows,) of one scenario or (rows, K).

    Args:
        entries: where local times lie.
        local: them, (n,) of one scenario, else (n, K) or (n, 1).
        moved: transfers by place, likewise.
        lead: when each rank begins each step, (K, steps, ranks).
    """
    order, k = entries.order, len(lead)
    columns = (k,) if k > 1 else ()
    end = np.zeros((order.n_rows, *columns))
    end[order.nothing] = -np.inf
    begins = lead.reshape(k, -1)
    end[order.nothing + 1 :] = begins.T if k > 1 else begins[0]
    came = np.empty((entries.n_messages, *columns))
    lasts = moved.copy()
    lasts[entries.own_at] = entries.own_us if k == 1 else entries.own_us[:, None]
    for stage in entries.stages:
        block, own, transfers = stage.block, local[stage.entries], moved[stage.rows]
        if block.is_joint:
            latest = end.take(stage.after, axis=0)
            latest += own
            np.add(latest, transfers, out=end[stage.rows])
            continue
        arrive = arrivals(end, stage, own)
        if not block.is_messages:
            by_member = arrive.reshape(block.n_members, block.n_operators, *columns)
            np.add(by_member.max(axis=0), transfers, out=end[stage.rows])
            continue
        came[stage.arrivals] = arrive
        until = np.add(arrive, lasts[stage.rows], out=end[stage.rows])
        for one in stage.meetings:
            # Transfer time of a message, but not before it is there.
            come = _arrive(end, local, one) if one.arrival is None else came.take(one.arrival, axis=0)
            come += transfers[one.at]
            until[one.at] = np.maximum(until[one.at], come)
    return end


def arrivals(end: FloatArray, stage: Stage, own: FloatArray) -> FloatArray:
    """When the instances of a stage come, by their place in it: a local time after what they wait for."""
    arrive, block = end.take(stage.after, axis=0), stage.block
    if len(block.joins):
        arrive[stage.joins] = np.maximum(arrive[stage.joins], end.take(block.join_rows, axis=0))
    arrive += own
    if len(block.late_joins):
        late = end.take(block.late_join_rows, axis=0)
        arrive[stage.late_joins] = np.maximum(arrive[stage.late_joins], late)
    return arrive


def _arrive(end: FloatArray, local: FloatArray, meeting: Meeting) -> FloatArray:
    """When partners come: their local time after what they wait for, or during it where they wait last."""
    partners, gap = meeting.partners, local[meeting.entry]
    begun = end.take(partners.after, axis=0)
    if partners.join is None:
        return np.asarray(begun + gap)
    joined = end.take(partners.join, axis=0)
    arrive: FloatArray = np.maximum(begun, joined) + gap
    if partners.waits_last is not None:
        last = partners.waits_last if arrive.ndim == 1 else partners.waits_last[:, None]
        arrive = np.where(last, np.maximum(begun + gap, joined), arrive)
    return arrive
