"""Collectives that a rank's files lack: when the rank came to them and left them, by the other members.

All members leave a collective together, so that its end is known. Before it, the rank is taken to have
worked as long as the median member of its stage, who issues the same call in the same place. Where all others
waited far longer than such an operator takes, it was this rank that they waited for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cluster_analysis.calls import Calls
from cluster_analysis.evidence import BoolArray, FloatArray, IntArray
from cluster_analysis.lacking import Lacking
from cluster_analysis.model import Topology
from cluster_analysis.sorting import begins, combined, half_octaves, stable_order
from cluster_analysis.stats import median, medians_by
from cluster_run.ids import Rank

#: Times its usual transfer from which the shortest elapse of an operator holds waiting for a lacking rank.
_WAITED = 3.0
#: A gap this many times as long as usual in its place holds a pause, or another call that was lost.
_UNUSUAL = 2.0
#: Calls that run beside another one, at most.
_BESIDE = 4
#: Start and elapse are rounded: the next call may seem to begin so much before the end of the last.
_ROUNDED_US = 1.0


def lacking_collectives(
    calls: Calls, operator: IntArray, offset_us: FloatArray, topology: Topology
) -> list[Lacking]:
    """Return the collectives that some members' files have and others' lack, in the order of their ends.

    Args:
        calls: the step's calls.
        operator: the operator of each call (V,).
        offset_us: what to add to each rank's clock to compare it with others (ranks,).
        topology: the members of each group, and stages.
    """
    present = {int(rank): position for position, rank in enumerate(calls.ranks)}
    members = {
        code: [present[rank] for rank in topology.groups[name].ranks if rank in present]
        for code, name in enumerate(calls.groups)
        if name in topology.groups
    }
    n_members = np.array([len(members.get(code, ())) for code in range(len(calls.groups))])
    stage = np.array([topology.stages.get(Rank(int(rank)), -1) for rank in calls.ranks])
    usable = np.flatnonzero(~calls.is_point_to_point)
    order = usable[stable_order(operator[usable])]
    begin = np.flatnonzero(begins(operator[order])) if len(order) else np.empty(0, np.intp)
    size, wanted = np.diff(np.r_[begin, len(order)]), n_members[calls.group[order[begin]]]
    holed = np.flatnonzero((size < wanted) & (2 * size >= wanted))
    if not len(holed):
        return []
    transfer_us = np.minimum.reduceat(calls.elapse_us[order], begin)
    usual_us = _usual_transfer(calls, order[begin], wanted, np.where(size < wanted, np.nan, transfer_us))
    gaps = _Gaps.of(calls, operator, stage, n_members)
    known = [order[begin[at] : begin[at] + size[at]] for at in holed]
    ended_us = [float(np.median(calls.end_us[one] + offset_us[calls.rank[one]])) for one in known]
    found: list[Lacking] = []
    filled_until_us: dict[int, float] = {}
    for number in np.argsort(ended_us, kind="stable").tolist():
        block, at = known[number], holed[number]
        group = int(calls.group[block[0]])
        needed = float(np.fmin(transfer_us[at], usual_us[at]))
        for rank in sorted(set(members[group]) - set(calls.rank[block].tolist())):
            before, end = _place(calls, rank, ended_us[number] - float(offset_us[rank]), needed)
            before = max(before, filled_until_us.get(rank, -np.inf))
            local = gaps.before(block, stage[calls.rank[block]] == stage[rank])
            if transfer_us[at] > _WAITED * usual_us[at]:
                start = max(end - needed, before)
            elif np.isfinite(before) and np.isfinite(local):
                start = min(before + local, max(end - needed, before))
            else:
                start = max(end - float(np.median(calls.elapse_us[block])), before)
            latest = max(start, end - float(np.nan_to_num(usual_us[at])))
            found.append(Lacking(rank, group, int(block[0]), start, end, min(before, start), latest))
            filled_until_us[rank] = end
    return found


@dataclass(frozen=True)
class _Gaps:
    """The local time before each call (V,) in µs, and what is usual before the like of it."""

    own_us: FloatArray
    usual_us: FloatArray

    @classmethod
    def of(cls, calls: Calls, operator: IntArray, stage: IntArray, n_members: IntArray) -> _Gaps:
        """Take them of the step's calls; alike are the operators in the same place of a stage's groups."""
        first = np.full(len(calls.groups), len(calls))
        np.minimum.at(first, calls.group, operator)
        own = _gaps(calls)
        place = operator - first[calls.group]
        _, code = combined(stage[calls.rank] + 1, calls.kind, place, n_members[calls.group])
        return cls(own, _medians_of_known(code, own))

    def before(self, block: IntArray, is_alike: BoolArray) -> float:
        """Return the usual one before the calls of a block, of those alike if there are any; NaN: unknown."""
        if not is_alike.any():
            return float(median(self.usual_us[block]))
        local, usual = float(median(self.own_us[block[is_alike]])), float(self.usual_us[block[is_alike][0]])
        return usual if local > _UNUSUAL * usual else local


def _gaps(calls: Calls) -> FloatArray:
    """Time before each call since the rank's last call that had ended by then (V,); NaN where there is none.

    Sends may run beside it.
    """
    gap = np.full(len(calls), np.nan)
    for back in range(1, min(_BESIDE + 1, len(calls))):
        since = calls.start_us[back:] - calls.end_us[:-back]
        had_ended = (calls.rank[back:] == calls.rank[:-back]) & (since > -_ROUNDED_US)
        gap[back:] = np.fmin(gap[back:], np.where(had_ended, np.maximum(since, 0.0), np.nan))
    return gap


def _place(calls: Calls, rank: int, end_us: float, needed_us: float) -> tuple[float, float]:
    """Return when a rank ended what came before an operator that it lacks, and when it ended that, in µs.

    What ended while the operator was under way came after it, whatever little the clocks are off by.

    Args:
        calls: the step's calls.
        rank: its position.
        end_us: when the others ended the operator, on the rank's clock.
        needed_us: how long the operator takes.
    """
    own = calls.rank == rank
    is_before = calls.end_us[own] <= end_us - 0.5 * needed_us
    before = float(calls.end_us[own][is_before].max(initial=-np.inf))
    return before, min(end_us, float(calls.start_us[own][~is_before].min(initial=np.inf)))


def _usual_transfer(
    calls: Calls, first: IntArray, n_members: IntArray, transfer_us: FloatArray
) -> FloatArray:
    """Median transfer of the complete operators of each operator's group, kind and size (half an octave).

    Where the group has none, that of groups with as many members.

    Args:
        calls: the step's calls.
        first: a call of each operator (O,).
        n_members: the ranks that should have it (O,).
        transfer_us: shortest elapse of each operator (O,); NaN where members are lacking.
    """
    kind, size = calls.kind[first], half_octaves(calls.size_bytes[first])
    own = _medians_of_known(combined(calls.group[first], kind, size)[1], transfer_us)
    return np.where(np.isnan(own), _medians_of_known(combined(n_members, kind, size)[1], transfer_us), own)


def _medians_of_known(code: IntArray, values: FloatArray) -> FloatArray:
    """Median of the finite values of each code, for every entry (N,); NaN where there is none."""
    usual = np.full(int(code.max(initial=0)) + 1, np.nan)
    known = np.isfinite(values)
    if known.any():
        present = np.unique(code[known])
        usual[present] = medians_by(values[known], np.searchsorted(present, code[known]))
    return np.asarray(usual[code])
