"""When a rank came to a call that its files lack, and when it left it, by the others that made it.

All members leave a collective together, and both ends a message, so that its end is known. Before it, the
rank is taken to have worked as long as the median member of its stage, who issues the same call in the same
place. Where all others waited far longer than such an operator takes, it was this rank that they waited for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.thresholds.common import HALFWAY
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.missing.collectives import Incomplete
from cluster_analysis.trace.streams.streams import Streams
from cluster_analysis.trace.streams.usual_gaps import UsualGaps


class MissingCall(Struct, frozen=True):
    """One call to fill in: like `source` (a call of another rank), on this rank's clock, in µs.

    `earliest_us` and `latest_us` are between which times it may have begun instead. `place` is that of a
    message in a program.
    """

    rank: int
    group: int
    source: int
    start_us: float
    end_us: float
    earliest_us: float
    latest_us: float
    place: tuple[int, int, int] | None = None


def placed(
    calls: Calls,
    incomplete: Sequence[Incomplete],
    gaps: UsualGaps,
    offset_us: FloatArray,
    stage: IntArray,
    streams: Streams,
) -> list[MissingCall]:
    """Return what is to be filled in for each operator that some ranks lack, in the order of its end.

    Args:
        incomplete: operators that some ranks lack.
        gaps: how long ranks usually work before each call.
        offset_us: what to add to each rank's clock to compare it with others (ranks,).
        stage: pipeline stage of each rank (ranks,), -1 for unknown.
        streams: which calls are on a second stream.
    """
    found: list[MissingCall] = []
    until_us: dict[tuple[int, bool], float] = {}
    made_up_us: dict[tuple[int, int], float] = {}
    for one in sorted(incomplete, key=lambda one: _about_us(calls, one, offset_us)):
        alike = {rank: one.known[stage[calls.rank[one.known]] == stage[rank]] for rank in one.lacking}
        came_us = {
            rank: gaps.issued_us(calls, rank, alike[rank], streams, made_up_us) for rank in one.lacking
        }
        latest_us = float(np.max([came_us[rank] + float(offset_us[rank]) for rank in one.lacking]))
        is_side = bool(streams.is_side[one.known[0]])
        for rank in one.lacking:
            left_us, issued_us = one.ended_us - float(offset_us[rank]), came_us[rank]
            followed_us, told_us = gaps.followed_us(calls, rank, alike[rank])
            if np.isnan(left_us):
                left_us = told_us
            if one.place is not None:  # who sends or receives has come by then, whatever the other end tells
                left_us = float(np.fmax(left_us, issued_us + one.needed_us))
            if not np.isfinite(left_us):
                left_us = told_us
            if not np.isfinite(left_us):
                continue
            # Whatever little the clocks are off by, it was over when its rank began what comes next.
            if followed_us > left_us - HALFWAY * one.needed_us:
                left_us = min(left_us, followed_us)
            # What a second stream is asked for waits there, and not for its rank.
            came_last = not is_side and not issued_us + float(offset_us[rank]) < latest_us
            times = _times_us(calls, rank, streams, is_side=is_side)
            after_us = until_us.get((rank, is_side), -np.inf)
            made_up = _made_up(calls, times, rank, one, left_us, issued_us, after_us, came_last=came_last)
            found.append(made_up)
            until_us[rank, is_side] = made_up.end_us
            # The like of it has one code for all of the stage.
            made_up_us |= {(rank, int(gaps.code[call])): made_up.end_us for call in alike[rank][:1]}
    return found


def _about_us(calls: Calls, one: Incomplete, offset_us: FloatArray) -> float:
    """When about an operator was over, on the clock of all."""
    if np.isfinite(one.ended_us):
        return one.ended_us
    return float(np.median(calls.end_us[one.known] + offset_us[calls.rank[one.known]]))


def _times_us(calls: Calls, rank: int, streams: Streams, *, is_side: bool) -> tuple[FloatArray, FloatArray]:
    """When a rank began the calls that one of its streams makes or issues, and ended those on it.

    The main stream issues all calls when they begin, but for queued ones.
    """
    own = calls.of_rank(rank)
    start, end = calls.start_us[own], calls.end_us[own]
    is_own = streams.is_side[own] == is_side
    return start[~streams.is_queued[own] & (not is_side)], end[is_own & ~(calls.is_send[own] & is_side)]


def _made_up(
    calls: Calls,
    times_us: tuple[FloatArray, FloatArray],
    rank: int,
    one: Incomplete,
    left_us: float,
    issued_us: float,
    after_us: float,
    *,
    came_last: bool,
) -> MissingCall:
    """The call of a rank that works before it, and waits in it.

    Calls that began while the operator was under way came after it, if clocks are off by a little.

    Args:
        times_us: when the rank began those that the operator's stream makes or issues, and ended those on it.
        rank: its position.
        one: the operator.
        left_us: when the others ended it, on the rank's clock.
        issued_us: when the rank came to it, by those of its stage; NaN for unknown.
        after_us: when the rank ended a call that is filled in before this one.
        came_last: whether no other one that lacks it came later: they waited for the last.
    """
    starts, ends = times_us
    under_way_us = left_us - HALFWAY * one.needed_us
    end = min(left_us, float(starts[starts > under_way_us].min(initial=np.inf)))
    before = min(max(float(ends[ends <= under_way_us].max(initial=-np.inf)), after_us), end)
    start = end - one.needed_us
    if not (one.waited and came_last):
        usual_us = float(np.median(calls.elapse_us[one.known]))
        start = min(start, issued_us if np.isfinite(issued_us) else end - usual_us)
    start = max(start, before)
    latest = max(start, end - float(np.nan_to_num(one.usual_us)))
    source = int(one.known[0])
    return MissingCall(rank, one.group, source, start, end, min(before, start), latest, one.place)
