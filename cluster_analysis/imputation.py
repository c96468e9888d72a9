"""Fill in communication calls that a rank's files lack, from the other ranks that made the same call.

Without its call a rank would seem to have worked through it, and the replay would take the waiting in it
for work.

- All members leave a collective together, so that its end is known. Before it, the rank is taken to have
  worked as long as the median member, who issues the same call in the same place. Where all others waited
  far longer than such an operator takes, it was this rank that they waited for.
- Ranks of one pipeline stage send and receive alike. A lacking send or receive (its running number is
  missing) is put where a mate has it, counted from a call that both have.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from cluster_analysis.calls import Calls
from cluster_analysis.evidence import FloatArray, IntArray
from cluster_analysis.model import Topology
from cluster_analysis.sorting import combined, half_octaves, stable_order
from cluster_analysis.stats import medians_by
from cluster_run.ids import Rank

#: A rank that lacks more of its messages than this did something else than its stage.
_MAX_LACKING = 0.3
#: Times its usual transfer from which the shortest elapse of an operator holds waiting for a lacking rank.
_WAITED = 3.0


@dataclass(frozen=True)
class _Lacking:
    """One call to fill in: like `source` (a call of another rank), on this rank's clock."""

    rank: int
    group: int
    source: int
    start_us: float
    end_us: float


def with_missing_calls(calls: Calls, operator: IntArray, offset_us: FloatArray, topology: Topology) -> Calls:
    """Return the calls with the lacking ones filled in; the same object when none is lacking.

    Args:
        calls: the step's calls.
        operator: the operator of each call (V,).
        offset_us: what to add to each rank's clock to compare it with others (ranks,).
        topology: the members of each group, stages and replicas.
    """
    if not calls.has_clock:
        return calls
    found = _lacking_collectives(calls, operator, offset_us, topology)
    found += _lacking_messages(calls, topology)
    if not found:
        return calls
    source = np.array([one.source for one in found])
    rank = np.concatenate([calls.rank, [one.rank for one in found]])
    start = np.concatenate([calls.start_us, [one.start_us for one in found]])
    end = np.concatenate([calls.end_us, [one.end_us for one in found]])
    group = np.concatenate([calls.group, [one.group for one in found]])
    order = np.lexsort((end, start, rank))
    others = {
        name: np.concatenate([getattr(calls, name), getattr(calls, name)[source]])[order]
        for name in ("kind", "number", "size_bytes", "rows")
    }
    return replace(
        calls,
        rank=rank[order],
        group=group[order],
        start_us=start[order],
        end_us=end[order],
        elapse_us=(end - start)[order],
        kind=others["kind"],
        number=others["number"],
        size_bytes=others["size_bytes"],
        rows=others["rows"],
    )


def _lacking_collectives(
    calls: Calls, operator: IntArray, offset_us: FloatArray, topology: Topology
) -> list[_Lacking]:
    usable = np.flatnonzero(~calls.is_point_to_point)
    order = usable[stable_order(operator[usable])]
    if not len(order):
        return []
    present = {int(rank): position for position, rank in enumerate(calls.ranks)}
    members_of = {
        code: [present[rank] for rank in topology.groups[name].ranks if rank in present]
        for code, name in enumerate(calls.groups)
        if name in topology.groups
    }
    n_expected = np.array([len(members_of.get(code, ())) for code in range(len(calls.groups))])
    gap_us = calls.start_us - np.r_[-np.inf, calls.end_us[:-1]]
    gap_us[np.r_[True, calls.rank[1:] != calls.rank[:-1]]] = -1.0  # before a step's first call: not known
    begin = np.r_[0, np.flatnonzero(np.diff(operator[order])) + 1]
    size = np.diff(np.r_[begin, len(order)])
    wanted = n_expected[calls.group[order[begin]]]
    transfer_us = np.minimum.reduceat(calls.elapse_us[order], begin)
    usual_us = _usual_transfer(calls, order[begin], np.where(size < wanted, np.nan, transfer_us))
    found = []
    for at in np.flatnonzero((size < wanted) & (2 * size >= wanted)):
        block = order[begin[at] : begin[at] + size[at]]
        group = int(calls.group[block[0]])
        ended = float(np.median(calls.end_us[block] + offset_us[calls.rank[block]]))
        elapse, transfer = float(np.median(calls.elapse_us[block])), float(transfer_us[at])
        is_late = transfer > _WAITED * usual_us[at]
        local = float(np.median(gap_us[block]))
        for rank in sorted(set(members_of[group]) - set(calls.rank[block].tolist())):
            end = ended - float(offset_us[rank])
            own = calls.end_us[calls.rank == rank]
            before = own[own < end]
            start = end - elapse
            if is_late:
                start = max(end - float(usual_us[at]), float(before.max(initial=-np.inf)))
            elif len(before):
                start = float(before.max()) + local if local >= 0 else max(start, float(before.max()))
                start = min(start, max(end - transfer, float(before.max())))
            found.append(_Lacking(rank, group, int(block[0]), start, end))
    return found


def _usual_transfer(calls: Calls, first: IntArray, transfer_us: FloatArray) -> FloatArray:
    """Median transfer of the complete operators of each operator's group, kind and size (half an octave).

    Args:
        calls: the step's calls.
        first: a call of each operator (O,).
        transfer_us: shortest elapse of each operator (O,); NaN where members are lacking.
    """
    size = half_octaves(calls.size_bytes[first])
    _, code = combined(calls.group[first], calls.kind[first], size)
    usual = np.full(int(code.max()) + 1, np.nan)
    known = np.isfinite(transfer_us)
    if known.any():
        present = np.unique(code[known])
        usual[present] = medians_by(transfer_us[known], np.searchsorted(present, code[known]))
    return np.asarray(usual[code])


def _lacking_messages(calls: Calls, topology: Topology) -> list[_Lacking]:
    n_messages = np.bincount(calls.rank[calls.is_point_to_point], minlength=len(calls.ranks))
    stages = np.array([topology.stages.get(Rank(int(rank)), -1) for rank in calls.ranks])
    found = []
    for stage in np.unique(stages[stages >= 0]):
        ranks = np.flatnonzero((stages == stage) & (n_messages > 0))
        if len(np.unique(n_messages[ranks])) > 1:
            found += _lacking_in_stage(calls, ranks, topology)
    return found


def _lacking_in_stage(calls: Calls, ranks: IntArray, topology: Topology) -> list[_Lacking]:
    by_rank: dict[int, dict[int, int]] = {}
    for rank in ranks.tolist():
        own = np.flatnonzero(calls.is_point_to_point & (calls.rank == rank))
        if len(np.unique(calls.group[own])) == 1 and (calls.number[own] >= 0).all():
            by_rank[rank] = dict(zip(calls.number[own].tolist(), own.tolist(), strict=True))
    counts = Counter(number for numbers in by_rank.values() for number in numbers)
    wanted = [number for number, count in counts.items() if 2 * count > len(by_rank)]
    replica = {rank: topology.dp_index.get(Rank(int(calls.ranks[rank])), -1) for rank in by_rank}
    found = []
    for rank, own_calls in by_rank.items():
        lacking = [number for number in wanted if number not in own_calls]
        if not lacking or len(lacking) > _MAX_LACKING * len(wanted):
            continue
        others = sorted(by_rank, key=lambda other, rank=rank: (replica[other] != replica[rank], other))  # type: ignore[misc]
        group = int(calls.group[next(iter(own_calls.values()))])
        for number in sorted(lacking):
            mate = next(other for other in others if number in by_rank[other])
            found.append(_like_mate(calls, rank, group, number, own=own_calls, mates=by_rank[mate]))
    return found


def _like_mate(
    calls: Calls, rank: int, group: int, number: int, *, own: dict[int, int], mates: dict[int, int]
) -> _Lacking:
    shared = [other for other in own if other in mates]
    anchor = min(shared, key=lambda other: (abs(other - number), other)) if shared else next(iter(own))
    source = mates[number]
    shift = calls.start_us[own[anchor]] - calls.start_us[mates.get(anchor, source)]
    start = float(calls.start_us[source] + shift)
    end = start + float(calls.elapse_us[source])
    if not calls.is_send[source]:
        begun = calls.start_us[calls.rank == rank]
        ended = calls.end_us[calls.rank == rank]
        end = min(end, float(begun[begun > start].min(initial=np.inf)))
        start = min(max(start, float(ended[ended <= end].max(initial=-np.inf))), end)
    return _Lacking(rank, group, source, start, end)
