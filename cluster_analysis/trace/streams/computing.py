"""How long computing goes on during collectives, from the gaps of peers and the step totals.

A rank that computes while a collective runs does not compute less when that collective gets quicker. The gap
before a call can be counted from the issue of the call before it, or from its end. If peers agree on the
first, computing went on meanwhile; if they agree on the second, computing had waited. The totals say how much
computing is covered in all, which no gap shows. All steps run one program, so a step may show what another
one hides.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cluster_analysis.numeric.arrays import BoolArray, FloatArray
from cluster_analysis.numeric.stats import scatter
from cluster_analysis.thresholds.calls import (
    ALIKE_SCATTER_FACTOR,
    BACKWARD_FACTOR,
    COVERED_SHARE,
    COVERED_TOLERANCE,
    ENOUGH_PEERS,
    LEAST_COVERED_US,
    MOST_IDLE_SHARE,
    QUEUE_SCATTER,
    QUEUE_US,
    SHARE_HALVINGS,
)
from cluster_analysis.thresholds.common import HALFWAY


class PeerRows(Struct, frozen=True):
    """Calls of ranks that run one program, side by side: times in µs by (rows, places), a row a rank's step.

    Calls that are not recorded were filled in: gaps around them show nothing.
    `gathers` (places,) are calls that fetch weights: what is computed next needs them; `reduces`
    (places,) those that add up what was computed. By row: the communication that computing covers, and what
    is computed and idled.
    """

    start_us: FloatArray
    end_us: FloatArray
    is_recorded: BoolArray
    gathers: BoolArray
    reduces: BoolArray
    covered_us: FloatArray
    computing_us: FloatArray
    idle_us: FloatArray

    @property
    def until(self) -> int:
        """Up to which place computing goes on during calls: what waits for the last gradients waits for all.

        The weights that are gathered then are those of the next step.
        """
        sums = np.flatnonzero(self.reduces)
        return int(sums[-1]) + 1 if len(sums) else len(self.reduces)

    @property
    def chain_us(self) -> FloatArray:
        """Time that computing covers, with the idle time in it: as much of it as outside of calls (rows,).

        The totals do not know the idle time during calls.
        """
        alone = np.maximum(self.computing_us - self.covered_us, LEAST_COVERED_US)
        return np.asarray(self.covered_us * (1.0 + np.clip(self.idle_us / alone, 0.0, MOST_IDLE_SHARE)))


class _Weights:
    """Which weights are there to compute with, if most calls gather some: each is used once, then dropped.

    So there is nothing to compute during a gathering until another one has ended.
    """

    def __init__(self, gathers: BoolArray) -> None:
        self._fetched = np.r_[0, np.cumsum(gathers)]
        self.are_all = bool(gathers.mean() > HALFWAY)
        self._n_used = 0

    def are_there(self, place: int) -> bool:
        """Return whether something can be computed during the call before a place."""
        return not self.are_all or self._n_used < self._fetched[place - 1]

    def use(self, place: int) -> None:
        """Compute with the oldest weights that the calls before the one before a place had fetched."""
        self._n_used = min(self._n_used + 1, int(self._fetched[place - 1]))


class _Place(Struct, frozen=True):
    """Before which call computing is hidden: its room (rows,), and the most that it is.

    `weight` is how much is computed there compared with other places, by the call's role.
    """

    place: int
    room_us: FloatArray
    most_us: float
    weight: float = 1.0

    def filled_us(self, level_us: FloatArray) -> FloatArray:
        """Computing here (rows,), where places of weight 1 have so much (rows,) if they have room for it."""
        return np.minimum(np.minimum(level_us * self.weight, self.most_us), self.room_us)


class _Hidden:
    """Places at which computing is hidden; all times are in µs by row."""

    def __init__(self) -> None:
        self._shown, self._possible, self._queued = list[_Place](), list[_Place](), list[_Place]()

    def add_shown(self, place: int, room_us: FloatArray, usual_us: float, *, is_sum: bool) -> None:
        """Note that a few rows show what the others (`room_us` above 0) do at a place, if not more."""
        self._shown.append(_Place(place, room_us, usual_us, BACKWARD_FACTOR if is_sum else 1.0))

    def add_possible(
        self, place: int, room_us: FloatArray, knows: BoolArray, *, is_sum: bool, is_queued: bool,
        behind_us: FloatArray | None = None,
    ) -> None:  # fmt: skip
        """Note that computing may be hidden during calls; only rows that know (`knows`) show it.

        The row that waits least in a call has more left to do behind it (`behind_us`, rows) than those that
        hid it.
        """
        if knows.any():
            weight = BACKWARD_FACTOR if is_sum else 1.0
            places = self._queued if is_queued else self._possible
            most_us = room_us[knows]
            if behind_us is not None:
                most_us = most_us + np.maximum(behind_us[knows] - np.median(behind_us[knows]), 0.0)
            places.append(_Place(place, room_us, float(most_us.min()), weight))

    def fill(self, worked_us: FloatArray, left_us: FloatArray, is_late: BoolArray) -> None:
        """Fill in what is hidden in `worked_us` (rows, places).

        As each row's total says, and as much in each place as it has room for, twice as much before gradients
        as during weights; first before calls that did not queue behind others in all rows.

        Args:
            worked_us: what was computed since the call before was issued.
            left_us: what is covered and no gap shows (rows,).
            is_late: rows that show what others do not; totals do not hold what these idle during calls.
        """
        shown = [one.most_us / one.weight for one in self._shown]
        usual_us = float(np.median(shown)) if shown else np.inf
        possible = [replace(one, most_us=min(one.most_us, usual_us * one.weight)) for one in self._possible]
        tiers = ([*self._shown, *possible], self._queued) if shown else ([*possible, *self._queued],)
        for number, places in enumerate(tiers):
            level = max((one.most_us / one.weight for one in places), default=0.0)
            share = np.where(is_late & (number == 0), 1.0, _shares(places, level, left_us))
            for one in places:
                found = one.filled_us(share * level)
                left_us = left_us - found
                worked_us[:, one.place] += found


class Overlap(Struct, frozen=True):
    """Where computing goes on during calls. By place (places,) and by (rows, places).

    Before a call that `runs_on` computing did not wait for the call before it; it took `worked_us` since it
    issued that. Before others it waited, having computed for `worked_us` during what went before.
    """

    runs_on: BoolArray
    worked_us: FloatArray

    def of(self, rows: slice) -> Overlap:
        """Return what holds for some rows."""
        return Overlap(self.runs_on, self.worked_us[rows])


def overlap_of(laid: PeerRows) -> Overlap | None:
    """Tell where computing goes on; None where hardly any of it is during a call."""
    covered = float(np.median(laid.covered_us))
    local = float(np.median(laid.computing_us + laid.idle_us))
    if covered < max(LEAST_COVERED_US, COVERED_SHARE * local):
        return None
    by_gaps_alone, left = _shown_by_gaps(laid)
    if float(np.median(left)) < -COVERED_TOLERANCE * covered:
        # More than the totals have room for: gaps hold something else, so that they tell nothing here.
        return Overlap(np.zeros_like(laid.gathers), np.zeros_like(laid.start_us))
    return by_gaps_alone


def _shown_by_gaps(laid: PeerRows) -> tuple[Overlap, FloatArray]:
    """Follow computing from call to call: what it does, and what is covered beyond what gaps show (rows,)."""
    n_rows, n = laid.start_us.shape
    worked, runs_on, n_late = np.zeros((n_rows, n)), np.zeros(n, bool), np.zeros(n_rows)
    hidden, weights, usually = _Hidden(), _Weights(laid.gathers), dict[tuple[bool, bool], bool]()
    issued = laid.start_us[:, 0].copy()  # where computing is, on each row's clock
    left = laid.chain_us
    tolerance = COVERED_TOLERANCE * float(np.median(left))
    for place in range(1, laid.until):
        start, before = laid.start_us[:, place], laid.end_us[:, place - 1]
        if place > 1 and laid.gathers[place - 2]:
            issued = np.maximum(issued, laid.end_us[:, place - 2])
        knows = laid.is_recorded[:, place] & laid.is_recorded[:, place - 1]
        shows, room = knows & (start > before + QUEUE_US), np.maximum(before - issued, 0.0)
        has_weights = weights.are_there(place)
        if not shows.any():
            # Issued in one go, as far as is known: weights are computed with, gradients were computed before.
            is_sum = bool(laid.reduces[place])
            if (laid.gathers[place - 1] or is_sum) and has_weights:
                hidden.add_possible(place, room, knows, is_sum=is_sum, is_queued=True)
                weights.use(place)
            runs_on[place] = True
            continue
        few_show = shows.sum() < HALFWAY * knows.sum()
        usual = float(np.median((start - issued)[shows]))
        now = np.where(shows, start, np.clip(issued + usual, issued, np.maximum(issued, start)))
        by_gaps = np.maximum(now - issued, 0.0)
        # If few show it, they took longer than the others: for the others this is a bound.
        is_known = shows if few_show else np.ones_like(shows)
        covered = np.where(is_known, np.clip(np.minimum(now, before) - issued, 0.0, None), 0.0)
        has_room = float(np.median(left - covered)) >= -tolerance
        # Where few show it, the place of its kind before that most showed tells more.
        kind = bool(laid.reduces[place]), bool(laid.gathers[place - 1])
        if not few_show or kind not in usually:
            usually[kind] = _runs_on(start - before, start - issued, shows, knows, is_sum=kind[0])
        if not (has_weights and has_room and usually[kind]):
            if has_weights:
                behind = start - before
                hidden.add_possible(place, room, knows, is_sum=kind[0], is_queued=False, behind_us=behind)
            if has_weights or not few_show:
                weights.use(place + (not few_show))
            issued = start.copy()
            continue
        runs_on[place] = True
        weights.use(place)
        # Calls queue if these few begin as much later than the one before ends whatever it took: they launch
        # each call late. Computing during that one does not know when it ends.
        if few_show and scatter((start - before)[shows]) < min(
            QUEUE_US, QUEUE_SCATTER * scatter((start - issued)[shows])
        ):
            hidden.add_possible(place, room, knows, is_sum=kind[0], is_queued=True)
            continue
        if few_show:
            hidden.add_shown(place, np.where(shows, 0.0, by_gaps), usual, is_sum=kind[0])
            n_late += shows
        worked[:, place] = np.where(is_known, by_gaps, 0.0)
        left = left - covered
        issued = now
    hidden.fill(worked, left, n_late >= ENOUGH_PEERS)
    return Overlap(runs_on, worked), left


def _runs_on(
    from_end: FloatArray, from_issue: FloatArray, shows: BoolArray, knows: BoolArray, *, is_sum: bool
) -> bool:
    """Whether gaps agree better counted from the issue of the call before than from its end.

    Counted from its issue there is no gap where that call takes longer. Where ranks issued it together both
    agree alike: then what a sum adds up was computed since, and other computing waited for the call.
    """
    behind, since = from_end[knows], from_issue[knows]
    at_least = np.maximum(np.median(from_issue[shows]), since - behind)
    alike = ALIKE_SCATTER_FACTOR if is_sum else 1.0
    return float(np.abs(since - at_least).mean()) < alike * scatter(behind)


def _shares(places: Sequence[_Place], level_us: float, left_us: FloatArray) -> FloatArray:
    """How full places are in each row (rows,), as shares of a level, so that nothing is left."""
    low, high = np.zeros(len(left_us)), np.where(left_us > LEAST_COVERED_US, 1.0, 0.0)
    for _ in range(SHARE_HALVINGS if places else 0):
        half = (low + high) / 2.0
        found = np.sum([one.filled_us(half * level_us) for one in places], axis=0)
        low, high = np.where(found > left_us, (low, half), (half, high))
    return high
