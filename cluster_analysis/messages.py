"""Who sent what a rank received: the two ends of point-to-point calls.

In a group of two the k-th send of one end is the k-th receive of the other. In a longer pipeline the peer is
not in the files; schedules are tried until one has as many calls at every stage as there are, and no
message that arrives before it was sent. Without such a schedule the calls stay unpaired, which is noted.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cluster_analysis.calls import Calls
from cluster_analysis.evidence import BoolArray, FloatArray, IntArray
from cluster_analysis.message_plans import Pipeline, Plan, Signature, pairs_by_number, plan_of
from cluster_analysis.model import Topology
from cluster_run.ids import Rank


@dataclass(frozen=True)
class Ends:
    """For each call (V,): the call that sends to it, and the call that receives from it; -1 for none."""

    sender: IntArray
    receiver: IntArray
    n_unpaired: int


def pair_messages(calls: Calls, is_p2p: BoolArray, offset_us: FloatArray, topology: Topology) -> Ends:
    """Pair the ends of all point-to-point calls.

    Args:
        calls: the step's calls.
        is_p2p: which of them are point to point (V,).
        offset_us: what to add to each rank's clock to compare it with others (ranks,).
        topology: order of the stages in each group.
    """
    sender = np.full(len(calls), -1, np.int32)
    receiver = np.full(len(calls), -1, np.int32)
    by_signature: dict[Signature, list[Pipeline]] = {}
    directions = calls.is_send, calls.is_receive
    members = np.flatnonzero(is_p2p)
    order = members[np.argsort(calls.group[members], kind="stable")]
    cuts = np.flatnonzero(np.diff(calls.group[order])) + 1
    for own in np.split(order, cuts) if len(order) else []:
        pipeline = _pipeline(calls, own, directions, topology)
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
    _borrow_from_mates(calls, is_p2p, sender, receiver, topology)
    unpaired = is_p2p & (sender < 0) & (receiver < 0)
    return Ends(sender, receiver, int(unpaired.sum()))


def _borrow_from_mates(
    calls: Calls, is_p2p: BoolArray, sender: IntArray, receiver: IntArray, topology: Topology
) -> None:
    """Give calls whose partner has no files the partner of a mate's call.

    Mates (same stage and replica) pass on parts of one tensor at one time: whom a rank waited for came when
    its mate's partner came. Taken as it was, its waiting would be work that no repair takes away.
    """
    orphan = is_p2p & (sender < 0) & (receiver < 0)
    if not orphan.any():
        return
    messages = np.flatnonzero(is_p2p)  # calls are sorted by rank
    own_calls = np.split(messages, np.searchsorted(calls.rank[messages], np.arange(1, len(calls.ranks))))
    mates: dict[tuple[int, int], list[int]] = {}
    for position, rank in enumerate(calls.ranks.tolist()):
        stage, replica = topology.stages.get(Rank(rank)), topology.dp_index.get(Rank(rank))
        if stage is not None and replica is not None:
            mates.setdefault((stage, replica), []).append(position)
    for together in mates.values():
        for position in together:
            own = own_calls[position]
            if not orphan[own].any():
                continue
            for mate in together:
                theirs = own_calls[mate]
                if mate == position or not _are_alike(calls, own, theirs) or orphan[theirs].any():
                    continue
                lonely = orphan[own]
                sender[own[lonely]] = sender[theirs[lonely]]
                receiver[own[lonely]] = receiver[theirs[lonely]]
                break


def _are_alike(calls: Calls, own: IntArray, theirs: IntArray) -> bool:
    """Whether two ranks make the same kinds of calls in the same order."""
    return len(own) == len(theirs) and bool((calls.kind[own] == calls.kind[theirs]).all())


def _pipeline(
    calls: Calls, own: IntArray, directions: tuple[BoolArray, BoolArray], topology: Topology
) -> Pipeline:
    group = topology.groups.get(calls.groups[int(calls.group[own[0]])])
    global_rank = calls.ranks[calls.rank[own]]
    if group is None:
        ranks = sorted(set(global_rank.tolist()))
    else:
        place = {int(rank): number for number, rank in enumerate(group.ranks)}
        ranks = sorted(place, key=lambda rank: (topology.stages.get(Rank(rank), 0), place[rank]))
    # Stable by stage: a rank's calls keep their order. Calls of ranks that the group does not name go last.
    stage_of = {rank: stage for stage, rank in enumerate(ranks)}
    known, inverse = np.unique(global_rank, return_inverse=True)
    stage = np.array([stage_of.get(rank, len(ranks)) for rank in known.tolist()])[inverse]
    order = np.argsort(stage, kind="stable")
    bounds = np.searchsorted(stage[order], np.arange(len(ranks) + 1)).tolist()
    send, receive = directions[0][own], directions[1][own]
    by_stage = [order[begin:end] for begin, end in pairwise(bounds)]
    return Pipeline(
        tuple(own[here[send[here]]] for here in by_stage),
        tuple(own[here[receive[here]]] for here in by_stage),
        tuple(own[here[~send[here] & ~receive[here]]] for here in by_stage),
    )


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
