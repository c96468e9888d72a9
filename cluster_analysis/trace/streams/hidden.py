"""Computing during calls, which no gap shows: found from the total of computing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cluster_analysis.numeric.arrays import BoolArray, FloatArray
from cluster_analysis.thresholds.common import HALFWAY
from cluster_analysis.thresholds.streams import BACKWARD_FACTOR, LEAST_COVERED_US, SHARE_HALVINGS


class Weights:
    """Which weights are there to compute with, where most calls gather some: each is used once, then dropped.

    So there is nothing to compute beside a gathering until another one has ended.
    """

    def __init__(self, gathers: BoolArray) -> None:
        self._fetched = np.r_[0, np.cumsum(gathers)]
        self.are_all = bool(gathers.mean() > HALFWAY)
        self._n_used = 0

    def are_there(self, place: int) -> bool:
        """Return whether something can be computed beside the call before a place."""
        return not self.are_all or self._n_used < self._fetched[place - 1]

    def use(self, place: int) -> None:
        """Compute with the oldest weights that the calls before the one before a place had fetched."""
        self._n_used = min(self._n_used + 1, int(self._fetched[place - 1]))


class _Place(Struct, frozen=True):
    """Before which call something is hidden: its room, and what may lie beyond it (rows,); the most it is.

    `weight` is how much is computed there compared with other places, by the call's role.
    """

    place: int
    room_us: FloatArray
    beyond_us: FloatArray
    most_us: FloatArray
    weight: float = 1.0

    def filled_us(self, level_us: FloatArray) -> FloatArray:
        """Computing here (rows,), where places of weight 1 have so much if they have room for it."""
        return np.minimum(np.minimum(level_us * self.weight, self.most_us), self.room_us + self.beyond_us)


class Hidden:
    """Places at which computing is hidden; all times are in µs by row."""

    def __init__(self, pace: FloatArray) -> None:
        self._pace = pace
        self._shown: list[_Place] = []
        self._possible: list[_Place] = []
        self._alike: list[_Place] = []

    def add_shown(self, place: int, room_us: FloatArray, usual_us: float) -> None:
        """Note that a few rows show what the others (`room_us` above 0) do at a place, if not more."""
        nothing = np.zeros(len(room_us))
        self._shown.append(_Place(place, room_us, nothing, usual_us * self._pace))

    def add_possible(
        self, place: int, room_us: FloatArray, behind_us: FloatArray, knows: BoolArray, *, is_sum: bool
    ) -> None:
        """Note that computing may be hidden during calls. Only the length of these is known.

        A rank with little room that shows more than usual `behind` the calls did so during those of others.
        Only rows that know (`knows`) tell.
        """
        if knows.any():
            weight = BACKWARD_FACTOR if is_sum else 1.0
            self._possible.append(self._with_more(place, (room_us, behind_us, knows), weight))

    def _with_more(
        self, place: int, rows: tuple[FloatArray, FloatArray, BoolArray], weight: float, n_parts: int = 1
    ) -> _Place:
        """One of so many parts of a place: its room, and what rows show behind it beyond the usual."""
        room_us, behind_us, knows = rows
        usual = float(np.median((behind_us / self._pace)[knows]))
        more = np.maximum(behind_us - usual * self._pace, 0.0) / n_parts
        room = room_us / n_parts
        most = float(((room + more) / self._pace)[knows].min())
        return _Place(place, room, more, most * self._pace, weight)

    def add_alike(self, place: int, room_us: FloatArray, knows: BoolArray) -> None:
        """Note that as much may be hidden as at others of these places: the gradients of alike layers."""
        if knows.any():
            nothing = np.zeros(len(room_us))
            most = float((room_us / self._pace)[knows].min())
            self._alike.append(_Place(place, room_us, nothing, most * self._pace, BACKWARD_FACTOR))

    def add_held_back(
        self, place: int, room_us: FloatArray, behind_us: FloatArray, knows: BoolArray, n_held: int
    ) -> None:
        """Note that all was computed before a place from which on so many gradients go, as `add_possible`."""
        if knows.any():
            one = self._with_more(place, (room_us, behind_us, knows), BACKWARD_FACTOR, n_held)
            self._alike += [one] * n_held

    def is_behind_alike(self, place: int) -> bool:
        """Return whether the last place before this one is one of those alike."""
        return bool(self._alike) and self._alike[-1].place == place - 1

    def fill(self, worked_us: FloatArray, left_us: FloatArray) -> FloatArray:
        """Fill in what is hidden in `worked_us` (rows, places), and return how much of it was not covered.

        First those of which something is shown, all as full as the middle row's total says; then the others,
        with as much in each as it has room for, twice as much before gradients as beside weights.

        Args:
            worked_us: what was computed since the call before was issued.
            left_us: what is covered and no gap shows (rows,).
        """
        beyond = np.zeros(worked_us.shape)
        least = min((one.most_us for one in self._alike), key=np.median, default=np.zeros(0))
        alike = [replace(one, most_us=least) for one in self._alike]
        # A place is measured by its own value.
        shown = [(one, one.most_us) for one in self._shown]
        others = [*self._possible, *alike]
        most = max((float(np.median(one.most_us / self._pace)) / one.weight for one in others), default=0.0)
        for places in (shown, [(one, most * self._pace) for one in others]):
            share = _share(places, left_us)
            for one, level_us in places:
                found = one.filled_us(share * level_us)
                inside = np.minimum(found, one.room_us)
                left_us = left_us - inside
                worked_us[:, one.place] += found
                beyond[:, one.place] += found - inside
        return beyond


def _share(places: Sequence[tuple[_Place, FloatArray]], left_us: FloatArray) -> float:
    """How full places are, of the most that each may have, so that the middle row has nothing left."""
    if not places or float(np.median(left_us)) <= LEAST_COVERED_US:
        return 0.0

    def is_too_much(share: float) -> bool:
        found = [np.minimum(one.filled_us(share * level_us), one.room_us) for one, level_us in places]
        return float(np.median(np.sum(found, axis=0) - left_us)) > 0

    if not is_too_much(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(SHARE_HALVINGS):
        half = (low + high) / 2.0
        low, high = (low, half) if is_too_much(half) else (half, high)
    return high
