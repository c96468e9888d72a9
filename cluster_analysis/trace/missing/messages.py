"""Sends and receives that a rank's files lack, by the program that its pipeline runs.

Replicas run one program: a slot that most of them fill and one does not was lost there. The call lay between
the rank's own calls around it. When it ended the other end of the message tells, where both leave together;
when it began the work before it does, as long as the replicas' at this rank's pace.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import combined
from cluster_analysis.numeric.stats import median
from cluster_analysis.thresholds.lost_messages import (
    MAX_MISSING_SHARE,
    MOST_PACE_FACTOR,
    MOSTLY_SHARE,
    N_ASKED,
    N_FURTHER,
    WAITED_FACTOR,
)
from cluster_analysis.thresholds.messages import TOGETHER_US
from cluster_analysis.thresholds.streams import MOST_OVERLAPPED, ROUNDED_US
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.missing.record import MissingCall
from cluster_analysis.trace.pairing.ends import Program
from cluster_analysis.trace.pairing.slots import SEND


def missing_messages(
    calls: Calls, operator: IntArray, offset_us: FloatArray, programs: Sequence[Program]
) -> list[MissingCall]:
    """Return the messages that half of the replicas have and some lack.

    Args:
        calls: the step's calls.
        operator: the operator of each call (V,).
        offset_us: what to add to each rank's clock to compare it with others (ranks,).
        programs: what the groups run.
    """
    lost_of = [_lost(program) for program in programs]
    found: list[MissingCall] = []
    if not any(lost.any() for lost in lost_of):
        return found
    first = np.full(len(calls.groups), len(calls))
    np.minimum.at(first, calls.group, operator)
    # What replicas do at one place: kinds of calls by their place in a group.
    _, same = combined(calls.kind, operator - first[calls.group])
    for number, (program, lost) in enumerate(zip(programs, lost_of, strict=True)):
        if lost.any():
            slots = _Slots.of(calls, same, offset_us, program)
            found += [slots.missing(number, row, slot) for row, slot in np.argwhere(lost).tolist()]
    return found


def _lost(program: Program) -> BoolArray:
    """Slots (groups, slots) that half of the groups fill, and a rank that has most of its others does not."""
    family = program.family
    is_there = family.table >= 0
    usual = 2 * is_there.sum(axis=0) >= len(is_there)
    lost = ~is_there & usual
    for stage in range(family.n_stages):
        own = family.stage == stage
        lost[np.ix_(lost[:, own].sum(axis=1) > MAX_MISSING_SHARE * (usual & own).sum(), own)] = False
    return np.asarray(lost & (family.ranks[:, family.stage] >= 0))


class _Slots(Struct, frozen=True):
    """What replicas show of each slot, (groups, slots), NaN where lost, in µs.

    `same` (V,) has one number for what replicas do at one place. `earlier` is the call of the rank that had
    ended last when a slot's began, `later` the one that began first when that was over, -1 for none.
    `before_us` is the local time since `earlier`; `after_us` that until the next call begins, below 0 where
    the two overlap. `pace` (groups, slots) is how long the rank works compared with its replicas.
    `partner` (slots,) is the other end of the message, -1 for none, and `leaves_together` whether both end at
    one time.
    """

    calls: Calls
    same: IntArray
    offset_us: FloatArray
    program: Program
    earlier: IntArray
    later: IntArray
    before_us: FloatArray
    after_us: FloatArray
    elapse_us: FloatArray
    pace: FloatArray
    partner: IntArray
    leaves_together: BoolArray

    @classmethod
    def of(cls, calls: Calls, same: IntArray, offset_us: FloatArray, program: Program) -> _Slots:
        family, table = program.family, program.family.table
        is_lost = table < 0
        n = len(calls)
        rank = calls.rank[table]
        later = np.minimum(table + 1, n - 1)
        has_later = ~is_lost & (table < n - 1) & (calls.rank[later] == rank)
        start, end = calls.start_us, calls.end_us
        earlier = _ended_before(calls, table)
        before = np.where(earlier >= 0, np.maximum(start[table] - end[earlier], 0.0), np.nan)
        after = np.where(has_later, start[later] - end[table], np.nan)
        elapse = np.where(is_lost, np.nan, calls.elapse_us[table])
        partner = np.full(len(family.stage), -1)
        partner[program.edges[1]] = program.edges[0]
        unmatched = partner[program.edges[0]] < 0
        partner[program.edges[0][unmatched]] = program.edges[1][unmatched]
        aligned = np.where(is_lost, np.nan, end[table] + offset_us[rank])
        apart = np.abs(aligned - aligned[:, partner])
        with np.errstate(invalid="ignore"):
            share = np.sum(apart < TOGETHER_US, axis=0) / np.maximum(np.isfinite(apart).sum(axis=0), 1)
        return cls(
            calls, same, offset_us, program, earlier, _begun_after(calls, table), before, after, elapse,
            _pace(family.stage, before), partner, (partner >= 0) & (share >= MOSTLY_SHARE),
        )  # fmt: skip

    @property
    def all_meet(self) -> bool:
        """Whether sends wait for their receivers: then all messages have two ends that leave together."""
        paired = self.partner >= 0
        return bool(paired.any() and self.leaves_together[paired].mean() >= MOSTLY_SHARE)

    def missing(self, number: int, row: int, slot: int) -> MissingCall:
        """Make up the call of a slot in a group."""
        family = self.program.family
        rank = int(family.ranks[row, family.stage[slot]])
        source = int(family.table[np.flatnonzero(family.table[:, slot] >= 0)[0], slot])
        usual_us, shortest_us = (
            float(median(self.elapse_us[:, slot])),
            float(np.nanmin(self.elapse_us[:, slot])),
        )
        pace = float(self.pace[row, slot])
        before_us, after_us = (
            float(np.nan_to_num(median(one[:, slot]))) for one in (self.before_us, self.after_us)
        )
        work_us, rest_us = before_us * pace, max(after_us, 0.0) * pace
        only_sends = self._only_sends(slot)
        met_us = self._met_us(row, slot, rank)
        is_met = np.isfinite(met_us) and (bool(self.leaves_together[slot]) or self._was_awaited(row, slot))
        # Calls that begin later than this came after it, even if it overlaps them.
        is_beside = is_met and self.all_meet
        beside_us = met_us + min(after_us, 0.0) - 0.5 * TOGETHER_US if is_beside else np.nan
        begin_us, until_us = self._room(row, slot, rank, beside_us)
        # It may overlap its neighbour where the replicas' calls do.
        until_us -= min(after_us, 0.0)
        if is_met and not only_sends:
            until_us = max(until_us, self._begun_us(slot, rank, begin_us))
        length = until_us - begin_us
        shortest_us = min(shortest_us, length)
        if is_met:
            end = met_us if self.all_meet else min(max(met_us, begin_us + shortest_us), until_us)
        elif only_sends:
            usual_us = min(usual_us, length)
            end = begin_us + min(work_us, length - usual_us) + usual_us
            if self._follows_another(source, rank, begin_us):
                end = max(end, until_us - rest_us)
            shortest_us = usual_us
        elif np.isfinite(met_us):
            end = min(max(met_us, begin_us + work_us + shortest_us), until_us)
        else:
            end = max(until_us - rest_us, begin_us + shortest_us)
        start = min(begin_us + work_us, end - shortest_us)
        longest_us = float(np.nanmax(self.elapse_us[:, slot]))
        if only_sends and longest_us < WAITED_FACTOR * usual_us:  # it waits for no receiver
            start = max(begin_us, end - usual_us)
        group = int(self.calls.group[_of_group(family.table[row], source)])
        return MissingCall(
            rank, group, source, start, end, begin_us, end - shortest_us, place=(number, row, slot)
        )

    def _only_sends(self, slot: int) -> bool:
        """Whether a call sends and does not receive; of a batch its messages tell."""
        source, target = self.program.edges
        return bool(self.program.family.kind[slot] == SEND or (slot in source and slot not in target))

    def _follows_another(self, source: int, rank: int, begin_us: float) -> bool:
        """Whether what a replica did just before is lost here: then the work before it is not known."""
        own = self.calls.of_rank(rank)
        before = own.start + int(np.argmin(np.abs(self.calls.end_us[own] - begin_us)))
        after = min(before + 1, own.stop - 1)
        is_message = self.calls.is_point_to_point
        is_known_after = (
            bool(self.same[after] == self.same[source + 1]) if source + 1 < len(self.same) else False
        )
        is_known_before = bool(self.same[before] == self.same[source - 1] or is_message[source - 1])
        return is_known_after and not is_known_before

    def _met_us(self, row: int, slot: int, rank: int) -> float:
        """When the other end was over, on the rank's clock; NaN where that is lost too."""
        partner = self.partner[slot]
        other = int(self.program.family.table[row, partner]) if partner >= 0 else -1
        if other < 0:
            return float("nan")
        return float(self.calls.end_us[other] + self.offset_us[self.calls.rank[other]] - self.offset_us[rank])

    def _was_awaited(self, row: int, slot: int) -> bool:
        """Whether the other end waited for the message: then it left when that was there."""
        partner = self.partner[slot]
        if self.program.family.kind[partner] == SEND:
            return False
        lasted, shortest = self.elapse_us[row, partner], np.nanmin(self.elapse_us[:, partner])
        return bool(lasted > WAITED_FACTOR * shortest + TOGETHER_US)

    def _room(self, row: int, slot: int, rank: int, beside_us: float) -> tuple[float, float]:
        """Between which of the rank's own calls it lay: the end of one, and the start of the next."""
        own = self.calls.of_rank(rank)
        table, family = self.program.family.table[row], self.program.family
        alike = family.stage == family.stage[slot]
        if np.isfinite(beside_us):
            # Sends wait beside other calls, so that numbers are in the order of time between two ranks alone.
            other = np.where(self.partner >= 0, family.stage[self.partner], -1)
            alike &= (family.kind == family.kind[slot]) & (other == other[slot])
        inside = np.flatnonzero(alike & (table >= 0))
        first = int(table[inside[inside < slot]].max(initial=own.start - 1))
        last = int(table[inside[inside > slot]].min(initial=own.stop))
        if last <= first:  # starts on two streams: their numbers are not in the order of time
            last = min(first + 1, own.stop)
        before = self._call_before(slot, first, last)
        if np.isfinite(beside_us):
            begun = self.calls.start_us[first + 1 : last]
            before = first + int(np.searchsorted(begun, beside_us))
        before = min(max(before, first), last - 1)
        until = float(self.calls.start_us[before + 1]) if before + 1 < own.stop else np.inf
        begin = self._ended_us(row, slot, range(max(first - MOST_OVERLAPPED, own.start), before + 1), until)
        if not np.isfinite(begin):
            begin = until - float(
                np.nansum([median(self.elapse_us[:, slot]), median(self.after_us[:, slot])])
            )
        if not np.isfinite(until):
            until = np.fmax(begin + float(median(self.elapse_us[:, slot])), beside_us + TOGETHER_US)
        return begin, max(begin, until)

    def _ended_us(self, row: int, slot: int, inside: range, until_us: float) -> float:
        """When a rank ended the call that the replicas had ended last before a slot, of those inside.

        Where it lacks that one too, when it ended its last one. Those that are still under way when the next
        call begins are on another stream.
        """
        ends = self.calls.end_us[inside.start : inside.stop]
        ends = np.where(ends <= until_us + ROUNDED_US, ends, -np.inf)
        asked = self.earlier[:, slot]
        found = self._of_replicas(asked, self.same[inside.start : inside.stop], ends)
        if not np.isfinite(found):  # a message: the rank's own of that slot
            own = self.program.family.table[row, self._slots_of(asked)]
            here = own[(own >= inside.start) & (own < inside.stop)] - inside.start
            found = float(np.median(ends[here])) if len(here) else -np.inf
        return found if np.isfinite(found) else float(ends.max(initial=-np.inf))

    def _slots_of(self, calls: IntArray) -> IntArray:
        """The slots of those of some replicas' calls that are messages of the program."""
        table = self.program.family.table
        rows, slots = np.nonzero(np.isin(table, calls[calls >= 0]))
        return np.asarray(slots[np.lexsort((slots, rows))][:N_ASKED])

    def _begun_us(self, slot: int, rank: int, since_us: float) -> float:
        """When a rank began the call that replicas begin first when a slot's is over; -inf: it lacks that."""
        own = self.calls.of_rank(rank)
        starts = self.calls.start_us[own]
        starts = np.where(starts >= since_us, -starts, -np.inf)
        found = -self._of_replicas(self.later[:, slot], self.same[own], starts)
        return found if np.isfinite(found) else -np.inf

    def _of_replicas(self, asked: IntArray, same: IntArray, times_us: FloatArray) -> float:
        """The latest time of a rank's calls (N,) that are the same as a replica's; -inf where it has none.

        Args:
            asked: calls of replicas, -1 for none.
            same: which calls the rank's are.
            times_us: their times, -inf for those that are not meant.
        """
        asked = asked[(asked >= 0) & ~self.calls.is_point_to_point[asked]][:N_ASKED]
        found = [times_us[same == one].max(initial=-np.inf) for one in self.same[asked]]
        known = [one for one in found if np.isfinite(one)]
        return float(np.median(known)) if known else -np.inf

    def _call_before(self, slot: int, first: int, last: int) -> int:
        """The last of a rank's calls between two that comes before a slot in the replicas' order."""
        inside = self.same[first + 1 : last]
        before = [first]
        for call in self.program.family.table[:, slot][self.program.family.table[:, slot] >= 0][
            :N_ASKED
        ].tolist():
            begin = self.calls.of_rank(int(self.calls.rank[call])).start
            near = self.same[max(call - len(inside) - N_FURTHER, begin) : call]
            at = np.flatnonzero(np.isin(inside, near))
            before.append(first + 1 + int(at[-1]) if len(at) else first)
        return int(np.median(before[1:])) if len(before) > 1 else first


def _of_group(row: IntArray, source: int) -> int:
    """Return a call of the group whose row this is; one that is elsewhere where it has none."""
    present = row[row >= 0]
    return int(present[0]) if len(present) else source


def _ended_before(calls: Calls, table: IntArray) -> IntArray:
    """The call of the same rank that had ended last when each one of a table began; -1 for none."""
    latest, found = np.full(table.shape, -np.inf), np.full(table.shape, -1)
    for back in range(1, MOST_OVERLAPPED + 1):
        one = np.maximum(table - back, 0)
        end = calls.end_us[one]
        had_ended = (table >= back) & (calls.rank[one] == calls.rank[table])
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


def _pace(stage: IntArray, before_us: FloatArray) -> FloatArray:
    """How long each rank works before its messages compared with its replicas, (groups, slots)."""
    usual = median(before_us, 0)
    pace = np.ones(before_us.shape)
    for one in np.unique(stage):
        own = np.flatnonzero(stage == one)
        both = np.isfinite(before_us[:, own]) & np.isfinite(usual[own])
        worked = np.where(both, before_us[:, own], 0.0).sum(axis=1)
        expected = np.where(both, usual[own], 0.0).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where((expected > 0) & (worked > 0), worked / expected, 1.0)
        pace[:, own] = np.clip(ratio, 1.0 / MOST_PACE_FACTOR, MOST_PACE_FACTOR)[:, None]
    return pace
