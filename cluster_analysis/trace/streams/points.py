"""Points of a program at which calls are issued, put before the calls that computing goes on beside.

A point is an operator of one rank that takes no time. The computing between two points is what a repair of
the rank shortens and what a quicker collective leaves as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import begins
from cluster_analysis.thresholds.streams import ENOUGH_PEERS
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.evidence import StepOperators
from cluster_analysis.trace.streams.computing import Beside, Laid, beside

#: What points are called among groups and types.
POINT = "computing"


@dataclass
class _Woven:
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


def with_points(
    operators: StepOperators, calls: Calls, stage: IntArray, covered_us: FloatArray, local_us: FloatArray
) -> StepOperators:
    """Return the operators with points where computing goes on beside calls.

    Args:
        operators: of calls of which no two of a rank overlap.
        calls: the same calls.
        stage: pipeline stage of each rank (ranks,).
        covered_us: communication that computing covers (ranks,), NaN for unknown.
        local_us: what each rank computes and idles (ranks,).
    """
    woven = _Woven(
        len(calls), operators.instance_gap_us.copy(), operators.instance_after.astype(np.int64),
        operators.instance_join.astype(np.int64),
    )  # fmt: skip
    begin = np.flatnonzero(begins(calls.rank))
    count = np.diff(np.r_[begin, len(calls)])
    gathers = np.array(["gather" in name for name in calls.types], bool)
    for one in np.unique(stage).tolist():
        ranks = np.flatnonzero((stage == one) & np.isfinite(covered_us) & (local_us > 0))
        if len(ranks) < ENOUGH_PEERS:
            continue
        n = int(np.bincount(count[ranks]).argmax())
        ranks = ranks[count[ranks] == n]
        at = begin[ranks][:, None] + np.arange(n)
        laid = Laid(
            at,
            calls.start_us[at],
            calls.end_us[at],
            gathers[calls.kind[at[0]]],
            covered_us[ranks],
            local_us[ranks],
        )
        told = beside(laid) if len(ranks) >= ENOUGH_PEERS and n > 1 else None
        if told is not None:
            _weave(woven, laid, told)
    return _put_in(operators, woven) if woven.before else operators


def _weave(woven: _Woven, laid: Laid, told: Beside) -> None:
    """Put points before the calls of some ranks: two before each, so that all steps have the same ones.

    At the first one computing has gone as far as it does beside the call before; the second is where the rank
    is done with what it does after that call.
    """
    at, nothing = laid.at, np.zeros(len(laid.at))
    none = np.full(len(at), -1)
    chain = none
    for place in range(at.shape[1]):
        call, own = at[:, place], woven.gap_us[at[:, place]]
        ended = at[:, place - 1] if place else none
        worked = told.worked_us[:, place]
        if place == 0:
            first, own = woven.add(call, woven.after[call], own, none, waits_last=False), nothing
        elif told.runs_on[place]:
            # Whoever computes needs the weights that were gathered before.
            awaited = at[:, place - 2] if place > 1 and laid.gathers[place - 2] else none
            first, own = woven.add(call, chain, worked, awaited, waits_last=False), nothing
        elif worked.any():
            first = woven.add(call, chain, worked, ended, waits_last=True)
        else:
            first = woven.add(call, woven.after[call], worked, none, waits_last=False)
        chain = woven.add(call, first, own, none, waits_last=False)
        woven.after[call], woven.join[call], woven.gap_us[call] = chain, ended, 0.0


def _put_in(operators: StepOperators, woven: _Woven) -> StepOperators:
    """Return the operators with the points before their calls."""
    n, before = woven.n_calls, np.concatenate(woven.before)
    after, gap, join, waits_last = (np.concatenate(column) for column in zip(*woven.points, strict=True))
    n_points, n_operators = len(before), len(operators.operator_group)
    # Points before a call stand in the order in which they were put there.
    order = np.lexsort((np.r_[np.full(n, n_points), np.arange(n_points)], np.r_[np.arange(n), before]))
    place = np.empty(n + n_points + 1, np.int64)
    place[order] = np.arange(n + n_points)
    place[-1] = -1
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
        "instance_after": positions(woven.after, after),
        "instance_join": positions(woven.join, join),
        "instance_gap_us": column(woven.gap_us, gap),
        "instance_elapse_us": column(operators.instance_elapse_us, 0.0),
        "instance_sender": positions(operators.instance_sender, -1),
        "instance_receiver": positions(operators.instance_receiver, -1),
        "instance_waits_last": column(operators.instance_waits_last | (woven.join >= 0), waits_last),
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
