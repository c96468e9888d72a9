"""What each call of a rank waits for locally: the call before it, or a call on another stream.

Calls that do not overlap in time form one sequence: the time between two of them is local work. Where
the groups of a rank do overlap, the groups with fewer calls run on a second stream. A call there begins
when the main stream has got far enough, and the main stream does not wait for it until the last one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cluster_analysis.calls import Calls
from cluster_analysis.evidence import BoolArray, FloatArray, IntArray

#: Ends and starts closer than this are the resolution of the time stamps, not an overlap.
TOLERANCE_US = 5.0


@dataclass(frozen=True)
class Sequence:
    """Local dependencies of calls, each (V,): positions of calls, -1 for none.

    `after` is the call that the gap counts from; `join` a call of the other stream that must have
    ended too. `gap_us` is the local time from the later of the two, or from `after` on a side stream.
    """

    after: IntArray
    join: IntArray
    gap_us: FloatArray
    is_side: BoolArray


def sequence(calls: Calls, *, sends_are_free: bool = False) -> Sequence:
    """Find the streams of each rank; without time stamps all gaps are unknown (NaN).

    Args:
        calls: the step's calls.
        sends_are_free: sends run beside computing, as the step's overlapped time shows.
    """
    n = len(calls)
    first = np.r_[True, calls.rank[1:] != calls.rank[:-1]] if n else np.empty(0, bool)
    after = np.where(first, -1, np.arange(n) - 1).astype(np.int32)
    join = np.full(n, -1, np.int32)
    if not calls.has_clock:
        return Sequence(after, join, np.full(n, np.nan), np.zeros(n, bool))
    sends = calls.is_send
    is_side = sends if (sends_are_free or _overlap_others(calls, sends)) else np.zeros(n, bool)
    is_side = is_side | _side_calls(calls, is_side)
    if is_side.any():
        after, join = _split(calls, is_side, first)
    begun = np.where(after >= 0, calls.end_us[after], 0.0)
    joined = np.where((join >= 0) & ~is_side, calls.end_us[join], -np.inf)
    gap = calls.start_us - np.maximum(begun, joined)
    return Sequence(after, join, np.where(after < 0, 0.0, np.maximum(gap, 0.0)), is_side)


def _overlap_others(calls: Calls, sends: BoolArray) -> bool:
    """Whether any send was still going on when the rank began its next call."""
    begun_early = calls.start_us < _latest_end_before(calls, sends) - TOLERANCE_US
    return bool((begun_early & ~sends).any())


def _side_calls(calls: Calls, known: BoolArray) -> BoolArray:
    """Calls on a second stream: those of groups that overlap groups with more calls."""
    rest = ~known & ~calls.is_point_to_point
    begun_early = rest & (calls.start_us < _latest_end_before(calls, rest) - TOLERANCE_US)
    if not begun_early.any():
        return np.zeros(len(calls), bool)
    n_calls = np.bincount(calls.group, minlength=len(calls.groups))
    per_rank = n_calls / np.maximum(_ranks_of_groups(calls), 1)
    side_groups: set[int] = set()
    for here in np.flatnonzero(begun_early).tolist():
        before = here - 1
        while before > 0 and not (
            rest[before] and calls.end_us[before] >= calls.start_us[here] + TOLERANCE_US
        ):
            before -= 1
        pair = (int(calls.group[before]), int(calls.group[here]))
        if pair[0] != pair[1]:
            side_groups.add(min(pair, key=lambda group: (per_rank[group], group)))
    return np.isin(calls.group, sorted(side_groups)) & rest


def _ranks_of_groups(calls: Calls) -> IntArray:
    pairs = np.unique(calls.group.astype(np.int64) * len(calls.ranks) + calls.rank)
    return np.bincount(pairs // len(calls.ranks), minlength=len(calls.groups))


def _latest_end_before(calls: Calls, among: BoolArray) -> FloatArray:
    """The latest end among a rank's earlier calls. Clocks of ranks are shifted apart to do it at once."""
    span = float(calls.end_us.max()) + 1.0
    lifted = np.maximum.accumulate(np.where(among, calls.end_us, 0.0) + calls.rank * 2 * span)
    latest: FloatArray = np.r_[-np.inf, lifted[:-1]] - calls.rank * 2 * span
    return latest


def _split(calls: Calls, is_side: BoolArray, first: BoolArray) -> tuple[IntArray, IntArray]:
    """Dependencies with two streams a rank."""
    after = np.full(len(calls), -1, np.int32)
    join = np.full(len(calls), -1, np.int32)
    sends = calls.is_send
    bounds = np.r_[np.flatnonzero(first), len(calls)]
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        main = np.flatnonzero(~is_side[begin:end]) + begin
        side = np.flatnonzero(is_side[begin:end]) + begin
        after[main[1:]] = main[:-1]
        for queue in (side[sends[side]], side[~sends[side]]):
            join[queue[1:]] = queue[:-1]
        ended = np.searchsorted(calls.end_us[main], calls.start_us[side] + TOLERANCE_US, side="right") - 1
        after[side] = np.where(ended >= 0, main[np.maximum(ended, 0)], -1)
        _join_drained(calls, main, side[~sends[side]], join)
    return after, join


def _join_drained(calls: Calls, main: IntArray, side: IntArray, join: IntArray) -> None:
    """The first main call behind the last side call of a run waits for it when it ran into the gap.

    A run of side calls ends where the main stream issues two calls without one beside them.
    """
    if len(main) < 2 or not len(side):
        return
    next_main = np.searchsorted(calls.start_us[main], calls.end_us[side] - TOLERANCE_US)
    for position, follower in enumerate(next_main.tolist()):
        if follower == 0 or follower >= len(main):
            continue
        is_last = position == len(side) - 1 or next_main[position + 1] > follower + 1
        in_flight = calls.start_us[side[position]] <= calls.end_us[main[follower - 1]] + TOLERANCE_US
        if is_last and in_flight:
            join[main[follower]] = side[position]
