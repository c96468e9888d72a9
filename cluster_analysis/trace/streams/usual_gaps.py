"""How long ranks work before a call, and what is usual before the like of it: one that is missing, say."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.grouped import medians_of
from cluster_analysis.numeric.sorting import combined
from cluster_analysis.numeric.stats import median
from cluster_analysis.thresholds.streams import MOST_OVERLAPPED, ROUNDED_US, UNUSUAL_FACTOR
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.streams.streams import Sequence


class UsualGaps(Struct, frozen=True):
    """The local time before each call (V,) in µs, and the usual one before those of its `code`.

    Calls of one code have the same place in groups of one purpose and stage.
    """

    own_us: FloatArray
    usual_us: FloatArray
    code: IntArray

    @classmethod
    def of(cls, calls: Calls, operator: IntArray, stage: IntArray, purpose: IntArray) -> UsualGaps:
        """Take them of a step's calls.

        Args:
            calls: the step's calls.
            operator: the operator of each call (V,).
            stage: pipeline stage of each rank (ranks,), -1 for unknown.
            purpose: a number for each group (groups,), the same for those that serve alike.
        """
        first = np.full(len(calls.groups), len(calls))
        np.minimum.at(first, calls.group, operator)
        place = operator - first[calls.group]
        _, code = combined(stage[calls.rank] + 1, calls.kind, place, purpose[calls.group])
        own = _gaps(calls)
        return cls(own, medians_of_known(code, own), code)

    def before(self, block: IntArray, is_alike: BoolArray) -> float:
        """Return the usual one before the calls of a block, of those alike if there are any; NaN: unknown."""
        if not is_alike.any():
            return float(median(self.usual_us[block]))
        alike = block[is_alike]
        local, usual = float(median(self.own_us[alike])), float(self.usual_us[alike[0]])
        return usual if local > UNUSUAL_FACTOR * usual else local

    def issued_us(self, calls: Calls, rank: int, alike: IntArray, streams: Sequence | None) -> float:
        """Return when a rank issued a call to its second stream, by those alike: so long after the same call.

        NaN where they are not on a second stream, or the rank lacks that call too.
        """
        if streams is None or not len(alike) or not streams.is_side[alike].all():
            return np.nan
        inside = calls.of_rank(rank)
        own = inside.start + np.flatnonzero(~calls.is_point_to_point[inside])
        at: list[float] = []
        for call in alike[streams.after[alike] >= 0].tolist():
            since = own[self.code[own] == self.code[streams.after[call]]]
            at += [float(calls.end_us[since[0]] + streams.gap_us[call])] if len(since) else []
        return float(np.median(at)) if at else np.nan


def medians_of_known(code: IntArray, values: FloatArray) -> FloatArray:
    """Median of the finite values of each code, for every entry (N,); NaN where there is none."""
    return np.asarray(medians_of(values, code)[code])


def _gaps(calls: Calls) -> FloatArray:
    """Time before each call since the rank's last call that had ended by then (V,); NaN where there is none.

    Sends may run beside it.
    """
    gap = np.full(len(calls), np.nan)
    for back in range(1, min(MOST_OVERLAPPED + 1, len(calls))):
        since = calls.start_us[back:] - calls.end_us[:-back]
        had_ended = (calls.rank[back:] == calls.rank[:-back]) & (since > -ROUNDED_US)
        gap[back:] = np.fmin(gap[back:], np.where(had_ended, np.maximum(since, 0.0), np.nan))
    return gap
