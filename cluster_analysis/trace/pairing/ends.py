"""Pair the two ends of point-to-point calls: the sender of each message that a rank received.

Files name the sender of some calls, and times show it for most; the order of messages gives the rest.
`program` has the rules; `slots` lays the calls of replicas side by side.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.tables.model import Topology
from cluster_analysis.thresholds.calls import LEAST_EXPLAINED_SHARE
from cluster_analysis.trace.alignment import connected, members_of
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.pairing.coincidences import explained, sample_of, some_groups, votes_of
from cluster_analysis.trace.pairing.hints import Stated, allowed_stages, completed, hinted, hints
from cluster_analysis.trace.pairing.program import NO_EDGES, Edges, edges_of
from cluster_analysis.trace.pairing.slots import Family, families
from cluster_run.ids import Rank

#: Replicas that are looked at to tell a program.
_SAMPLED = 8


class Ends(Struct, frozen=True):
    """For each call (V,): the call that sends to it, and the call that receives from it; -1 for none."""

    sender: IntArray
    receiver: IntArray
    n_unpaired: int


class Program(Struct, frozen=True):
    """Groups that run one program, and its messages: slots that send, and slots that receive (P,)."""

    family: Family
    edges: Edges


def programs_of(
    calls: Calls, offset_us: FloatArray, topology: Topology, stated: Stated | None
) -> list[Program]:
    """Find the programs of all groups that have messages.

    Args:
        offset_us: what to add to each rank's clock to compare it with others (ranks,).
        topology: order of the stages in each group.
        stated: the other ends of calls, as files state them.
    """
    if not calls.is_point_to_point.any():
        return []
    part = connected(*members_of(calls), len(calls.ranks))
    return [_program(calls, family, offset_us, part, stated) for family in families(calls, topology)]


def _program(
    calls: Calls, family: Family, offset_us: FloatArray, part: IntArray, stated: Stated | None
) -> Program:
    chosen = some_groups(family, _SAMPLED)
    allowed = allowed_stages(family, chosen, stated, calls)
    if not calls.has_clock:
        return Program(family, next(hints(family, allowed), NO_EDGES))
    sample = sample_of(calls, family, offset_us, part, chosen)
    votes = votes_of(sample, allowed)
    hint, share = hinted(family, sample, votes, allowed)
    if hint is not None and share >= LEAST_EXPLAINED_SHARE:
        return Program(family, hint)
    edges = completed(family, edges_of(family, votes, allowed), allowed)
    if hint is not None and not share < explained(sample, votes, edges):
        edges = hint
    return Program(family, edges)


def ends_of(programs: Sequence[Program], calls: Calls, topology: Topology) -> Ends:
    """Pair the calls of each group as their programs say.

    Args:
        topology: who are tp_cp_peers: they have the same partners' tp_cp_peers.
    """
    sender = np.full(len(calls), -1, np.int32)
    receiver = np.full(len(calls), -1, np.int32)
    for program in programs:
        send, receive = (program.family.table[:, side].ravel() for side in program.edges)
        both = (send >= 0) & (receive >= 0)
        sender[receive[both]], receiver[send[both]] = send[both], receive[both]
    _pair_by_number(calls, sender, receiver)
    _borrow_from_peers(calls, sender, receiver, topology)
    unpaired = calls.is_point_to_point & (sender < 0) & (receiver < 0)
    return Ends(sender, receiver, int(unpaired.sum()))


def _pair_by_number(calls: Calls, sender: IntArray, receiver: IntArray) -> None:
    """Pair calls that times left open by the group's numbers, if each belongs to two ranks or fewer.

    Where operators of a group are counted together, the two ends of a message have one number, and some
    numbers of the group are not a rank's own. Where each rank counts for itself, all ranks have all numbers.
    """
    is_open = calls.is_point_to_point & (sender < 0) & (receiver < 0)
    messages = calls.messages_by_group
    for group in np.unique(calls.group[is_open]).tolist():
        inside = messages[slice(*np.searchsorted(calls.group[messages], [group, group + 1]))]
        numbers, code, count = np.unique(calls.number[inside], return_inverse=True, return_counts=True)
        n_ranks = len(np.unique(calls.rank[inside]))
        if n_ranks <= 2 or count.max() > 2 or len(numbers) < 2:
            continue
        order = inside[np.argsort(np.ravel(code), kind="stable")]
        begin = np.cumsum(count) - count
        for first in begin[count == 2].tolist():
            one, two = (int(call) for call in order[first : first + 2])
            if not (is_open[one] and is_open[two]) or calls.rank[one] == calls.rank[two]:
                continue
            for source, target in ((one, two), (two, one)):
                if not calls.is_receive[source] and not calls.is_send[target]:
                    sender[target], receiver[source] = source, target


def _borrow_from_peers(calls: Calls, sender: IntArray, receiver: IntArray, topology: Topology) -> None:
    """Give calls whose partner has no files the partner of a TP/CP peer's call.

    TP/CP peers pass on parts of one tensor at one time: a rank's partner came when its TP/CP peer's
    partner came. Otherwise its waiting would count as work that no repair takes away.
    """
    orphan = calls.is_point_to_point & (sender < 0) & (receiver < 0)
    if not orphan.any():
        return
    messages = np.flatnonzero(calls.is_point_to_point)  # calls are sorted by rank
    own_calls = np.split(messages, np.searchsorted(calls.rank[messages], np.arange(1, len(calls.ranks))))
    tp_cp_peers: dict[tuple[int, int], list[int]] = {}
    for position, rank in enumerate(calls.ranks.tolist()):
        stage, replica = topology.stages.get(Rank(rank)), topology.dp_index.get(Rank(rank))
        if stage is not None and replica is not None:
            tp_cp_peers.setdefault((stage, replica), []).append(position)
    for together in tp_cp_peers.values():
        for position in together:
            own = own_calls[position]
            if not orphan[own].any():
                continue
            for peer in together:
                theirs = own_calls[peer]
                are_alike = np.array_equal(calls.kind[own], calls.kind[theirs])
                if peer == position or not are_alike or orphan[theirs].any():
                    continue
                lonely = orphan[own]
                sender[own[lonely]] = sender[theirs[lonely]]
                receiver[own[lonely]] = receiver[theirs[lonely]]
                break


def last_to_arrive(calls: Calls, operators: tuple[IntArray, IntArray], ends: Ends) -> IntArray:
    """Return who waited least in each operator (O,), as a position in `calls.ranks`; -1 where not known.

    A message's row holds one end: the later one is its partner, or itself where the partner waited longer.

    Args:
        operators: the calls of each operator side by side by rank (V,), and where those of each begin (O,).
    """
    members, begin = operators
    first = members[begin]
    # Of several the lowest rank, so that order does not matter.
    elapse = calls.elapse_us[members]
    shortest = np.minimum.reduceat(elapse, begin)
    is_shortest = elapse == np.repeat(shortest, np.diff(np.r_[begin, len(members)]))
    n_shortest = np.add.reduceat(is_shortest, begin, dtype=np.intp)
    waits_least = members[np.flatnonzero(is_shortest)[np.cumsum(n_shortest) - n_shortest]]
    last: IntArray = calls.rank[waits_least].astype(np.int64)
    message = np.flatnonzero(calls.is_point_to_point[first])
    own = first[message]
    last[message] = -1
    least = np.full(len(own), np.inf)
    for end in (ends.sender, ends.receiver):
        other = end[own]
        # A partner borrowed from a peer is of another group: who it was in this one is not known.
        known = (other >= 0) & (calls.group[other] == calls.group[own])
        shorter = known & (calls.elapse_us[other] < least)
        least[shorter] = calls.elapse_us[other[shorter]]
        last[message[shorter]] = calls.rank[other[shorter]]
    is_later = np.isfinite(least) & (calls.elapse_us[own] <= least)
    last[message[is_later]] = calls.rank[own[is_later]]
    return np.asarray(last)
