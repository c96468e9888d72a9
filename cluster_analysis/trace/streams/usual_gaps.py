"""How long ranks work before a call, and how long before similar calls: for calls that are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import begins, combined, places_in_runs
from cluster_analysis.thresholds.streams import MOST_OVERLAPPED, ROUNDED_US
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.streams.streams import Streams


class UsualGaps(Struct, frozen=True):
    """The local time before each call (V,) in µs.

    It counts `since` the rank's last call that had ended by then, -1 for none. Calls of one code have the
    same place in groups of one purpose and stage.
    """

    own_us: FloatArray
    since: IntArray
    code: IntArray

    @classmethod
    def of(
        cls,
        calls: Calls,
        operator: IntArray,
        stage: IntArray,
        purpose: IntArray,
        tables: Sequence[IntArray] = (),
    ) -> UsualGaps:
        """Take them of a step's calls.

        Args:
            operator: the operator of each call (V,).
            stage: pipeline stage of each rank (ranks,), -1 for unknown.
            purpose: a number for each group (groups,), the same for those that serve alike.
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
        return cls(own, since, code)

    def issued_us(
        self, calls: Calls, rank: int, alike: IntArray, streams: Streams,
        made_up_us: Mapping[tuple[int, int], float],
    ) -> float:  # fmt: skip
        """Return when a rank came to a call, by those alike: so long after the same call as they did.

        On a second stream they count from the issuing call, on the main stream from the last end. NaN
        where they do not agree on the stream, or the rank lacks that call too and nobody made it up.

        Args:
            rank: who lacks the call.
            alike: the call of others of its stage.
            streams: which calls are on a second stream.
            made_up_us: ends of calls that were filled in already, by rank and code.
        """
        if not len(alike) or len(set(streams.is_side[alike].tolist())) > 1:
            return np.nan
        is_side = bool(streams.is_side[alike[0]])
        since, gap_us = (streams.after, streams.gap_us) if is_side else (self.since, self.own_us)
        inside = calls.of_rank(rank)
        codes, ends = self.code[inside], calls.end_us[inside]
        at: list[float] = []
        for call in alike[since[alike] >= 0].tolist():
            code = int(self.code[since[call]])
            ended = ends[codes == code]
            ended_us = float(ended[0]) if len(ended) else made_up_us.get((rank, code), np.nan)
            at += [ended_us + float(gap_us[call])] if np.isfinite(ended_us) else []
        return float(np.median(at)) if at else np.nan

    def followed_us(self, calls: Calls, rank: int, alike: IntArray) -> tuple[float, float]:
        """Return when a rank began what those alike begin next, and when it left its call: so long before.

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
            later = (
                np.flatnonzero(calls.start_us[theirs] >= calls.end_us[call] - ROUNDED_US)[:1] + theirs.start
            )
            begun_us = starts[np.isin(codes, self.code[later])]
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
