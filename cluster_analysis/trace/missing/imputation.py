"""Fill in communication calls that a rank's files lack, from the other ranks that made the same call.

Without the call the rank would seem to have worked meanwhile, and the replay would take its waiting for work.
How long such calls took altogether follows from the step totals of the rank, whatever its records lack.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.stats import median, sigma
from cluster_analysis.tables.model import Topology
from cluster_analysis.thresholds.common import CLEAR_SIGMAS, HALFWAY
from cluster_analysis.thresholds.streams import ROUNDED_US
from cluster_analysis.thresholds.trace import ENOUGH_RANKS, LEAST_MISSING_US
from cluster_analysis.trace.calls import Calls, with_more
from cluster_analysis.trace.missing.collectives import incomplete_collectives, purposes
from cluster_analysis.trace.missing.messages import incomplete_messages
from cluster_analysis.trace.missing.placing import MissingCall, UsualGaps, placed
from cluster_analysis.trace.pairing.ends import Program
from cluster_analysis.trace.streams.streams import Streams
from cluster_analysis.trace.streams.waits import most_waited_us
from cluster_run.ids import Rank


class Exposed(Struct, frozen=True):
    """Time in communication that computing does not cover, by rank (R,): of the totals, and of the records.

    In µs. `waited_us` (R,) is how long at most the main stream waited for a second one, which the totals hold
    and its own records do not. `stage` (R,) is that of each rank: there records and totals agree alike.
    `unrecorded_us` (R,) is all communication, covered or not, of the totals beyond that of the records.
    """

    total_us: FloatArray
    recorded_us: FloatArray
    waited_us: FloatArray
    stage: IntArray
    unrecorded_us: FloatArray

    @property
    def rest_us(self) -> FloatArray:
        """Time in the totals beyond the records (R,)."""
        return self.total_us - self.recorded_us


def with_missing_calls(
    calls: Calls,
    operator: IntArray,
    offset_us: FloatArray,
    topology: Topology,
    programs: Sequence[Program],
    exposed: Exposed,
    local: Streams,
    began_us: FloatArray,
) -> tuple[Calls, Sequence[Program]]:
    """Return the calls with the missing ones filled in, and the programs with them in their places.

    The same objects when none is missing.

    Args:
        operator: the operator of each call (V,).
        offset_us: what to add to each rank's clock to compare it with others (ranks,).
        topology: the members of each group, stages and replicas.
        programs: what groups that send messages run.
        exposed: what the ranks' communication must add up to.
        local: the streams of the calls; those of a second one do not count in it.
        began_us: when each rank's device began to work, and when its step began (2, ranks), on its clock;
            NaN for unknown.
    """
    if not calls.has_clock:
        return calls, programs
    purpose = purposes(calls, topology)
    incomplete = [
        *incomplete_collectives(calls, operator, offset_us, topology, purpose),
        *incomplete_messages(calls, offset_us, programs),
    ]
    if not incomplete:
        return calls, programs
    stage = np.array([topology.stages.get(Rank(int(rank)), -1) for rank in calls.ranks])
    gaps = UsualGaps.of(calls, operator, stage, purpose, began_us, [one.family.table for one in programs])
    found = placed(calls, incomplete, gaps, offset_us, stage, local)
    if not found:
        return calls, programs
    found = as_totals_say(found, exposed, local.is_side, np.isfinite(most_waited_us(calls, local)))
    names = ("rank", "group", "start_us", "end_us")
    own = {name: np.array([getattr(one, name) for one in found]) for name in names}
    whole, order = with_more(calls, np.array([one.source for one in found], np.int64), **own)
    return whole, _moved_to(programs, order, found)


def _moved_to(programs: Sequence[Program], order: IntArray, found: Sequence[MissingCall]) -> list[Program]:
    """Return the programs with calls where they now lie, and with the messages that are filled in."""
    moved = np.empty(len(order), np.int64)
    moved[order] = np.arange(len(order))
    n_before = len(order) - len(found)
    tables = [np.where(one.family.table < 0, -1, moved[one.family.table]) for one in programs]
    for number, one in enumerate(found):
        if one.place is not None:
            program, row, slot = one.place
            tables[program][row, slot] = moved[n_before + number]
    return [
        replace(one, family=replace(one.family, table=table))
        for one, table in zip(programs, tables, strict=True)
    ]


def as_totals_say(
    found: Sequence[MissingCall], exposed: Exposed, is_side: BoolArray, awaits_side: BoolArray
) -> list[MissingCall]:
    """Return the calls, begun so much earlier or later that each rank's communication adds up.

    Totals that hold less than half of their least time beyond the records were summed up from these, and
    do not show what they lack.

    Args:
        found: calls to fill in.
        exposed: what they must add up to.
        is_side: whether a call (V,) runs during computing: it does not count.
        awaits_side: whether a call (V,) begins when one on the second stream ends: who lacks either may have
            waited for any time.
    """
    waits = np.zeros(len(exposed.stage), bool)
    waits[[one.rank for one in found if awaits_side[one.source] or is_side[one.source]]] = True
    by_rank: dict[int, list[int]] = {}
    filled_us, needed_us = np.zeros((2, len(waits)))
    for number, one in enumerate(found):
        if not is_side[one.source]:
            by_rank.setdefault(one.rank, []).append(number)
            filled_us[one.rank] += one.end_us - one.start_us
            needed_us[one.rank] += one.end_us - one.latest_us
    least_us, most_us, clear_us = _missing(exposed, filled_us)
    least_us[waits] = -np.inf
    moved = list(found)
    some = [rank for rank in by_rank if np.isfinite(most_us[rank])]
    if exposed.unrecorded_us[some].sum() < HALFWAY * needed_us[some].sum() + ROUNDED_US * len(some):
        return moved
    for rank, own in by_rank.items():
        longer_us = float(np.clip(filled_us[rank], least_us[rank], most_us[rank]) - filled_us[rank])
        if abs(longer_us) >= clear_us[rank]:
            _move(moved, own, longer_us)
    return moved


def _missing(exposed: Exposed, filled_us: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Time in communication that no record accounts for, the least and the most, and what is clearly more.

    All (R,), in µs; NaN where that cannot be said. Of `filled_us` (R,) most is right.
    """
    rest = exposed.rest_us
    # What waiting for a second stream cannot be.
    unexplained = rest - np.clip(rest, 0.0, exposed.waited_us) - filled_us
    most, clear = np.full(len(rest), np.nan), np.full(len(rest), np.nan)
    for one in np.unique(exposed.stage):
        inside = exposed.stage == one
        known = unexplained[inside & np.isfinite(unexplained)]
        if len(known) >= ENOUGH_RANKS:
            most[inside] = rest[inside] - float(median(known))
            clear[inside] = max(CLEAR_SIGMAS * float(sigma(known)), LEAST_MISSING_US)
    return most - exposed.waited_us, most, clear


def _move(calls: list[MissingCall], numbers: Sequence[int], longer_us: float) -> None:
    """Let calls of one rank begin earlier, or later, by so much altogether, as far as each one may."""
    own = [calls[number] for number in numbers]
    if longer_us > 0:
        room = np.array([one.start_us - one.earliest_us for one in own])
    else:
        room = np.array([one.latest_us - one.start_us for one in own])
    is_free = np.isinf(room)
    share = is_free / is_free.sum() if is_free.any() else room / max(float(room.sum()), 1e-9)
    for number, one, part, most in zip(numbers, own, share, room, strict=True):
        moved = float(np.clip(longer_us * part, -most, most))
        calls[number] = replace(one, start_us=one.start_us - moved)
