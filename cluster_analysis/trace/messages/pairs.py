"""Who sent what a rank received: the two ends of point-to-point calls.

In a group of two the k-th send of one end is the k-th receive of the other. In a longer pipeline the peer is
not in the files; schedules are tried until one has as many calls at every stage as there are, and no
message that arrives before it was sent. Without such a schedule the calls stay unpaired, which is noted.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.sorting import begins, stable_order
from cluster_analysis.tables.model import Topology
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.messages.plans import Pipeline, Plan, Signature, pairs_by_number, plan_of
from cluster_run.ids import Rank


@dataclass(frozen=True)
class Ends:
    """For each call (V,): the call that sends to it, and the call that receives from it; -1 for none."""

    sender: IntArray
    receiver: IntArray
    n_unpaired: int


def pair_messages(calls: Calls, offset_us: FloatArray, topology: Topology) -> Ends:
    """Pair the ends of all point-to-point calls.

    Args:
        calls: the step's calls.
        offset_us: what to add to each rank's clock to compare it with others (ranks,).
        topology: order of the stages in each group.
    """
    sender = np.full(len(calls), -1, np.int32)
    receiver = np.full(len(calls), -1, np.int32)
    by_signature: dict[Signature, list[Pipeline]] = {}
    for pipeline in _pipelines(calls, topology):
        by_signature.setdefault(pipeline.signature, []).append(pipeline)
    incomplete: list[Pipeline] = []
    planned: tuple[Plan, Pipeline] | None = None
    for signature in sorted(by_signature, key=lambda one: (-len(by_signature[one]), one)):
        pipelines = by_signature[signature]
        if len(signature) == 2:
            for pipeline in pipelines:
                _pair_two(pipeline, sender, receiver)
        elif len(signature) > 2:
            plan = plan_of(calls, pipelines, offset_us)
            if plan is None:
                incomplete += pipelines
                continue
            planned = planned or (plan, pipelines[0])
            _connect(*plan.pairs(pipelines), sender, receiver)
    if planned is not None:
        for pipeline in incomplete:
            _connect(*pairs_by_number(calls, pipeline, *planned), sender, receiver)
    _borrow_from_peers(calls, sender, receiver, topology)
    unpaired = calls.is_point_to_point & (sender < 0) & (receiver < 0)
    return Ends(sender, receiver, int(unpaired.sum()))


def _borrow_from_peers(calls: Calls, sender: IntArray, receiver: IntArray, topology: Topology) -> None:
    """Give calls whose partner has no files the partner of a TP/CP peer's call.

    Mates (same stage and replica) pass on parts of one tensor at one time: whom a rank waited for came when
    its TP/CP peer's partner came. Taken as it was, its waiting would be work that no repair takes away.
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


def _pipelines(calls: Calls, topology: Topology) -> list[Pipeline]:
    """Return the calls of each group that has messages, in the order of the groups."""
    order = calls.messages_by_group
    group, rank = calls.group[order], calls.rank[order]
    # Runs of calls of one group and rank, and where the runs of each group begin and end.
    first = np.flatnonzero(begins(group) | begins(rank))
    bounds = np.r_[np.flatnonzero(begins(group[first])), len(first)]
    stage = np.empty(len(first), np.int64)
    n_stages = np.empty(len(bounds) - 1, np.int64)
    for number, (begin, end) in enumerate(pairwise(bounds.tolist())):
        ranks = calls.ranks[rank[first[begin:end]]].tolist()
        stage_of = _stages(calls.groups[int(group[first[begin]])], ranks, topology)
        n_stages[number] = len(stage_of)
        # Calls of ranks that the group does not name lie behind its last stage.
        stage[begin:end] = [stage_of.get(one, len(stage_of)) for one in ranks]
    # A group's sends come first, then its receives and batches, each by stage: so many drawers it has.
    n_drawers = n_stages + 1
    base = np.cumsum(3 * n_drawers) - 3 * n_drawers
    number_of = np.repeat(np.arange(len(n_stages)), np.diff(bounds))
    kind = np.where(calls.is_send[order], 0, np.where(calls.is_receive[order], 1, 2))
    n_calls = np.diff(np.r_[first, len(order)])
    drawer = np.repeat(base[number_of] + stage, n_calls) + kind * np.repeat(n_drawers[number_of], n_calls)
    in_drawers = order[stable_order(drawer)]
    cuts = np.cumsum(np.bincount(drawer, minlength=int(3 * n_drawers.sum())))
    drawers = [in_drawers[begin:end] for begin, end in pairwise([0, *cuts.tolist()])]
    return [
        Pipeline(*(tuple(drawers[at + one * (n + 1) : at + one * (n + 1) + n]) for one in range(3)))
        for at, n in zip(base.tolist(), n_stages.tolist(), strict=True)
    ]


def _stages(name: str, ranks: list[int], topology: Topology) -> dict[int, int]:
    """The place of each rank in the group's pipeline; of a group that nobody knows, the ranks in order."""
    group = topology.groups.get(name)
    if group is None:
        return {rank: place for place, rank in enumerate(sorted(set(ranks)))}
    place = {int(rank): number for number, rank in enumerate(group.ranks)}
    ordered = sorted(place, key=lambda rank: (topology.stages.get(Rank(rank), 0), place[rank]))
    return {rank: stage for stage, rank in enumerate(ordered)}


def _pair_two(pipeline: Pipeline, sender: IntArray, receiver: IntArray) -> None:
    for here, there in ((0, 1), (1, 0)):
        n = min(len(pipeline.sends[here]), len(pipeline.receives[there]))
        _connect(pipeline.sends[here][:n], pipeline.receives[there][:n], sender, receiver)
    # A batch exchanges in one or both directions; both ends leave it together.
    n = min(len(own) for own in pipeline.batches)
    one, other = (own[:n] for own in pipeline.batches)
    _connect(one, other, sender, receiver)
    _connect(other, one, sender, receiver)


def _connect(send: IntArray, receive: IntArray, sender: IntArray, receiver: IntArray) -> None:
    sender[receive], receiver[send] = send, receive
