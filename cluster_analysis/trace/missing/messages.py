"""Sends and receives that a rank's files lack, by the program that its pipeline runs.

Replicas run one program: a slot that most of them fill and one does not was lost there. The call lay between
the rank's own calls around it, as `rooms` says. It began after the work before it, as long as the replicas'
at this rank's pace. Its end follows from the calls that it met, by the waiting in `shown`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import combined
from cluster_analysis.numeric.stats import median
from cluster_analysis.thresholds.lost_messages import MAX_MISSING_SHARE
from cluster_analysis.thresholds.messages import TOGETHER_US
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.missing.clocks import offsets_by_messages
from cluster_analysis.trace.missing.record import MissingCall
from cluster_analysis.trace.missing.rooms import Rooms
from cluster_analysis.trace.missing.shown import Shown
from cluster_analysis.trace.pairing.ends import Program
from cluster_analysis.trace.pairing.slots import BATCH


def missing_messages(
    calls: Calls,
    operator: IntArray,
    offset_us: FloatArray,
    programs: Sequence[Program],
    purpose: IntArray,
    is_side: BoolArray | None = None,
) -> list[MissingCall]:
    """Return the messages that half of the replicas have and some lack.

    Args:
        calls: the step's calls.
        operator: the operator of each call (V,).
        offset_us: what to add to each rank's clock to compare it with others (ranks,).
        programs: what the groups run.
        purpose: a number for each group (groups,), the same for those that serve alike.
        is_side: which calls run during computing (V,); none, if that is not known.
    """
    is_main = np.ones(len(calls), bool) if is_side is None else ~is_side
    lost_of = [_lost(program) for program in programs]
    found: list[MissingCall] = []
    if not any(lost.any() for lost in lost_of):
        return found
    first = np.full(len(calls.groups), len(calls))
    np.minimum.at(first, calls.group, operator)
    # Calls of replicas at one place: their kinds by place in a group.
    _, same = combined(calls.kind, operator - first[calls.group], purpose[calls.group])
    for number, (program, lost) in enumerate(zip(programs, lost_of, strict=True)):
        if lost.any():
            clocks_us = offsets_by_messages(calls, program, offset_us)
            shown = Shown.of(calls, same, is_main, clocks_us, program)
            rooms = Rooms(shown, np.full(program.family.table.shape, np.nan))
            # In the order of a rank's calls: one that follows another one that is lost begins behind it.
            for row, slot in np.argwhere(lost).tolist():
                found.append(_made_up(rooms, number, row, slot))
                rooms.made_up_us[row, slot] = found[-1].end_us
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


def _made_up(rooms: Rooms, number: int, row: int, slot: int) -> MissingCall:
    """Make up the call of a slot in a group."""
    shown, family = rooms.shown, rooms.shown.program.family
    rank = int(family.ranks[row, family.stage[slot]])
    source = int(family.table[np.flatnonzero(family.table[:, slot] >= 0)[0], slot])
    pace = float(shown.pace[row, slot])
    after_us = float(np.nan_to_num(median(shown.after_us[:, slot])))
    work_us, rest_us = float(shown.work_us[slot]) * pace, max(after_us, 0.0) * pace
    met_us = shown.other_end_us(row, slot, rank)
    left_us, come_us = shown.meeting_us(row, slot, rank)
    # Calls that begin later than this came after it, even if it overlaps them.
    is_concurrent = shown.all_meet and family.kind[slot] != BATCH and np.isfinite(met_us)
    concurrent_us = met_us + min(after_us, 0.0) - 0.5 * TOGETHER_US if is_concurrent else np.nan
    begin_us, until_us = rooms.room(row, slot, rank, concurrent_us, come_us + TOGETHER_US)
    # It may overlap its neighbour where the replicas' calls do.
    until_us -= min(after_us, 0.0)
    waits = not np.isneginf(left_us)
    quick_us = float(shown.quick_us[slot]) if waits else float(median(shown.elapse_us[:, slot]))
    quick_us = min(quick_us, until_us - begin_us)
    if is_concurrent:
        end = met_us
    elif np.isnan(left_us):
        followed_us = rooms.begun_us(slot, rank, begin_us)
        next_us = min(until_us, followed_us) if np.isfinite(followed_us) else until_us
        end = max(next_us - rest_us, begin_us + quick_us)
    else:
        until_us = max(until_us, rooms.begun_us(slot, rank, begin_us)) if waits else until_us
        end = max(left_us, min(begin_us + work_us, come_us - quick_us) + quick_us)
        end = min(max(end, begin_us + quick_us), until_us)
    start = min(begin_us + work_us, end - quick_us) if waits else max(begin_us, end - quick_us)
    group = int(shown.calls.group[_of_group(family.table[row], source)])
    return MissingCall(rank, group, source, start, end, begin_us, end - quick_us, place=(number, row, slot))


def _of_group(row: IntArray, source: int) -> int:
    """Return a call of the group whose row this is; one that is elsewhere where it has none."""
    present = row[row >= 0]
    return int(present[0]) if len(present) else source
