"""Collectives that a rank's files lack: when the rank came to them and left them, by the other members.

All members leave a collective together, so that its end is known. Before it, the rank is taken to have
worked as long as the median member of its stage, who issues the same call in the same place. Where all others
waited far longer than such an operator takes, it was this rank that they waited for. If they are many, and
waited as long as events last, the operator took that long: the network stood still.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.sorting import begins, combined, half_octaves, stable_order
from cluster_analysis.tables.model import Topology
from cluster_analysis.thresholds.common import EVENT_US, HALFWAY
from cluster_analysis.thresholds.trace import ENOUGH_TOGETHER, WAITED_FACTOR
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.missing.record import MissingCall
from cluster_analysis.trace.streams.streams import Streams
from cluster_analysis.trace.streams.usual_gaps import UsualGaps, medians_of_known
from cluster_run.ids import Rank


class _Holed(Struct, frozen=True):
    """An operator that some members lack: the others' calls, when they left it, and what it takes, in µs.

    `usual_us` is the transfer of complete ones, NaN if there are none; `shortest_us` the shortest elapse.
    """

    known: IntArray
    ended_us: float
    shortest_us: float
    usual_us: float

    @property
    def needed_us(self) -> float:
        """How long it takes by itself."""
        return float(np.fmin(self.shortest_us, self.usual_us))

    @property
    def waited(self) -> bool:
        """Whether all who are known waited for one who is not."""
        return self.shortest_us > WAITED_FACTOR * self.usual_us and not self.stood_still

    @property
    def stood_still(self) -> bool:
        """Whether the network did: that just the late one's record is lost would be chance."""
        return len(self.known) >= ENOUGH_TOGETHER and self.shortest_us > self.usual_us + EVENT_US


def missing_collectives(
    calls: Calls,
    operator: IntArray,
    offset_us: FloatArray,
    topology: Topology,
    purpose: IntArray,
    streams: Streams | None = None,
) -> list[MissingCall]:
    """Return the collectives that some members' files have and others' lack, in the order of their ends.

    Args:
        calls: the step's calls.
        operator: the operator of each call (V,).
        offset_us: what to add to each rank's clock to compare it with others (ranks,).
        topology: the members of each group, and stages.
        purpose: a number for each group (groups,), the same for those that serve alike.
        streams: which calls are on a second stream, if that is known.
    """
    present = {int(rank): position for position, rank in enumerate(calls.ranks)}
    members = {
        code: [present[rank] for rank in topology.groups[name].ranks if rank in present]
        for code, name in enumerate(calls.groups)
        if name in topology.groups
    }
    n_members = np.array([len(members.get(code, ())) for code in range(len(calls.groups))])
    holed = _holed(calls, operator, offset_us, n_members, purpose)
    if not holed:
        return []
    stage = np.array([topology.stages.get(Rank(int(rank)), -1) for rank in calls.ranks])
    gaps = UsualGaps.of(calls, operator, stage, purpose)
    found: list[MissingCall] = []
    until_us: dict[tuple[int, bool], float] = {}
    made_up_us: dict[tuple[int, int], float] = {}
    for one in sorted(holed, key=lambda one: one.ended_us):
        group = int(calls.group[one.known[0]])
        lacking = sorted(set(members[group]) - set(calls.rank[one.known].tolist()))
        alike = {rank: stage[calls.rank[one.known]] == stage[rank] for rank in lacking}
        came_us = {
            rank: gaps.issued_us(calls, rank, one.known[alike[rank]], streams, made_up_us) for rank in lacking
        }
        latest_us = float(np.max([came_us[rank] + float(offset_us[rank]) for rank in lacking]))
        for rank in lacking:
            left_us = one.ended_us - float(offset_us[rank])
            is_alike, issued_us = alike[rank], came_us[rank]
            # Whatever little the clocks are off by, it was over when its rank began what comes next.
            followed_us = gaps.followed_us(calls, rank, one.known[is_alike])
            if followed_us > left_us - HALFWAY * one.needed_us:
                left_us = min(left_us, followed_us)
            is_side = streams is not None and bool(streams.is_side[one.known[0]])
            own = _stream_of(calls, rank, streams, is_side=is_side)
            after_us = until_us.get((rank, is_side), -np.inf)
            if is_side and np.isfinite(issued_us):
                found.append(_concurrent(calls, own, rank, one, left_us, since_us=max(issued_us, after_us)))
            else:
                local_us = gaps.before(one.known, is_alike)
                starts = calls.start_us[own if is_side else _issued(calls, rank, streams)]
                times = starts, calls.end_us[own]
                found.append(
                    _in_line(
                        calls, times, rank, one, left_us,
                        issued_us=issued_us, local_us=local_us, after_us=after_us,
                        came_last=not issued_us + float(offset_us[rank]) < latest_us,
                    )
                )  # fmt: skip
            until_us[rank, is_side] = found[-1].end_us
            # The like of it has one code for all of the stage.
            made_up_us |= {(rank, int(gaps.code[call])): found[-1].end_us for call in one.known[is_alike][:1]}
    return found


def purposes(calls: Calls, topology: Topology) -> IntArray:
    """Return a number for each group (groups,) by its use: role, number of ranks, how far these lie apart."""
    found: dict[tuple[str, int, int], int] = {}
    numbers = []
    for name in calls.groups:
        group = topology.groups.get(name)
        ranks = group.ranks if group else ()
        kind = (group.role if group else "", len(ranks), ranks[1] - ranks[0] if len(ranks) > 1 else 0)
        numbers.append(found.setdefault(kind, len(found)))
    return np.array(numbers)


def _stream_of(calls: Calls, rank: int, streams: Streams | None, *, is_side: bool) -> IntArray:
    """The calls of a rank on one of its streams; all of them where those are not known."""
    own = calls.of_rank(rank)
    inside = np.arange(own.start, own.stop)
    return inside if streams is None else inside[streams.is_side[own] == is_side]


def _issued(calls: Calls, rank: int, streams: Streams | None) -> IntArray:
    """The calls of a rank's main stream, and those that it issued when they began: all but queued ones."""
    own = calls.of_rank(rank)
    inside = np.arange(own.start, own.stop)
    return inside if streams is None else inside[~streams.is_queued[own]]


def _holed(
    calls: Calls, operator: IntArray, offset_us: FloatArray, n_members: IntArray, purpose: IntArray
) -> list[_Holed]:
    """Operators that half of their members have, and not all; or half of those of groups of one purpose."""
    usable = np.flatnonzero(~calls.is_point_to_point)
    n_calls = np.bincount(operator[usable])
    n_wanted = np.zeros(len(n_calls), np.int64)
    n_wanted[operator[usable]] = n_members[calls.group[usable]]
    if not (n_calls < n_wanted).any():  # most steps: nothing needs an order
        return []
    order = usable[stable_order(operator[usable])]
    begin = np.flatnonzero(begins(operator[order]))
    lead = order[begin]
    size, wanted = np.diff(np.r_[begin, len(order)]), n_members[calls.group[lead]]
    first = np.full(len(calls.groups), len(calls))
    np.minimum.at(first, calls.group[lead], operator[lead])
    _, alike = combined(
        calls.kind[lead], operator[lead] - first[calls.group[lead]], purpose[calls.group[lead]]
    )
    is_made = 2 * np.bincount(alike, size) >= np.bincount(alike, wanted)
    chosen = np.flatnonzero((size < wanted) & ((2 * size >= wanted) | is_made[alike]))
    if not len(chosen):
        return []
    shortest = np.minimum.reduceat(calls.elapse_us[order], begin)
    complete = np.where(size < wanted, np.nan, shortest)
    usual = _usual_transfer(calls, order[begin], wanted, complete)
    busy = np.fmax.reduceat(calls.busy_us[order], begin)
    # Where its links are busy for longer than usual, so long does it take.
    usual = np.where(
        np.isnan(usual), usual, np.fmax(usual, _as_busy(calls, order[begin], wanted, complete, busy))
    )
    known = [order[begin[at] : begin[at] + size[at]] for at in chosen]
    return [
        _Holed(
            block,
            float(np.median(calls.end_us[block] + offset_us[calls.rank[block]])),
            float(shortest[at]),
            float(usual[at]),
        )
        for at, block in zip(chosen, known, strict=True)
    ]


def _in_line(
    calls: Calls,
    times_us: tuple[FloatArray, FloatArray],
    rank: int,
    one: _Holed,
    left_us: float,
    *,
    issued_us: float,
    local_us: float,
    after_us: float,
    came_last: bool,
) -> MissingCall:
    """The call of a rank that works before it, and waits in it.

    Calls that began while the operator was under way came after it, if clocks are off by a little.

    Args:
        calls: the step's calls.
        times_us: when the rank began those that the operator's stream makes or issues, and ended those on it.
        rank: its position.
        one: the operator.
        left_us: when the others ended it, on the rank's clock.
        issued_us: when the rank came to it, by those of its stage; NaN for unknown.
        local_us: how long ranks usually work before it; NaN for unknown.
        after_us: when the rank ended a call that is filled in before this one.
        came_last: whether no other one that lacks it came later: they waited for the last.
    """
    starts, ends = times_us
    under_way_us = left_us - HALFWAY * one.needed_us
    end = min(left_us, float(starts[starts > under_way_us].min(initial=np.inf)))
    before = min(max(float(ends[ends <= under_way_us].max(initial=-np.inf)), after_us), end)
    if one.waited and came_last:
        start = max(end - one.needed_us, before)
    elif np.isfinite(issued_us):
        start = min(max(issued_us, before), max(end - one.needed_us, before))
    elif np.isfinite(before) and np.isfinite(local_us):
        start = min(before + local_us, max(end - one.needed_us, before))
    else:
        start = max(end - float(np.median(calls.elapse_us[one.known])), before)
    latest = max(start, end - float(np.nan_to_num(one.usual_us)))
    return MissingCall(
        rank, int(calls.group[one.known[0]]), int(one.known[0]), start, end, min(before, start), latest
    )


def _concurrent(
    calls: Calls, own: IntArray, rank: int, one: _Holed, left_us: float, *, since_us: float
) -> MissingCall:
    """The call of a rank on its second stream: when it was issued, or the one before it there had ended."""
    ends = calls.end_us[own[~calls.is_send[own]]]
    under_way_us = left_us - HALFWAY * one.needed_us
    start = max(since_us, float(ends[ends < under_way_us].max(initial=-np.inf)))
    if start > under_way_us:  # by more than the clocks are off
        start = left_us - one.needed_us
    return MissingCall(rank, int(calls.group[one.known[0]]), int(one.known[0]), start, left_us, start, start)


def _as_busy(
    calls: Calls, first: IntArray, n_members: IntArray, transfer_us: FloatArray, busy_us: FloatArray
) -> FloatArray:
    """Time of each operator (O,) by the busy time of its links, as for complete ones of its kind and size.

    Args:
        calls: the step's calls.
        first: a call of each operator (O,).
        n_members: the ranks that should have it (O,).
        transfer_us: shortest elapse of each operator (O,); NaN where members are missing.
        busy_us: the most that the links of one member were busy (O,); NaN where no file tells it.
    """
    alike = combined(n_members, calls.kind[first], half_octaves(calls.size_bytes[first]))[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return busy_us * medians_of_known(alike, transfer_us / busy_us)


def _usual_transfer(
    calls: Calls, first: IntArray, n_members: IntArray, transfer_us: FloatArray
) -> FloatArray:
    """Median transfer of the complete operators of each operator's group, kind and size (half an octave).

    Where the group has none, that of groups with as many members, at the group's own pace: a slow link makes
    all of its operators as much longer.

    Args:
        calls: the step's calls.
        first: a call of each operator (O,).
        n_members: the ranks that should have it (O,).
        transfer_us: shortest elapse of each operator (O,); NaN where members are missing.
    """
    kind, size = calls.kind[first], half_octaves(calls.size_bytes[first])
    own = medians_of_known(combined(calls.group[first], kind, size)[1], transfer_us)
    others = medians_of_known(combined(n_members, kind, size)[1], transfer_us)
    with np.errstate(divide="ignore", invalid="ignore"):
        pace = medians_of_known(combined(calls.group[first], size)[1], transfer_us / others)
        of_any_size = medians_of_known(calls.group[first], transfer_us / others)
    pace = np.nan_to_num(np.where(np.isnan(pace), of_any_size, pace), nan=1.0)
    return np.where(np.isnan(own), others * pace, own)
