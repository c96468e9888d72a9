"""Between which of its own calls a rank made one that its files lack, as replicas order them."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.stats import median
from cluster_analysis.thresholds.lost_messages import N_ASKED, N_FURTHER
from cluster_analysis.thresholds.messages import TOGETHER_US
from cluster_analysis.thresholds.streams import MOST_OVERLAPPED, ROUNDED_US
from cluster_analysis.trace.missing.shown import Shown


class Rooms(Struct, frozen=True):
    """Where calls of a program lie, as replicas show it.

    `made_up_us` (groups, slots) are the ends of calls that are filled in, as they become known, else NaN.
    """

    shown: Shown
    made_up_us: FloatArray

    def room(
        self, row: int, slot: int, rank: int, concurrent_us: float, met_us: float
    ) -> tuple[float, float]:
        """Return between which of the rank's own calls it lay: the end of one, and the start of the next."""
        own = self.shown.calls.of_rank(rank)
        table, family = self.shown.program.family.table[row], self.shown.program.family
        alike = family.stage == family.stage[slot]
        if np.isfinite(concurrent_us):
            # Sends wait during other calls, so that numbers are in the order of time between two ranks alone.
            alike = self.shown.between == self.shown.between[slot]
        inside = np.flatnonzero(alike & (table >= 0))
        first = int(table[inside[inside < slot]].max(initial=own.start - 1))
        last = int(table[inside[inside > slot]].min(initial=own.stop))
        if last <= first:  # starts on two streams: their numbers are not in the order of time
            last = min(first + 1, own.stop)
        before = self._call_before(slot, first, last)
        if np.isfinite(concurrent_us):
            begun = self.shown.calls.start_us[first + 1 : last]
            before = first + int(np.searchsorted(begun, concurrent_us))
        before = min(max(before, first), last - 1)
        after = self._main_after(before, own.stop)
        until = float(self.shown.calls.start_us[after]) if after < own.stop else np.inf
        begin = self._ended_us(
            row, slot, range(max(first - MOST_OVERLAPPED, own.start), before + 1), min(until, met_us)
        )
        made_up = self.made_up_us[row, (family.stage == family.stage[slot]) & (np.arange(len(table)) < slot)]
        made_up = made_up[made_up <= min(until, met_us)]
        begin = max(begin, float(made_up.max(initial=-np.inf)))
        if not np.isfinite(begin):
            begin = min(self._begun_by_replicas_us(slot, rank), until)
        if not np.isfinite(until):
            until = np.fmax(begin + float(median(self.shown.elapse_us[:, slot])), concurrent_us + TOGETHER_US)
        return begin, max(begin, until)

    def _main_after(self, call: int, end: int) -> int:
        """The next call of the main stream behind a call; `end` where there is none before that."""
        at = int(np.searchsorted(self.shown.main, call, side="right"))
        return min(int(self.shown.main[at]), end) if at < len(self.shown.main) else end

    def _ended_us(self, row: int, slot: int, inside: range, until_us: float) -> float:
        """When a rank ended the call that the replicas had ended last before a slot, of those inside.

        Where it lacks that one too, when it ended its last one. Those that are still under way when the next
        call begins are on another stream.
        """
        ends = self.shown.calls.end_us[inside.start : inside.stop]
        ends = np.where(
            (ends <= until_us + ROUNDED_US) & self.shown.is_main[inside.start : inside.stop], ends, -np.inf
        )
        asked = self.shown.earlier[:, slot]
        found = self._of_replicas(asked, self.shown.same[inside.start : inside.stop], ends)
        if not np.isfinite(found):  # a message: the rank's own of that slot
            _, slots = np.nonzero(np.isin(self.shown.program.family.table, asked[asked >= 0]))
            own = int(self.shown.program.family.table[row, np.bincount(slots).argmax()]) if len(slots) else -1
            found = float(ends[own - inside.start]) if inside.start <= own < inside.stop else -np.inf
        return found if np.isfinite(found) else float(ends.max(initial=-np.inf))

    def _begun_by_replicas_us(self, slot: int, rank: int) -> float:
        """When replicas begin a slot, on a rank's clock: a step's first call."""
        table = self.shown.program.family.table[:, slot]
        known = table[table >= 0]
        begun = self.shown.calls.start_us[known] + self.shown.offset_us[self.shown.calls.rank[known]]
        return float(np.median(begun) - self.shown.offset_us[rank])

    def begun_us(self, slot: int, rank: int, since_us: float) -> float:
        """Return when a rank began what replicas begin next, after a slot's call; -inf: it lacks that."""
        own = self.shown.calls.of_rank(rank)
        starts = self.shown.calls.start_us[own]
        starts = np.where(starts >= since_us, -starts, -np.inf)
        found = -self._of_replicas(self.shown.later[:, slot], self.shown.same[own], starts)
        return found if np.isfinite(found) else -np.inf

    def _of_replicas(self, asked: IntArray, same: IntArray, times_us: FloatArray) -> float:
        """The latest time of a rank's calls (N,) that are the same as a replica's; -inf where it has none.

        Args:
            asked: calls of replicas, -1 for none.
            same: which calls the rank's are.
            times_us: their times, -inf for those that are not meant.
        """
        asked = asked[(asked >= 0) & ~self.shown.calls.is_point_to_point[asked]][:N_ASKED]
        found = [times_us[same == one].max(initial=-np.inf) for one in self.shown.same[asked]]
        known = [one for one in found if np.isfinite(one)]
        return float(np.median(known)) if known else -np.inf

    def _call_before(self, slot: int, first: int, last: int) -> int:
        """The last of a rank's calls between two that comes before a slot in the replicas' order."""
        calls, same = self.shown.calls, self.shown.same
        inside = np.where(self.shown.is_main[first + 1 : last], same[first + 1 : last], -1)
        asked = self.shown.program.family.table[:, slot]
        before: list[int] = []
        for call in asked[asked >= 0][:N_ASKED].tolist():
            begin = calls.of_rank(int(calls.rank[call])).start
            near = same[max(call - len(inside) - N_FURTHER, begin) : call]
            at = np.flatnonzero(np.isin(inside, near))
            before.append(first + 1 + int(at[-1]) if len(at) else first)
        return int(np.median(before)) if before else first
