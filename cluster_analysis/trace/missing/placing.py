"""When a rank came to a call that its files lack, and when it left it, by the others that made it.

All members leave a collective together, and both ends leave a message together, so its end is known. Before
it the rank is assumed to have worked as long as the median member of its stage, which issues the same call in
the same place. If all others waited far longer than such an operator takes, they waited for this rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import begins, combined, places_in_runs
from cluster_analysis.numeric.stats import median
from cluster_analysis.thresholds.calls import MOST_OVERLAPPED, ROUNDED_US
from cluster_analysis.thresholds.common import HALFWAY
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.missing.collectives import Incomplete
from cluster_analysis.trace.streams.streams import Streams


class UsualGaps(Struct, frozen=True):
    """The local time before each call (V,) in µs.

    It counts `since` the rank's last call that had ended by then, -1 for none. Calls of one code have the
    same place in groups of one purpose and stage. `began_us` (2, ranks) is when a rank's device began to
    work, and when its step began.
    """

    own_us: FloatArray
    since: IntArray
    code: IntArray
    began_us: FloatArray

    @classmethod
    def of(
        cls, calls: Calls, operator: IntArray, stage: IntArray, purpose: IntArray, began_us: FloatArray,
        tables: Sequence[IntArray] = (),
    ) -> UsualGaps:  # fmt: skip
        """Take them of a step's calls.

        Args:
            operator: the operator of each call (V,).
            stage: pipeline stage of each rank (ranks,), -1 for unknown.
            purpose: a number for each group (groups,), the same for those that serve alike.
            began_us: when each rank's device began to work, and when its step began (2, ranks), on its
                clock; NaN for unknown.
            tables: calls of programs, -1 for none (groups, slots): replicas' share a slot.
        """
        first = np.full(len(calls.groups), len(calls))
        np.minimum.at(first, calls.group, operator)
        place = operator - first[calls.group]
        # A stage's ranks send and receive the same in one order.
        messages = calls.is_point_to_point
        place[messages], n_messages = _places(calls, messages)
        count = np.zeros(len(calls), np.int64)
        count[messages] = n_messages
        for number, table in enumerate(tables):
            row, slot = np.nonzero(table >= 0)
            place[table[row, slot]], count[table[row, slot]] = slot, -1 - number
        _, code = combined(stage[calls.rank] + 1, calls.kind, place, purpose[calls.group], count)
        own, since = _gaps(calls)
        return cls(own, since, code, began_us)

    def issued_us(
        self, calls: Calls, rank: int, alike: IntArray, streams: Streams,
        made_up_us: Mapping[tuple[int, int], float], under_way_us: float,
    ) -> float:  # fmt: skip
        """Return when a rank came to a call, by similar ranks: as long after the same call as they did.

        On a second stream they count from the issuing call, on the main stream from the last end. What comes
        first in a step counts from where the device began to work; from where the step began, if the totals
        lack this call, too, and have the device begin behind it. NaN where they do not agree on the stream,
        or the rank lacks that call too and nobody made it up.

        Args:
            rank: who lacks the call.
            alike: the call of others of its stage.
            streams: which calls are on a second stream.
            made_up_us: ends of calls that were filled in already, by rank and code.
            under_way_us: by when this rank had surely come to the call, on its clock.
        """
        if not len(alike) or len(set(streams.is_side[alike].tolist())) > 1:
            return np.nan
        is_side = bool(streams.is_side[alike[0]])
        since, gap_us = (streams.after, streams.gap_us) if is_side else (self.since, self.own_us)
        inside = calls.of_rank(rank)
        codes, ends = self.code[inside], calls.end_us[inside]
        counted, at = alike[since[alike] >= 0], list[float]()
        if not len(counted):
            lacks_it = self.began_us[0, rank] > under_way_us
            began_us = self.began_us[int(lacks_it)]
            return float(began_us[rank] + median(calls.start_us[alike] - began_us[calls.rank[alike]]))
        for call in counted.tolist():
            code = int(self.code[since[call]])
            ended = ends[codes == code]
            ended_us = float(ended[0]) if len(ended) else made_up_us.get((rank, code), np.nan)
            at += [ended_us + float(gap_us[call])] if np.isfinite(ended_us) else []
        return float(np.median(at)) if at else np.nan

    def followed_us(self, calls: Calls, rank: int, alike: IntArray) -> tuple[float, float]:
        """Return when a rank began what similar ones begin next, and when it left its call: as long before.

        NaN where that is unknown.

        Args:
            rank: who lacks the call.
            alike: the call of others of its stage.
        """
        inside = calls.of_rank(rank)
        codes, starts = self.code[inside], calls.start_us[inside]
        at: list[tuple[float, float]] = []
        for call in alike.tolist():
            theirs = calls.of_rank(int(calls.rank[call]))
            later = np.flatnonzero(calls.start_us[theirs] >= calls.end_us[call] - ROUNDED_US) + theirs.start
            if not len(later):
                continue
            begun_us = starts[codes == self.code[later[0]]]
            if len(begun_us):
                rest_us = float(calls.start_us[later[0]] - calls.end_us[call])
                at.append((float(begun_us[0]), float(begun_us[0]) - rest_us))
        begun, left = np.median(at, axis=0) if at else (np.nan, np.nan)
        return float(begun), float(left)


def _places(calls: Calls, chosen: BoolArray) -> tuple[IntArray, IntArray]:
    """The place of each chosen call (N,) among its rank's of its group and kind, and how many these are."""
    inside = np.flatnonzero(chosen)
    _, run = combined(calls.rank[inside], calls.group[inside], calls.kind[inside])
    order = np.argsort(run, kind="stable")
    place = np.empty(len(inside), np.int64)
    place[order] = places_in_runs(begins(run[order]))
    return place, np.bincount(run)[run]


def _gaps(calls: Calls) -> tuple[FloatArray, IntArray]:
    """Time before each call since the rank's last call that had ended by then, and that call, both (V,).

    NaN and -1 where there is none. Sends may run meanwhile.
    """
    gap, last = np.full(len(calls), np.nan), np.full(len(calls), -1)
    for back in range(1, min(MOST_OVERLAPPED + 1, len(calls))):
        since = calls.start_us[back:] - calls.end_us[:-back]
        is_later = (calls.rank[back:] == calls.rank[:-back]) & (since > -ROUNDED_US)
        is_later &= ~(np.maximum(since, 0.0) >= gap[back:])
        gap[back:] = np.where(is_later, np.maximum(since, 0.0), gap[back:])
        last[back:] = np.where(is_later, np.arange(len(since)), last[back:])
    return gap, last


class MissingCall(Struct, frozen=True):
    """One call to fill in: like `source` (a call of another rank), on this rank's clock, in µs.

    `place` is that of a message in a program.
    """

    rank: int
    group: int
    source: int
    start_us: float
    end_us: float
    place: tuple[int, int, int] | None


def placed(
    calls: Calls, incomplete: Sequence[Incomplete], gaps: UsualGaps, offset_us: FloatArray, stage: IntArray,
    streams: Streams,
) -> list[MissingCall]:  # fmt: skip
    """Return what is to be filled in for each operator that some ranks lack, in the order of its end.

    Args:
        incomplete: operators that some ranks lack.
        gaps: how long ranks usually work before each call.
        offset_us: what to add to each rank's clock to compare it with others (ranks,).
        stage: pipeline stage of each rank (ranks,), -1 for unknown.
        streams: which calls are on a second stream.
    """
    found: list[MissingCall] = []
    ended_us: dict[tuple[int, bool], list[float]] = {}
    made_up_us: dict[tuple[int, int], float] = {}
    for one in sorted(incomplete, key=lambda one: _about_us(calls, one, offset_us)):
        alike = {rank: one.known[stage[calls.rank[one.known]] == stage[rank]] for rank in one.lacking}
        under_way_us = one.ended_us - HALFWAY * one.needed_us - offset_us
        came_us = {
            rank: gaps.issued_us(calls, rank, alike[rank], streams, made_up_us, float(under_way_us[rank]))
            for rank in one.lacking
        }
        latest_us = float(np.max([came_us[rank] + float(offset_us[rank]) for rank in one.lacking]))
        is_side = bool(streams.is_side[one.known[0]])
        for rank in one.lacking:
            left_us, issued_us = one.ended_us - float(offset_us[rank]), came_us[rank]
            followed_us, told_us = gaps.followed_us(calls, rank, alike[rank])
            if np.isnan(left_us):
                left_us = told_us
            if one.place is not None:  # the rank has come by then, whatever the other end shows
                left_us = float(np.fmax(left_us, issued_us + one.needed_us))
            if not np.isfinite(left_us):
                left_us = told_us
            if not np.isfinite(left_us):
                continue
            # Whatever little the clocks are off by, it was over when its rank began what comes next.
            if followed_us > left_us - HALFWAY * one.needed_us:
                left_us = min(left_us, followed_us)
            # A call that was issued to a second stream waits there, and not for its rank.
            came_last = not is_side and not issued_us + float(offset_us[rank]) < latest_us
            starts, ends = _times_us(calls, rank, streams, is_side=is_side)
            own_us = ended_us.setdefault((rank, is_side), [])
            times = (starts, np.append(ends, own_us))
            made_up = _made_up(calls, times, rank, one, left_us, issued_us, came_last=came_last)
            found.append(made_up)
            own_us.append(made_up.end_us)
            # Similar calls have one code for all of the stage.
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
    calls: Calls, times_us: tuple[FloatArray, FloatArray], rank: int, one: Incomplete, left_us: float,
    issued_us: float, *, came_last: bool,
) -> MissingCall:  # fmt: skip
    """Fill in the call of a rank that works before it, and waits in it.

    Calls that began while the operator was under way came after it, if clocks are off by a little.

    Args:
        times_us: when the rank began those that the operator's stream makes or issues, and ended those on it,
            those filled in before this one among them.
        rank: its position.
        one: the operator.
        left_us: when the others ended it, on the rank's clock.
        issued_us: when the rank came to it, by those of its stage; NaN for unknown.
        came_last: whether no other one that lacks it came later: they waited for the last.
    """
    starts, ends = times_us
    under_way_us = left_us - HALFWAY * one.needed_us
    end = min(left_us, float(starts[starts > under_way_us].min(initial=np.inf)))
    before = min(float(ends[ends <= under_way_us].max(initial=-np.inf)), end)
    start = end - one.needed_us
    if not (one.waited and came_last):
        usual_us = float(np.median(calls.elapse_us[one.known]))
        start = min(start, issued_us if np.isfinite(issued_us) else end - usual_us)
    start = max(start, before)
    return MissingCall(rank, one.group, int(one.known[0]), start, end, one.place)
