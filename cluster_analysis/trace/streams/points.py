"""Points of a program at which calls are issued, put before the calls during which computing goes on.

A point is an operator of one rank that takes no time. The computing between two points is what a repair of
the rank shortens and what a quicker collective leaves as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import searchsorted_within
from cluster_analysis.tables.operations import record_of
from cluster_analysis.thresholds.calls import ENOUGH_PEERS, QUEUE_US, TOLERANCE_US
from cluster_analysis.thresholds.judging import SMALL_BYTES
from cluster_analysis.trace.evidence import StepOperators
from cluster_analysis.trace.streams.computing import Overlap, PeerRows, overlap_of

#: Name of points among groups and types.
POINT = "computing"
#: The number of a step, and where the calls of some of its ranks are, (ranks, places).
_Rows = tuple[int, IntArray]


class _AddedPoints(Struct):
    """Points found so far, and what calls count from: positions of calls, or `n_calls` + a point's number."""

    n_calls: int
    gap_us: FloatArray
    after: IntArray
    join: IntArray
    before: list[IntArray] = field(default_factory=list)
    points: list[tuple[IntArray, FloatArray, IntArray, BoolArray]] = field(default_factory=list)

    def add(
        self, before: IntArray, after: IntArray, gap_us: FloatArray, join: IntArray, *, waits_last: bool
    ) -> IntArray:
        """Put one point before a call of each rank, and return the points' numbers."""
        first = self.n_calls + sum(map(len, self.before))
        self.before.append(before)
        self.points.append((after, gap_us, join, np.full(len(before), waits_last)))
        return first + np.arange(len(before))


def points_alone(ranks: IntArray, step_us: FloatArray) -> StepOperators:
    """Return a step in which ranks (R,) do not communicate: each comes to its end by itself, at a point."""
    n, nothing = len(ranks), np.zeros(len(ranks))
    own, none, no = np.arange(n, dtype=np.int32), np.full(n, -1, np.int32), np.zeros(n, bool)
    return StepOperators(
        ranks, step_us, nothing, own, own, own, none, none, none, none, np.nan_to_num(step_us), nothing,
        no, no, no, no, no, np.zeros(n, np.int32), np.zeros(n, np.int32), own, np.full(n, np.nan), nothing,
        (POINT,), (POINT,),
    )  # fmt: skip


def with_points(steps: Sequence[StepOperators]) -> list[StepOperators]:
    """Return the steps with points where computing goes on during calls; unchanged without a queue."""
    added = {
        number: _AddedPoints(
            step.n_instances, step.instance_gap_us.copy(), step.instance_after.astype(np.int64),
            step.instance_join.astype(np.int64),
        )
        for number, step in enumerate(steps) if step.queue is not None
    }  # fmt: skip
    for rows in _of_one_program(steps):
        laid = _laid(steps, rows)
        overlap = overlap_of(laid)
        if overlap is None:
            continue
        begin = 0
        for number, at in rows:
            some = slice(begin, begin + len(at))
            queue = steps[number].queue
            assert queue is not None
            _add_points(added[number], at, laid.gathers, overlap.of(some), queue.left_late_us[at])
            begin += len(at)
    return [
        _put_in(step, added[number]) if number in added and added[number].before else step
        for number, step in enumerate(steps)
    ]


def _of_one_program(steps: Sequence[StepOperators]) -> Iterator[list[_Rows]]:
    """Rows of all steps that have the same stage and make as many calls, if enough ranks do."""
    found: dict[tuple[int, int], list[_Rows]] = {}
    for number, step in enumerate(steps):
        queue = step.queue
        if queue is None or not step.n_instances:
            continue
        main = np.flatnonzero(~step.instance_is_side)
        count = np.bincount(step.instance_rank[main], minlength=len(step.ranks))
        begin = np.cumsum(count) - count
        for one in np.unique(queue.stage).tolist():
            ranks = np.flatnonzero(
                (queue.stage == one)
                & np.isfinite(queue.covered_us)
                & (queue.computing_us + queue.idle_us > 0)
            )
            n = int(np.bincount(count[ranks]).argmax()) if len(ranks) else 0
            ranks = ranks[count[ranks] == n]
            if len(ranks) >= ENOUGH_PEERS and n > 1:
                at = main[begin[ranks][:, None] + np.arange(n)]
                found.setdefault((one, n), []).append((number, at))
    yield from found.values()


def _laid(steps: Sequence[StepOperators], rows: Sequence[_Rows]) -> PeerRows:
    starts, ends, recorded, totals = [], [], [], []
    for number, at in rows:
        step, row = steps[number], steps[number].instance_rank[at[:, 0]]
        assert step.queue is not None
        starts.append(step.queue.start_us[at])
        ends.append(step.queue.start_us[at] + step.instance_elapse_us[at])
        recorded.append(step.queue.is_recorded[at])
        totals.append([step.queue.covered_us[row], step.queue.computing_us[row], step.queue.idle_us[row]])
    first, at = steps[rows[0][0]], rows[0][1]
    operator = first.instance_operator[at[0]]
    gathers, reduces = (
        np.array([record_of(name).moves == what for name in first.types], bool)[first.operator_type[operator]]
        for what in ("weights", "gradients")
    )
    # A few numbers are no gradients: the norm of these is summed once they are there.
    reduces &= ~(first.operator_bytes[operator] < SMALL_BYTES)
    return PeerRows(
        np.concatenate(starts), np.concatenate(ends), np.concatenate(recorded),
        gathers, reduces, *np.concatenate(totals, axis=1),
    )  # fmt: skip


def _add_points(
    added: _AddedPoints, at: IntArray, gathers: BoolArray, overlap: Overlap, late_us: FloatArray
) -> None:
    """Put points before the calls of some ranks: two before each, so that all steps have the same ones.

    At the first one computing has gone as far as it does during the call before; the second is where the rank
    is done with what it does after that call, which it left `late_us` (ranks, places) behind the first.
    """
    nothing = np.zeros(len(at))
    none = np.full(len(at), -1)
    chain = none
    for place in range(at.shape[1]):
        call = at[:, place]
        own = added.gap_us[call] - late_us[:, place]
        side_call = added.join[call]  # what it waits for of a second stream
        ended = at[:, place - 1] if place else none
        worked = overlap.worked_us[:, place]
        if place == 0:
            first, own = added.add(call, added.after[call], own, none, waits_last=False), nothing
        elif overlap.runs_on[place]:
            # Computing needs the weights that were gathered before.
            awaited = at[:, place - 2] if place > 1 and gathers[place - 2] else none
            first, own = added.add(call, chain, worked, awaited, waits_last=False), nothing
        elif worked.any():
            first = added.add(call, chain, worked, ended, waits_last=True)
        else:
            first = added.add(call, added.after[call], worked, none, waits_last=False)
        chain = added.add(call, first, own, side_call, waits_last=True)
        added.after[call], added.join[call], added.gap_us[call] = chain, ended, late_us[:, place]


def _issue_beside(step: StepOperators, added: _AddedPoints) -> None:
    """Let side calls that begin beside a main call, which did not queue, count from the point before that."""
    assert step.queue is not None
    start, ended = step.queue.start_us, step.queue.start_us + step.instance_elapse_us
    main = np.flatnonzero(~step.instance_is_side)
    side = np.flatnonzero(step.instance_is_side & (added.after >= 0))
    issued = ended[added.after[side]] + added.gap_us[side]
    begin, end = np.searchsorted(step.instance_rank[main], step.instance_rank[side] + np.array([[0], [1]]))
    at = searchsorted_within(start[main], begin, end, issued + TOLERANCE_US, side="right") - 1
    beside, is_queued = main[at], start[main[at]] <= ended[main[at - 1]] + QUEUE_US
    own = (at > begin) & (beside > added.after[side]) & (added.after[beside] >= added.n_calls) & ~is_queued
    added.after[side[own]] = added.after[beside[own]]
    added.gap_us[side[own]] = np.maximum(issued - start[beside], 0.0)[own]


def _put_in(operators: StepOperators, added: _AddedPoints) -> StepOperators:
    """Return the operators with the points before their calls."""
    _issue_beside(operators, added)
    n, before = added.n_calls, np.concatenate(added.before)
    after, gap, join, waits_last = (np.concatenate(column) for column in zip(*added.points, strict=True))
    n_points, n_operators = len(before), len(operators.operator_group)
    # Points before a call stand in the order in which they were put there.
    by_call = np.argsort(before, kind="stable")
    place = np.full(n + n_points + 1, -1)
    place[:n] = np.arange(n) + np.cumsum(np.bincount(before, minlength=n))
    place[n + by_call] = before[by_call] + np.arange(n_points)
    order = np.empty(n + n_points, np.int64)
    order[place[:-1]] = np.arange(n + n_points)
    number = n_operators + np.arange(n_points)

    def column(own: Any, new: Any) -> Any:
        return np.concatenate([own, np.broadcast_to(new, n_points)])[order].astype(own.dtype)

    def positions(own: IntArray, new: Any) -> IntArray:
        moved_to = place[np.concatenate([own, np.broadcast_to(new, n_points)])]
        return np.asarray(moved_to[order], np.int32)

    def longer(own: Any, new: Any) -> Any:
        return np.concatenate([own, np.broadcast_to(new, n_points)]).astype(own.dtype)

    moved = {
        "instance_rank": column(operators.instance_rank, operators.instance_rank[before]),
        "instance_operator": column(operators.instance_operator, number),
        "instance_by_operator": longer(place[operators.instance_by_operator], place[n : n + n_points]).astype(
            np.int32
        ),
        "instance_after": positions(added.after, after),
        "instance_join": positions(added.join, join),
        "instance_gap_us": column(added.gap_us, gap),
        "instance_elapse_us": column(operators.instance_elapse_us, 0.0),
        "instance_sender": positions(operators.instance_sender, -1),
        "instance_receiver": positions(operators.instance_receiver, -1),
        "instance_waits_last": column(operators.instance_waits_last, waits_last),
        **{
            f"instance_is_{what}": column(getattr(operators, f"instance_is_{what}"), False)
            for what in ("send", "receive", "p2p", "side")
        },
        "operator_group": longer(operators.operator_group, len(operators.groups)),
        "operator_type": longer(operators.operator_type, len(operators.types)),
        "operator_place": longer(operators.operator_place, np.arange(n_points)),
        "operator_bytes": longer(operators.operator_bytes, np.nan),
        "operator_transfer_us": longer(operators.operator_transfer_us, 0.0),
    }
    return replace(operators, groups=(*operators.groups, POINT), types=(*operators.types, POINT), **moved)
