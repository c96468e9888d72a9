"""Collectives that a rank's files lack, from the records of the other members."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.grouped import medians_of
from cluster_analysis.numeric.sorting import begins, combined, half_octaves
from cluster_analysis.tables.model import Topology
from cluster_analysis.thresholds.calls import ENOUGH_TOGETHER, STOOD_STILL_US, WAITED_FACTOR
from cluster_analysis.trace.calls import Calls


class Incomplete(Struct, frozen=True):
    """An operator that some ranks lack, the others' calls, and what they tell, in µs.

    `known` are the calls that others make in its place: those of its members, or of a message its replicas'.
    `group` is that of those who lack it. `ended_us` is when it was over, on the clock of all, NaN if no
    member tells. `needed_us` is how long it takes without waiting. `waited` says whether all who are known
    waited for one who is not. A message has a place in a program: its number among the programs, the row of
    its group there, and its slot.
    """

    known: IntArray
    lacking: tuple[int, ...]
    group: int
    ended_us: float
    needed_us: float
    waited: bool
    place: tuple[int, int, int] | None = None


def purposes(calls: Calls, topology: Topology) -> IntArray:
    """Return a number for each group (groups,) by its use: role, number of ranks, their distance."""
    found: dict[tuple[str, int, int], int] = {}
    numbers = []
    for name in calls.groups:
        group = topology.groups.get(name)
        ranks = group.ranks if group else ()
        kind = (group.role if group else "", len(ranks), ranks[1] - ranks[0] if len(ranks) > 1 else 0)
        numbers.append(found.setdefault(kind, len(found)))
    return np.array(numbers)


def incomplete_collectives(
    calls: Calls, operator: IntArray, offset_us: FloatArray, topology: Topology, purpose: IntArray
) -> list[Incomplete]:
    """Return operators that half of their members have, and not all; or half of those of groups alike.

    Args:
        operator: the operator of each call (V,).
        offset_us: what to add to each rank's clock to compare it with others (ranks,).
        topology: the members of each group.
        purpose: a number for each group (groups,), the same for those that serve alike.
    """
    present = {int(rank): position for position, rank in enumerate(calls.ranks)}
    members = [
        {present[rank] for rank in topology.groups[name].ranks if rank in present}
        if name in topology.groups
        else set()
        for name in calls.groups
    ]
    n_members = np.array([len(one) for one in members])
    usable = np.flatnonzero(~calls.is_point_to_point)
    n_calls = np.bincount(operator[usable])
    n_wanted = np.zeros(len(n_calls), np.int64)
    n_wanted[operator[usable]] = n_members[calls.group[usable]]
    if not (n_calls < n_wanted).any():  # most steps: nothing needs an order
        return []
    order = usable[np.argsort(operator[usable], kind="stable")]
    begin = np.flatnonzero(begins(operator[order]))
    lead = order[begin]
    size, wanted = np.diff(np.r_[begin, len(order)]), n_members[calls.group[lead]]
    first = np.full(len(calls.groups), len(calls))
    np.minimum.at(first, calls.group[lead], operator[lead])
    _, alike = combined(
        calls.kind[lead], operator[lead] - first[calls.group[lead]], purpose[calls.group[lead]]
    )
    is_made = 2 * np.bincount(alike, size) >= np.bincount(alike, wanted)
    chosen = np.flatnonzero((size < wanted) & ((2 * size >= wanted) | is_made[alike]))
    if not len(chosen):
        return []
    shortest = np.minimum.reduceat(calls.elapse_us[order], begin)
    complete = np.where(size < wanted, np.nan, shortest)
    busy = np.fmax.reduceat(calls.busy_us[order], begin)
    usual = _usual_transfer(calls, lead, wanted, complete, busy)
    found = []
    for at in chosen.tolist():
        known, least_us, usual_us = order[begin[at] : begin[at] + size[at]], shortest[at], usual[at]
        group = int(calls.group[lead[at]])
        lacking = tuple(sorted(members[group] - set(calls.rank[known].tolist())))
        # With many in it for as long as in events, the late one's lost record alone would be chance.
        stood_still = len(known) >= ENOUGH_TOGETHER and least_us > usual_us + STOOD_STILL_US
        waited = bool(least_us > WAITED_FACTOR * usual_us) and not stood_still
        ended_us = float(np.median(calls.end_us[known] + offset_us[calls.rank[known]]))
        needed_us = float(np.fmin(least_us, usual_us))
        found.append(Incomplete(known, lacking, group, ended_us, needed_us, waited))
    return found


def _usual_transfer(
    calls: Calls, first: IntArray, n_members: IntArray, transfer_us: FloatArray, busy_us: FloatArray
) -> FloatArray:
    """Median transfer of the complete operators of each operator's group, kind and size (half an octave).

    Where the group has none, that of groups with as many members. Where its links are busy for longer than
    those of complete ones, that is how long it takes.
    Of operators (O,) `first` is a call of each; `transfer_us`, the shortest elapse, is NaN where any of
    `n_members` is missing; `busy_us` is the most that the links of one member were busy, NaN where not known.
    """
    kind, size = calls.kind[first], half_octaves(calls.size_bytes[first])
    of_group, alike = (combined(one, kind, size)[1] for one in (calls.group[first], n_members))
    own, others = (medians_of(transfer_us, code)[code] for code in (of_group, alike))
    usual = np.where(np.isnan(own), others, own)
    with np.errstate(divide="ignore", invalid="ignore"):
        as_busy = busy_us * medians_of(transfer_us / busy_us, alike)[alike]
    return np.where(np.isnan(usual), usual, np.fmax(usual, as_busy))
