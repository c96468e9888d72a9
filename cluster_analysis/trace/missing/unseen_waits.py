"""Waits that no record shows: ranks that go on together although they got there one after the other.

Where all of a group begin something at one time, and had ended what came before at times far apart, they
waited for the last of them: in a collective that was not recorded, or on the host. It is taken as one more
collective, which takes no time by itself. Four things must hold: nobody went on before the last one was
there; they went on far closer together than they had come; ranks that run one program went on before the same
call; and the step totals of each rank have as much idle time as it would have waited.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.tables.model import Topology
from cluster_analysis.thresholds.unseen_waits import (
    CHANCE_P_VALUE,
    INEXACT_FACTOR,
    INEXACT_US,
    LEAST_SHARE,
    LEAST_US,
    MOST_GROUPS_SHARE,
    MOST_SPREAD_SHARE,
    N_EXTREMES,
    TOGETHER_US,
)
from cluster_analysis.trace.calls import Calls, with_more
from cluster_analysis.trace.streams.streams import Streams
from cluster_run.ids import Rank

#: Logarithm of the odds of a coincidence from which it is none, over all that are tried.
_BY_CHANCE = float(np.log(CHANCE_P_VALUE))
#: Groups of one purpose that are looked at first; if none of them shows anything, the others do not either.
_TRIED_FIRST = 8
_TIMES = ("start_us", "end_us")


class Unseen(Struct, frozen=True):
    """One wait: before which call of each member it was, when each came, and when all went on (own clocks).

    (N,) each, in µs; `start_us` and `end_us` are on each rank's own clock.
    """

    before: IntArray
    start_us: FloatArray
    end_us: FloatArray


class _Begun(Struct, frozen=True, dict=True):
    """The main streams' calls (M,), by rank; `came_us` is the end of the one before, on one clock."""

    calls: Calls
    topology: Topology
    call: IntArray
    rank: IntArray
    came_us: FloatArray
    went_us: FloatArray
    begin: IntArray
    idle_us: FloatArray
    least_us: float

    @cached_property
    def program(self) -> IntArray:
        """The same number (R,) for ranks that make the same kinds of calls one after the other.

        Few steps need it: where somebody waits for long, and others begin when it does.
        """
        return _programs(self.calls, self.call, self.begin, self.topology)


def unseen_waits(
    calls: Calls, local: Streams, offset_us: FloatArray, totals: tuple[FloatArray, FloatArray, FloatArray],
    topology: Topology,
) -> list[Unseen]:  # fmt: skip
    """Return the waits of a step that its records do not show.

    Args:
        calls: the step's calls.
        local: what each of them counts from.
        offset_us: what to add to each rank's clock to compare it with others (ranks,).
        totals: of each rank, NaN where unknown: its idle time, its step time, and what the step takes before
            its first call (ranks,) each.
        topology: who belongs together.
    """
    idle, step, head = totals
    least = max(LEAST_US, LEAST_SHARE * float(np.nan_to_num(np.nanmax(step, initial=0.0))))
    if not calls.has_clock or np.isnan(idle).any() or np.ptp(idle) < least:
        return []
    # Where collectives run during computing, gaps hold waiting for them, which hides all else.
    if (local.is_side & ~calls.is_send).any():
        return []
    main = np.flatnonzero(~local.is_side)
    rank, start, gap = calls.rank[main], calls.start_us[main], local.gap_us[main]
    first = np.flatnonzero(local.after[main] < 0)
    first = first[~local.is_queued[main[first]]]
    gap[first] = head[rank[first]] + start[first]
    gap[np.isnan(gap)] = 0.0
    bounds = np.searchsorted(rank, np.arange(len(calls.ranks) + 1))
    went = start + np.repeat(offset_us, np.diff(bounds))
    begun = _Begun(calls, topology, main, rank, went - gap, went, bounds, idle, least)
    found: list[IntArray] = []
    taken: set[int] = set()
    for sets in _candidates(calls, topology):
        for members in _waits(begun, sets):
            if taken.isdisjoint(members.tolist()):
                taken.update(members.tolist())
                found.append(members)
    return _told(begun, found, offset_us) if found else []


def with_unseen_waits(calls: Calls, found: Sequence[Unseen]) -> tuple[Calls, IntArray]:
    """Return the calls with one more for each member of each wait, and where they were: new ones behind."""
    before = np.concatenate([one.before for one in found])
    n, own = len(before), {name: np.concatenate([getattr(one, name) for one in found]) for name in _TIMES}
    group = np.repeat(len(calls.groups) + np.arange(len(found)), [len(one.before) for one in found])
    more, order = with_more(
        calls, before, rank=calls.rank[before], group=group, kind=np.full(n, len(calls.types)),
        number=np.full(n, -1), size_bytes=np.zeros(n), busy_us=np.full(n, np.nan), **own,
    )  # fmt: skip
    names = tuple(f"unseen wait {number}" for number in range(len(found)))
    return replace(more, groups=calls.groups + names, types=(*calls.types, "wait")), order


def _candidates(calls: Calls, topology: Topology) -> Iterator[list[IntArray]]:
    """Sets of ranks that may wait for each other: all, then the groups, those of one purpose together."""
    yield [np.arange(len(calls.ranks))]
    position = {rank: at for at, rank in enumerate(calls.ranks.tolist())}
    for sets in topology.rank_sets:
        found = {tuple([position[rank] for rank in ranks if rank in position]) for ranks in sets}
        yield [np.array(one) for one in sorted(found) if 2 <= len(one) < len(calls.ranks)]


def _waits(begun: _Begun, sets: Sequence[IntArray]) -> list[IntArray]:
    """Waits that the sets of one purpose have in common: the members' places in `begun`."""
    seen: dict[int, list[tuple[float, IntArray]]] = defaultdict(list)
    n_tried = 0
    for number, members in enumerate(sets):
        if number == _TRIED_FIRST and not seen:
            return []
        idlest = members[np.argmax(begun.idle_us[members])]
        if begun.idle_us[idlest] - begun.idle_us[members].min() < begun.least_us:
            continue
        by_idle = members[np.argsort(begun.idle_us[members], kind="stable")]
        extremes = np.unique(np.r_[by_idle[:N_EXTREMES], by_idle[-N_EXTREMES:]])
        own = np.arange(begun.begin[idlest], begun.begin[idlest + 1])
        for anchor in own[begun.went_us[own] - begun.came_us[own] >= begun.least_us].tolist():
            n_tried += 1
            few = _together(begun, extremes, float(begun.went_us[anchor]))
            if few is None or _odds(begun, extremes, few) >= 0:
                continue
            together = _together(begun, members, float(begun.went_us[anchor]))
            odds = _odds(begun, members, together) if together is not None else 0.0
            if together is not None and odds < 0:
                seen[anchor - int(begun.begin[idlest + 1])].append((odds, together))
    found = []
    for alike in seen.values():
        surely = sum(odds for odds, _ in alike) + np.log(max(n_tried, 1)) < _BY_CHANCE
        if surely and len(alike) >= MOST_GROUPS_SHARE * len(sets):
            found += [together for _, together in alike]
    return found


def _programs(calls: Calls, main: IntArray, bounds: IntArray, topology: Topology) -> IntArray:
    """Number the programs of ranks (R,): their stages, and what kinds of calls they make in which order."""
    found: dict[tuple[int, bytes], int] = {}
    # A byte each while there are so few kinds: most of the time goes into comparing them.
    kind = calls.kind[main].astype(np.min_scalar_type(len(calls.types)))
    text, size = kind.tobytes(), kind.itemsize
    numbers = []
    for rank, begin, end in zip(calls.ranks.tolist(), bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        key = topology.stages.get(Rank(rank), -1), text[size * begin : size * end]
        numbers.append(found.setdefault(key, len(found)))
    return np.array(numbers)


def _together(begun: _Begun, members: IntArray, at_us: float) -> IntArray | None:
    """The call of each member that begins nearest to a time.

    None where one has no calls, or where these are not the same call of a program that several run.
    """
    found = []
    for member in members.tolist():
        first, last = int(begun.begin[member]), int(begun.begin[member + 1])
        if first == last:
            return None
        found.append(first + int(np.argmin(np.abs(begun.went_us[first:last] - at_us))))
    places = zip(begun.program[members].tolist(), (found - begun.begin[members]).tolist(), strict=True)
    return np.array(found) if len(set(places)) == len(np.unique(begun.program[members])) else None


def _odds(begun: _Begun, members: IntArray, together: IntArray) -> float:
    """Logarithm of the odds that they went on together by chance; 0 where they waited for nobody."""
    came, went = begun.came_us[together], begun.went_us[together]
    late, spread = float(np.ptp(came)), max(float(np.ptp(went)), TOGETHER_US)
    waited = came.max() - came
    if late < begun.least_us or spread > MOST_SPREAD_SHARE * late or went.min() < came.max() - TOGETHER_US:
        return 0.0
    if (waited > INEXACT_FACTOR * begun.idle_us[members] + INEXACT_US).any():
        return 0.0
    n_apart = 1 + int((np.diff(np.sort(came)) > spread).sum())
    return (n_apart - 1) * float(np.log(spread / late))


def _told(begun: _Begun, waits: Sequence[IntArray], offset_us: FloatArray) -> list[Unseen]:
    """When each member began to wait.

    It waited since the last one came, at least. A rank that idles longer than that one waited longer:
    it had less to do before than the last one had.
    """
    rank = np.concatenate([begun.rank[one] for one in waits])
    least, most, usual = [], [], np.full(len(begun.idle_us), np.inf)
    for one in waits:
        came, went = begun.came_us[one], float(begun.went_us[one].min())
        least.append(np.minimum(came.max() - came, went - came))
        most.append(went - came)
        np.minimum.at(usual, begun.rank[one], begun.idle_us[begun.rank[one[np.argmax(came)]]])
    n_ranks = len(begun.idle_us)
    surely = np.bincount(rank, np.concatenate(least), n_ranks)
    room = np.bincount(rank, np.concatenate(most), n_ranks) - surely
    idle = np.where(np.isfinite(usual), begun.idle_us - usual, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip(np.nan_to_num((idle - surely) / room), 0.0, 1.0)
    found = []
    for one, low, high in zip(waits, least, most, strict=True):
        own = begun.rank[one]
        end = float(begun.went_us[one].min()) - offset_us[own]
        found.append(Unseen(begun.call[one], end - low - share[own] * (high - low), end))
    return found
