"""Pair the two ends of point-to-point calls: the sender of each message that a rank received.

Files tell it of some calls, and times of most; what neither tells follows from the order of messages. See
`program` for how, and `slots` for what replicas have to do with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.stats import median
from cluster_analysis.tables.model import Topology
from cluster_analysis.thresholds.messages import (
    ENOUGH_GROUPS,
    LEAST_EXPLAINED_SHARE,
    LEAST_USUAL_SHARE,
    ODD_FACTOR,
    TOGETHER_US,
)
from cluster_analysis.trace.alignment import connected
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.pairing.assignment import assign_to_slots
from cluster_analysis.trace.pairing.coincidences import explained, sample_of, some_groups, votes_of
from cluster_analysis.trace.pairing.hints import completed, hinted, hints
from cluster_analysis.trace.pairing.peers import Stated, allowed_stages
from cluster_analysis.trace.pairing.program import NO_EDGES, Edges, edges_of
from cluster_analysis.trace.pairing.slots import Family, alone, families, without
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
    calls: Calls, offset_us: FloatArray, topology: Topology, stated: Stated | None = None
) -> list[Program]:
    """Find the programs of all groups that have messages.

    Args:
        calls: the step's calls.
        offset_us: what to add to each rank's clock to compare it with others (ranks,).
        topology: order of the stages in each group.
        stated: what files say of whom calls talk with.
    """
    if not calls.is_point_to_point.any():
        return []
    part = connected(calls)
    found: list[Program] = []
    for family in families(calls, topology):
        program = _program(calls, family, offset_us, part, stated)
        odd = _odd_ones(calls, program, offset_us, part)
        if len(odd):
            program = _program(calls, without(family, odd), offset_us, part, stated)
        others = [alone(family, row) for row in odd.tolist()]
        first = next((at for at, one in enumerate(found) if one.family.n_stages == family.n_stages), None)
        if first is not None and calls.has_clock:  # what is not like most
            others = [alone(family, row) for row in range(len(family.table))]
        else:
            first = len(found)
            found.append(program)
        for other in others:
            joined = _joined(calls, found[first], other, offset_us)
            if joined is not None:
                found[first] = joined
            else:
                found.append(_program(calls, other, offset_us, part, stated))
    return found


def _joined(calls: Calls, program: Program, other: Family, offset_us: FloatArray) -> Program | None:
    """Return the program with one more group, its calls laid beside the others'; None if they do not fit."""
    family = program.family
    ended = _ended_us(calls, family, offset_us)
    row = other.table[0]
    partner = np.full(len(family.stage), -1, np.int64)
    for one, two in (program.edges, program.edges[::-1]):
        partner[two] = one
    laid = assign_to_slots(
        family, partner, median(ended, 0), row, other.kind, calls.end_us[row] + offset_us[calls.rank[row]],
        other.stage, TOGETHER_US,
    )  # fmt: skip
    if laid is None:
        return None
    table, ranks = np.vstack([family.table, laid]), np.vstack([family.ranks, other.ranks])
    return replace(program, family=replace(family, table=table, ranks=ranks))


def _ended_us(calls: Calls, family: Family, offset_us: FloatArray) -> FloatArray:
    """When each call ended (groups, slots) on the clock of all; NaN where it is lost."""
    table = family.table
    return np.where(table < 0, np.nan, calls.end_us[table] + offset_us[calls.rank[table]])


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


def _counts_losses(family: Family) -> bool:
    """Whether numbers say what is lost, if anything is: they have holes between others of their stage."""
    is_there = family.table >= 0
    if is_there.all():
        return True
    inside = np.zeros(is_there.shape, bool)
    for stage in range(family.n_stages):
        own = family.slots_of(stage)
        seen = np.maximum.accumulate(is_there[:, own], axis=1)
        inside[:, own] = seen & np.maximum.accumulate(is_there[:, own[::-1]], axis=1)[:, ::-1]
    return bool((inside & ~is_there).any())


def _odd_ones(calls: Calls, program: Program, offset_us: FloatArray, part: IntArray) -> IntArray:
    """Groups whose messages do not end together although those of the others do: numbered differently."""
    table, (source, target) = program.family.table, program.edges
    nobody = np.empty(0, np.int64)
    if len(table) < ENOUGH_GROUPS or not len(source) or not calls.has_clock or _counts_losses(program.family):
        return nobody
    ended = _ended_us(calls, program.family, offset_us)
    apart = ended[:, target] - ended[:, source]
    with np.errstate(invalid="ignore"):
        share = np.sum(np.abs(apart) < TOGETHER_US, axis=1) / np.maximum(np.isfinite(apart).sum(axis=1), 1)
    usual = float(share.max())
    ranks = program.family.ranks
    is_connected = (part[ranks] == part[ranks.max(axis=1)][:, None]).all(axis=1)
    return (
        np.flatnonzero(is_connected & (share < usual - ODD_FACTOR / len(source)))
        if usual > LEAST_USUAL_SHARE
        else nobody
    )


def ends_of(programs: Sequence[Program], calls: Calls, topology: Topology) -> Ends:
    """Pair the calls of each group as their programs say.

    Args:
        programs: those of all groups.
        calls: the step's calls.
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
    """Pair what times left open where a group's numbers say it: each of them belongs to two ranks or fewer.

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
                if peer == position or not _are_alike(calls, own, theirs) or orphan[theirs].any():
                    continue
                lonely = orphan[own]
                sender[own[lonely]] = sender[theirs[lonely]]
                receiver[own[lonely]] = receiver[theirs[lonely]]
                break


def _are_alike(calls: Calls, own: IntArray, theirs: IntArray) -> bool:
    """Whether two ranks make the same kinds of calls in the same order."""
    return len(own) == len(theirs) and bool((calls.kind[own] == calls.kind[theirs]).all())
