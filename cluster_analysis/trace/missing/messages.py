"""Sends and receives that a rank's files lack, by the program that its pipeline runs.

Replicas run one program: a slot that most of them fill and one does not was lost there. The call lay between
the rank's own calls around it. When it ended the other end of the message tells, where both leave together;
when it began the work before it does, as long as the replicas' at this rank's pace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.stats import median
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.missing.record import Lacking
from cluster_analysis.trace.pairing.ends import TOGETHER_US, Program
from cluster_analysis.trace.pairing.slots import SEND

#: A rank that lacks more of its messages than this did something else than its stage.
_MAX_LACKING = 0.3
#: Two ends leave together that do so in this share of the replicas.
_MOSTLY = 0.5
#: A rank works at most so much faster or slower than its replicas.
_MOST_PACE = 10.0


def lacking_messages(calls: Calls, offset_us: FloatArray, programs: Sequence[Program]) -> list[Lacking]:
    """Return the messages that most replicas have and some lack.

    Args:
        calls: the step's calls.
        offset_us: what to add to each rank's clock to compare it with others (ranks,).
        programs: what the groups run.
    """
    found: list[Lacking] = []
    for number, program in enumerate(programs):
        lost = _lost(program)
        if lost.any():
            slots = _Slots.of(calls, offset_us, program)
            found += [slots.lacking(number, row, slot) for row, slot in np.argwhere(lost).tolist()]
    return found


def _lost(program: Program) -> BoolArray:
    """Slots (groups, slots) that half of the groups fill, and one whose rank has most of its others does not."""
    family = program.family
    is_there = family.table >= 0
    usual = 2 * is_there.sum(axis=0) >= len(is_there)
    lost = ~is_there & usual
    for stage in range(family.n_stages):
        own = family.stage == stage
        lost[np.ix_(lost[:, own].sum(axis=1) > _MAX_LACKING * (usual & own).sum(), own)] = False
    return lost & (family.ranks[:, family.stage] >= 0)


@dataclass(frozen=True)
class _Slots:
    """What replicas show of each slot, (groups, slots), NaN where lost, in µs.

    `before_us` and `after_us` are the local times around a call, `n_before` how many other calls its rank made
    since its last message. `pace` (groups, slots) is how long the rank works compared with its replicas.
    `partner` (slots,) is the other end of the message, -1 for none, and `leaves_together` whether both end at
    one time.
    """

    calls: Calls
    offset_us: FloatArray
    program: Program
    before_us: FloatArray
    after_us: FloatArray
    elapse_us: FloatArray
    n_before: FloatArray
    pace: FloatArray
    partner: IntArray
    leaves_together: BoolArray

    @classmethod
    def of(cls, calls: Calls, offset_us: FloatArray, program: Program) -> _Slots:
        family, table = program.family, program.family.table
        is_lost = table < 0
        n = len(calls)
        rank, last = calls.rank[table], np.maximum.accumulate(np.where(is_lost, -1, table), axis=1)
        earlier, later = np.maximum(table - 1, 0), np.minimum(table + 1, n - 1)
        has_earlier = ~is_lost & (table > 0) & (calls.rank[earlier] == rank)
        has_later = ~is_lost & (table < n - 1) & (calls.rank[later] == rank)
        start, end = calls.start_us, calls.end_us
        before = np.where(has_earlier, np.maximum(start[table] - end[earlier], 0.0), np.nan)
        after = np.where(has_later, np.maximum(start[later] - end[table], 0.0), np.nan)
        elapse = np.where(is_lost, np.nan, calls.elapse_us[table])
        previous = np.c_[np.full(len(table), -1), last[:, :-1]]
        follows = (previous >= 0) & (np.r_[-1, family.stage[:-1]] == family.stage)
        adjacent = np.c_[np.zeros(len(table), bool), ~is_lost[:, :-1]]
        n_before = np.where(~is_lost & follows & adjacent, table - previous - 1, np.nan)
        partner = np.full(len(family.stage), -1)
        partner[program.edges[1]] = program.edges[0]
        unmatched = partner[program.edges[0]] < 0
        partner[program.edges[0][unmatched]] = program.edges[1][unmatched]
        aligned = np.where(is_lost, np.nan, end[table] + offset_us[rank])
        apart = np.abs(aligned - aligned[:, partner])
        with np.errstate(invalid="ignore"):
            share = np.sum(apart < TOGETHER_US, axis=0) / np.maximum(np.isfinite(apart).sum(axis=0), 1)
        return cls(
            calls, offset_us, program, before, after, elapse, n_before, _pace(family.stage, before),
            partner, (partner >= 0) & (share >= _MOSTLY),
        )  # fmt: skip

    def lacking(self, number: int, row: int, slot: int) -> Lacking:
        """Make up the call of a slot in a group."""
        family = self.program.family
        rank = int(family.ranks[row, family.stage[slot]])
        source = int(family.table[np.flatnonzero(family.table[:, slot] >= 0)[0], slot])
        usual_us, shortest_us = (
            float(median(self.elapse_us[:, slot])),
            float(np.nanmin(self.elapse_us[:, slot])),
        )
        pace = float(self.pace[row, slot])
        work_us = float(np.nan_to_num(median(self.before_us[:, slot]))) * pace
        rest_us = float(np.nan_to_num(median(self.after_us[:, slot]))) * pace
        met_us = self._met_us(row, slot, rank)
        begin_us, until_us = self._room(row, slot, rank, met_us)
        length = until_us - begin_us
        shortest_us = min(shortest_us, length)
        if np.isfinite(met_us) and self.leaves_together[slot]:
            end = min(max(met_us, begin_us + shortest_us), until_us)
        elif family.kind[slot] == SEND:
            usual_us = min(usual_us, length)
            end = begin_us + min(work_us, length - usual_us) + usual_us
            shortest_us = usual_us
        elif np.isfinite(met_us):
            end = min(max(met_us, begin_us + work_us + shortest_us), until_us)
        else:
            end = max(until_us - rest_us, begin_us + shortest_us)
        start = min(begin_us + work_us, end - shortest_us)
        group = int(self.calls.group[_of_group(family.table[row], source)])
        return Lacking(
            rank, group, source, start, end, begin_us, end - shortest_us, place=(number, row, slot)
        )

    def _met_us(self, row: int, slot: int, rank: int) -> float:
        """When the other end was over, on the rank's clock; NaN where that is lost too."""
        partner = self.partner[slot]
        other = int(self.program.family.table[row, partner]) if partner >= 0 else -1
        if other < 0:
            return float("nan")
        return float(self.calls.end_us[other] + self.offset_us[self.calls.rank[other]] - self.offset_us[rank])

    def _room(self, row: int, slot: int, rank: int, met_us: float) -> tuple[float, float]:
        """Between which of the rank's own calls it lay: the end of one, and the start of the next."""
        own = self.calls.of_rank(rank)
        table, family = self.program.family.table[row], self.program.family
        inside = np.flatnonzero((family.stage == family.stage[slot]) & (table >= 0))
        first = int(table[inside[inside < slot]].max(initial=own.start - 1))
        last = int(table[inside[inside > slot]].min(initial=own.stop))
        if last <= first:  # starts on two streams: their numbers are not in the order of time
            last = min(first + 1, own.stop)
        n_before = median(self.n_before[:, slot])
        before = first + (int(n_before) if np.isfinite(n_before) else 0)
        if np.isfinite(met_us) and self.leaves_together[slot]:
            begun = self.calls.start_us[first + 1 : last]
            before = first + int(np.searchsorted(begun, met_us - 0.5 * TOGETHER_US))
        before = min(max(before, first), last - 1)
        begin = float(self.calls.end_us[before]) if before >= own.start else -np.inf
        until = float(self.calls.start_us[before + 1]) if before + 1 < own.stop else np.inf
        if not np.isfinite(begin):
            begin = until - float(
                np.nansum([median(self.elapse_us[:, slot]), median(self.after_us[:, slot])])
            )
        if not np.isfinite(until):
            until = (
                max(begin, met_us) if np.isfinite(met_us) else begin + float(median(self.elapse_us[:, slot]))
            )
        return begin, max(begin, until)


def _of_group(row: IntArray, source: int) -> int:
    """Return a call of the group whose row this is; one that is elsewhere where it has none."""
    present = row[row >= 0]
    return int(present[0]) if len(present) else source


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
        pace[:, own] = np.clip(ratio, 1.0 / _MOST_PACE, _MOST_PACE)[:, None]
    return pace
