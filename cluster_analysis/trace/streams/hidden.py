"""Computing that no gap shows, because it lies beside calls: told from how much of it there is in all."""

from __future__ import annotations

import numpy as np

from cluster_analysis.numeric.arrays import BoolArray, FloatArray
from cluster_analysis.thresholds.common import HALFWAY
from cluster_analysis.thresholds.streams import LEAST_COVERED_US

_N_HALVINGS = 40


class Weights:
    """Which weights are there to compute with, where most calls gather some: each is used once, then dropped.

    So there is nothing to compute beside a gathering until another one has ended.
    """

    def __init__(self, gathers: BoolArray) -> None:
        self._fetched = np.r_[0, np.cumsum(gathers)]
        self._all_fetched = bool(gathers.mean() > HALFWAY)
        self._n_used = 0

    def are_there(self, place: int) -> bool:
        """Return whether something can be computed beside the call before a place."""
        return not self._all_fetched or self._n_used < self._fetched[place - 1]

    def use(self, place: int) -> None:
        """Compute with the oldest weights that the calls before the one before a place had fetched."""
        self._n_used = min(self._n_used + 1, int(self._fetched[place - 1]))


class Hidden:
    """Places at which computing is hidden, each with its room and what it can be at most; in µs by row."""

    def __init__(self, pace: FloatArray) -> None:
        self._pace = pace
        self._places: list[int] = []
        self._rooms: list[FloatArray] = []
        self._beyond: list[FloatArray] = []
        self._most: list[float] = []

    def add(self, place: int, room: FloatArray, most: FloatArray) -> None:
        """Note that something may be hidden.

        Args:
            place: before which call.
            room: how long the calls last beside which it may have been (rows,).
            most: what it is at most at the usual pace, by what each row shows (rows,).
        """
        self._note(place, room, np.zeros(len(room)), most)

    def add_waiting(self, place: int, room: FloatArray, behind: FloatArray) -> None:
        """Note the same where computing waits for the calls, and goes on `behind` them.

        Who has little room shows more behind than is usual: so much of it was beside the calls of others.
        """
        more = np.maximum(behind - float(np.median(behind / self._pace)) * self._pace, 0.0)
        self._note(place, room, more, (room + more) / self._pace)

    def _note(self, place: int, room: FloatArray, beyond: FloatArray, most: FloatArray) -> None:
        self._places.append(place)
        self._rooms.append(room)
        self._beyond.append(beyond)
        self._most.append(float(most.min()))

    def fill(self, worked_us: FloatArray, left_us: FloatArray) -> FloatArray:
        """Fill in what is hidden in `worked_us` (rows, places), and return how much of it was not covered.

        All places are as full as the middle row's total says.

        Args:
            worked_us: what was computed since the call before was issued.
            left_us: what is covered and no gap shows (rows,).
        """
        beyond = np.zeros(worked_us.shape)
        if not self._places or float(np.median(left_us)) <= LEAST_COVERED_US:
            return beyond
        room = np.stack(self._rooms, axis=1)
        most = self._pace[:, None] * np.array(self._most)
        low, high = 0.0, 1.0
        for _ in range(_N_HALVINGS):
            half = (low + high) / 2.0
            is_more = float(np.median(np.minimum(half * most, room).sum(axis=1) - left_us)) > 0
            low, high = (low, half) if is_more else (half, high)
        found = np.minimum(high * most, room + np.stack(self._beyond, axis=1))
        worked_us[:, self._places] += found
        beyond[:, self._places] = np.maximum(found - room, 0.0)
        return beyond
