"""Evidence of replicas on each call of their program: the work before it, and whom it meets."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import combined
from cluster_analysis.numeric.stats import median
from cluster_analysis.thresholds.common import HALFWAY
from cluster_analysis.thresholds.lost_messages import MOST_PACE_FACTOR, MOSTLY_SHARE
from cluster_analysis.thresholds.messages import TOGETHER_US
from cluster_analysis.thresholds.streams import MOST_OVERLAPPED, ROUNDED_US
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.pairing.ends import Program
from cluster_analysis.trace.pairing.program import Edges
from cluster_analysis.trace.pairing.slots import SEND


class Shown(Struct, frozen=True):
    """Evidence of replicas on each slot, (groups, slots), NaN where lost, in µs.

    `same` (V,) has one number for what replicas do at one place. `is_main` (V,) are calls of main streams,
    `main` the same in order. `earlier` is the one of them that had ended last on the rank when a slot's
    began, `later` the call that began first when that was over, -1 for none. `before_us` is the local time
    since `earlier`; `after_us` that until the next call begins, below 0 where the two overlap. `pace`
    (groups, slots) is how long the rank works compared with its replicas, and `work_us` (slots,) for how long
    they do so before a slot at a pace of 1. `partner` (slots,) is the other end of the message, -1 for none,
    and `between` (slots,) a number for the kind of call and its two stages. `quick_us` (slots,) is how long a
    call takes that waits for nobody: the quickest one of the same ends. `waits` are slots, and whom each does
    not leave before (M,).
    """

    calls: Calls
    same: IntArray
    is_main: BoolArray
    main: IntArray
    offset_us: FloatArray
    program: Program
    earlier: IntArray
    later: IntArray
    before_us: FloatArray
    after_us: FloatArray
    elapse_us: FloatArray
    pace: FloatArray
    work_us: FloatArray
    partner: IntArray
    between: IntArray
    quick_us: FloatArray
    waits: Edges

    @classmethod
    def of(
        cls, calls: Calls, same: IntArray, is_main: BoolArray, offset_us: FloatArray, program: Program
    ) -> Shown:
        """Take it of a step's calls, and a program with its messages."""
        family, table = program.family, program.family.table
        is_lost, main = table < 0, np.flatnonzero(is_main)
        n = len(calls)
        rank = calls.rank[table]
        later = np.minimum(table + 1, n - 1)
        has_later = ~is_lost & (table < n - 1) & (calls.rank[later] == rank)
        start, end = calls.start_us, calls.end_us
        earlier = _ended_before(calls, main, table)
        before = np.where(earlier >= 0, np.maximum(start[table] - end[earlier], 0.0), np.nan)
        after = np.where(has_later, start[later] - end[table], np.nan)
        elapse = np.where(is_lost, np.nan, calls.elapse_us[table])
        follows_hole = _follows_hole(family.stage, table, earlier)
        # A step's first call has no work before it.
        before = np.where((earlier >= 0) | is_lost, before, 0.0)
        earlier, before = np.where(follows_hole, -1, earlier), np.where(follows_hole, np.nan, before)
        # Work before messages may be next to nothing: that behind them is the rank's as well.
        worked = np.concatenate([before, np.maximum(after, 0.0)], axis=1)
        pace = _pace(np.r_[family.stage, family.stage], worked)[:, : len(family.stage)]
        partner = np.full(len(family.stage), -1)
        partner[program.edges[1]] = program.edges[0]
        unmatched = partner[program.edges[0]] < 0
        partner[program.edges[0][unmatched]] = program.edges[1][unmatched]
        other = np.where(partner >= 0, family.stage[partner], -1)
        _, between = combined(family.stage, family.kind, other + 1)
        quick = np.array(
            [np.nanmin(elapse[:, between == one], initial=np.inf) for one in range(int(between.max()) + 1)]
        )
        aligned = np.where(is_lost, np.nan, end[table] + offset_us[rank])
        return cls(
            calls, same, is_main, main, offset_us, program, earlier, _begun_after(calls, table), before,
            after, elapse, pace, _work_us(family.stage, other, before / pace), partner, between,
            quick[between], _waits(program, aligned, aligned - elapse),
        )  # fmt: skip

    @property
    def all_meet(self) -> bool:
        """Whether sends wait for their receivers: then all messages have two ends that leave together."""
        n_messages = len(self.program.edges[0])
        return len(self.waits[0]) - n_messages >= MOSTLY_SHARE * max(n_messages, 1)

    def other_end_us(self, row: int, slot: int, rank: int) -> float:
        """Return when the other end was over, on the rank's clock; NaN where that is lost too."""
        partner = int(self.partner[slot])
        return self.times_us(row, partner, rank)[1] if partner >= 0 else float("nan")

    def meeting_us(self, row: int, slot: int, rank: int) -> tuple[float, float]:
        """Return between which times, on a rank's clock, a call was over.

        It does not leave before those have come whom it waits for, and has met one by then who left later
        than all others explain. Nobody who waits for it leaves sooner than it comes. NaN where one of them is
        lost, -inf and inf where nobody tells.
        """
        (who, whom), kind = self.waits, self.program.family.kind
        since_us, until_us = -np.inf, np.inf
        for one in whom[who == slot].tolist():
            start, end = self.times_us(row, one, rank)
            theirs = whom[who == one]
            # A rank that sends without waiting leaves when all is sent, unless it receives as well.
            is_sent = slot not in theirs and kind[one] == SEND
            # Where all replicas wait the quickest one is none; but nothing took longer than its other end.
            through = end if is_sent else min(start + float(self.quick_us[slot]), end)
            since_us = float(np.maximum(since_us, through))
            if slot in theirs and np.isfinite(start):  # and that one waits for this
                until_us = min(until_us, end)
                further = [self.times_us(row, other, rank)[0] for other in theirs.tolist() if other != slot]
                if end > float(np.max([start, *further])) + float(self.quick_us[one]) + TOGETHER_US:
                    since_us = float(np.maximum(since_us, end))
        return since_us, until_us

    def times_us(self, row: int, slot: int, rank: int) -> tuple[float, float]:
        """Return when the call of a slot began and ended, on the clock of a rank; NaN where it is lost."""
        call = int(self.program.family.table[row, slot])
        if call < 0:
            return float("nan"), float("nan")
        shift = float(self.offset_us[self.calls.rank[call]] - self.offset_us[rank])
        return float(self.calls.start_us[call]) + shift, float(self.calls.end_us[call]) + shift


def _ended_before(calls: Calls, main: IntArray, table: IntArray) -> IntArray:
    """The call of its rank's main stream that had ended last when each one of a table began; -1 for none."""
    latest, found = np.full(table.shape, -np.inf), np.full(table.shape, -1)
    n_before = np.searchsorted(main, table)
    for back in range(1, MOST_OVERLAPPED + 1):
        one = main[np.maximum(n_before - back, 0)]
        end = calls.end_us[one]
        had_ended = (table >= 0) & (n_before >= back) & (calls.rank[one] == calls.rank[table])
        had_ended &= (end <= calls.start_us[table] + ROUNDED_US) & (end > latest)
        latest, found = np.where(had_ended, end, latest), np.where(had_ended, one, found)
    return found


def _begun_after(calls: Calls, table: IntArray) -> IntArray:
    """The call of the same rank that began first when each one of a table had ended; -1 for none."""
    n, found = len(calls), np.full(table.shape, -1)
    for ahead in range(MOST_OVERLAPPED, 0, -1):
        one = np.minimum(table + ahead, n - 1)
        begins = (table >= 0) & (table + ahead < n) & (calls.rank[one] == calls.rank[table])
        begins &= calls.start_us[one] >= calls.end_us[table] - ROUNDED_US
        found = np.where(begins, one, found)
    return found


def _waits(program: Program, end_us: FloatArray, start_us: FloatArray) -> Edges:
    """Which slots do not leave before which others have come: receivers, and senders where replicas show it.

    Args:
        program: its messages.
        end_us: when each call ended (groups, slots), on the clock of all, NaN where it is lost.
        start_us: when each began.
    """
    source, target = program.edges
    elapse_us = end_us - start_us
    quick_us = float(np.nanmin(elapse_us[:, source], initial=np.inf))
    # A rank that sends without waiting leaves before; or the message was there already, and takes no time.
    alone = end_us[:, source] < start_us[:, target] - TOGETHER_US
    alone |= elapse_us[:, target] < HALFWAY * quick_us
    n_known = np.isfinite(end_us[:, source] + start_us[:, target]).sum(axis=0)
    n_met = n_known - alone.sum(axis=0)
    is_met = (n_met >= MOSTLY_SHARE * n_known) & (n_met.sum() >= MOSTLY_SHARE * n_known.sum())
    return np.concatenate([target, source[is_met]]), np.concatenate([source, target[is_met]])


def _follows_hole(stage: IntArray, table: IntArray, earlier: IntArray) -> BoolArray:
    """Calls (groups, slots) before which their rank lacks another one: the time before them holds that.

    Args:
        stage: the stage of each slot (slots,).
        table: calls, -1 for none (groups, slots).
        earlier: the call that had ended last when each one began, -1 for none (groups, slots).
    """
    before = np.where(stage[1:] == stage[:-1], table[:, :-1], -1)
    known = (before >= 0) & (table[:, 1:] >= 0)
    is_next = known & (earlier[:, 1:] == before)
    n_known, n_next = known.sum(axis=0), is_next.sum(axis=0)
    # Where no replica has both, the stage's most frequent kind.
    usual = is_next.sum() > HALFWAY * known.sum()
    behind = np.zeros(table.shape, bool)
    behind[:, 1:] = (before < 0) & (stage[1:] == stage[:-1])
    behind[:, 1:] &= np.where(n_known > 0, n_next > HALFWAY * n_known, usual)
    return behind


def _work_us(stage: IntArray, other: IntArray, before_us: FloatArray) -> FloatArray:
    """How long ranks work before each slot (slots,); where no replica tells, before those of the same ends.

    Args:
        stage: the stage of each slot (slots,).
        other: the stage at the other end of its message, -1 for none (slots,).
        before_us: the work at a pace of 1, NaN where it is not known (groups, slots).
    """
    found = median(before_us, 0)
    for slot in np.flatnonzero(np.isnan(found)).tolist():
        alike = (stage == stage[slot]) & (other == other[slot])
        found[slot] = np.nan_to_num(median(before_us[:, alike].ravel()))
    return np.asarray(found)


def _pace(stage: IntArray, worked_us: FloatArray) -> FloatArray:
    """How long each rank works besides its messages, compared with its replicas, (groups, slots).

    Half of its work took so much longer, or more, and half less: a pause is not its pace.
    """
    usual = median(worked_us, 0)
    usual = np.where(np.isfinite(worked_us).sum(axis=0) > 1, usual, 0.0)
    pace = np.ones(worked_us.shape)
    for one in np.unique(stage):
        own = np.flatnonzero((stage == one) & (usual > 0))
        ratio = worked_us[:, own] / usual[own]
        order = np.argsort(ratio, axis=1)  # NaN goes last
        work = np.cumsum(np.take_along_axis(np.where(np.isnan(ratio), 0.0, usual[own]), order, 1), axis=1)
        for row in np.flatnonzero(work[:, -1:].any(axis=1)).tolist():
            middle = order[row, np.searchsorted(work[row], HALFWAY * work[row, -1])]
            pace[row, stage == one] = np.clip(ratio[row, middle], 1.0 / MOST_PACE_FACTOR, MOST_PACE_FACTOR)
    return pace
