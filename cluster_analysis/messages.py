"""Who sent what a rank received: the two ends of point-to-point calls.

In a group of two the k-th send of one end is the k-th receive of the other. In a longer pipeline the peer is
not in the files; schedules are tried until one has as many calls at every stage as there are, and no
message that arrives before it was sent. Without such a schedule the calls stay unpaired, which is noted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cluster_analysis.calls import Calls
from cluster_analysis.evidence import BoolArray, FloatArray, IntArray
from cluster_analysis.model import Topology
from cluster_analysis.schedules import BatchCall, Message, StageCalls, batched, candidates, single
from cluster_run.ids import Rank

#: Clocks aligned at the ends of collectives agree to about this.
_TOLERANCE_US = 1000.0
#: Share of messages that may contradict a schedule (lost records, hiccups of the clocks).
_MAX_CONTRADICTED = 0.1
_GROUPS_TRIED = 4


#: Number of sends, receives and batches of each stage.
Signature = tuple[tuple[int, int, int], ...]
#: What each call carries, by kind of call and stage.
Plan = Mapping[str, tuple[tuple[BatchCall, ...], ...]]


@dataclass(frozen=True)
class Ends:
    """For each call (V,): the call that sends to it, and the call that receives from it; -1 for none."""

    sender: IntArray
    receiver: IntArray
    n_unpaired: int


@dataclass(frozen=True)
class _Pipeline:
    """The calls of one group: by stage, in order; sends, receives and batches apart."""

    sends: tuple[IntArray, ...]
    receives: tuple[IntArray, ...]
    batches: tuple[IntArray, ...]


def pair_messages(calls: Calls, is_p2p: BoolArray, offset_us: FloatArray, topology: Topology) -> Ends:
    """Pair the ends of all point-to-point calls.

    Args:
        calls: the step's calls.
        is_p2p: which of them are point to point (V,).
        offset_us: what to add to each rank's clock to compare it with others (ranks,).
        topology: order of the stages in each group.
    """
    sender = np.full(len(calls), -1, np.int64)
    receiver = np.full(len(calls), -1, np.int64)
    by_signature: dict[Signature, list[_Pipeline]] = {}
    directions = calls.is_send, calls.is_receive
    members = np.flatnonzero(is_p2p)
    order = members[np.argsort(calls.group[members], kind="stable")]
    cuts = np.flatnonzero(np.diff(calls.group[order])) + 1
    for own in np.split(order, cuts) if len(order) else []:
        pipeline = _pipeline(calls, own, directions, topology)
        signature = tuple(
            (len(a), len(b), len(c))
            for a, b, c in zip(pipeline.sends, pipeline.receives, pipeline.batches, strict=True)
        )
        by_signature.setdefault(signature, []).append(pipeline)
    incomplete: list[_Pipeline] = []
    planned: tuple[Plan, _Pipeline] | None = None
    for signature in sorted(by_signature, key=lambda one: (-len(by_signature[one]), one)):
        pipelines = by_signature[signature]
        if len(signature) == 2:
            for pipeline in pipelines:
                _pair_two(pipeline, sender, receiver)
        elif len(signature) > 2:
            plan = _plan_of(calls, pipelines, offset_us)
            if plan is None:
                incomplete += pipelines
                continue
            planned = planned or (plan, pipelines[0])
            for pipeline in pipelines:
                _connect(_pairs(pipeline, plan) or [], sender, receiver)
    if planned is not None:
        for pipeline in incomplete:
            _connect(_pairs_by_number(calls, pipeline, *planned), sender, receiver)
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
    own_calls = [np.flatnonzero(is_p2p & (calls.rank == rank)) for rank in range(len(calls.ranks))]
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
) -> _Pipeline:
    group = topology.groups.get(calls.groups[int(calls.group[own[0]])])
    global_rank = calls.ranks[calls.rank[own]]
    if group is None:
        ranks = sorted(set(global_rank.tolist()))
    else:
        place = {int(rank): number for number, rank in enumerate(group.ranks)}
        ranks = sorted(place, key=lambda rank: (topology.stages.get(Rank(rank), 0), place[rank]))
    send, receive = directions[0][own], directions[1][own]
    by_rank = [global_rank == rank for rank in ranks]
    return _Pipeline(
        tuple(own[send & here] for here in by_rank),
        tuple(own[receive & here] for here in by_rank),
        tuple(own[~send & ~receive & here] for here in by_rank),
    )


def _pair_two(pipeline: _Pipeline, sender: IntArray, receiver: IntArray) -> None:
    for here, there in ((0, 1), (1, 0)):
        for send, receive in zip(pipeline.sends[here], pipeline.receives[there], strict=False):
            sender[receive], receiver[send] = send, receive
    # A batch exchanges in one or both directions; both ends leave it together.
    for one, other in zip(*pipeline.batches, strict=False):
        sender[one], receiver[one], sender[other], receiver[other] = other, other, one, one


def _connect(pairs: Sequence[tuple[int, int]], sender: IntArray, receiver: IntArray) -> None:
    for send, receive in pairs:
        sender[receive], receiver[send] = send, receive


def _plan_of(calls: Calls, pipelines: list[_Pipeline], offset_us: FloatArray) -> Plan | None:
    """The schedule that these pipelines follow; None when no known one fits."""
    best: Plan | None = None
    least = _MAX_CONTRADICTED
    for plan in _plans(pipelines[0]):
        pairs = [_pairs(one, plan) for one in pipelines[:_GROUPS_TRIED]]
        found = [pair for one in pairs if one for pair in one]
        if any(one is None for one in pairs) or not found:
            continue
        contradicted = _contradicted(calls, found, offset_us)
        if contradicted < least:
            best, least = plan, contradicted
    return best


def _pairs_by_number(
    calls: Calls, pipeline: _Pipeline, plan: Plan, complete: _Pipeline
) -> list[tuple[int, int]]:
    """Pairs of a pipeline with lost records: its calls are recognised by their running numbers."""
    sent: dict[Message, int] = {}
    received: dict[Message, int] = {}
    for name, by_stage in plan.items():
        for own, known, wanted in zip(
            getattr(pipeline, name), getattr(complete, name), by_stage, strict=False
        ):
            content = dict(zip(calls.number[known].tolist(), wanted, strict=True))
            for call in own.tolist():
                found = content.get(int(calls.number[call]))
                if found is not None and calls.number[call] >= 0:
                    sent.update(dict.fromkeys(found.sends, call))
                    received.update(dict.fromkeys(found.receives, call))
    return [(sent[message], received[message]) for message in sent if message in received]


def _plans(pipeline: _Pipeline) -> Iterator[Plan]:
    """Schedules that have as many calls as the pipeline: by kind of call, what each one carries."""
    n_stages = len(pipeline.sends)
    if any(len(one) for one in pipeline.sends):
        for schedule in candidates(n_stages, len(pipeline.sends[0])):
            yield {
                "sends": tuple(_only(stage.sends, True) for stage in schedule),
                "receives": tuple(_only(stage.receives, False) for stage in schedule),
            }
        return
    n_first = len(pipeline.batches[0])
    for microbatches in range(1, n_first + 1):
        for schedule in candidates(n_stages, microbatches):
            for merge in (_merge_any, _merge_peer, single):
                yield {"batches": tuple(merge(stage) for stage in schedule)}


def _merge_any(stage: StageCalls) -> tuple[BatchCall, ...]:
    return batched(stage, same_peer=False)


def _merge_peer(stage: StageCalls) -> tuple[BatchCall, ...]:
    return batched(stage, same_peer=True)


def _only(messages: tuple[Message, ...], is_send: bool) -> tuple[BatchCall, ...]:
    return tuple(BatchCall((m,), ()) if is_send else BatchCall((), (m,)) for m in messages)


def _pairs(pipeline: _Pipeline, plan: Plan) -> list[tuple[int, int]] | None:
    """(send, receive) calls under a plan; None when the plan has another number of calls."""
    sent: dict[Message, int] = {}
    received: dict[Message, int] = {}
    for name, by_stage in plan.items():
        for calls_here, wanted in zip(getattr(pipeline, name), by_stage, strict=True):
            if len(calls_here) != len(wanted):
                return None
            for call, content in zip(calls_here.tolist(), wanted, strict=True):
                sent.update(dict.fromkeys(content.sends, call))
                received.update(dict.fromkeys(content.receives, call))
    return [(sent[message], received[message]) for message in sent if message in received]


def _contradicted(calls: Calls, pairs: list[tuple[int, int]], offset_us: FloatArray) -> float:
    """Share of messages that end before they begin, or whose receiver waited for something else."""
    if not pairs or not calls.has_clock:
        return 0.0
    send, receive = np.array(pairs).T
    sent = calls.start_us[send] + offset_us[calls.rank[send]]
    ended = calls.end_us[receive] + offset_us[calls.rank[receive]]
    shortest = np.minimum(calls.elapse_us[send], calls.elapse_us[receive])
    transfer = float(np.median(shortest))
    too_early = ended < sent - _TOLERANCE_US
    waited = calls.elapse_us[receive] > 3.0 * transfer + _TOLERANCE_US
    too_late = (
        waited
        & (ended > sent + transfer + 3.0 * _TOLERANCE_US)
        & (calls.elapse_us[send] < 3.0 * transfer + _TOLERANCE_US)
    )
    return float(np.mean(too_early | too_late))


def clock_offsets(calls: Calls, operator: IntArray, is_p2p: BoolArray) -> FloatArray:
    """What to add to each rank's clock so that the members of a collective leave it together (ranks,).

    Ranks that no chain of shared collectives connects keep their clocks as they were written.
    """
    offset: FloatArray = calls.origin_us - calls.origin_us.min(initial=np.inf)
    if not calls.has_clock:
        return np.zeros(len(calls.ranks))
    usable = ~is_p2p
    settled = np.zeros(len(calls.ranks), bool)
    sizes = [(len(np.unique(calls.rank[(calls.group == g) & usable])), g) for g in range(len(calls.groups))]
    changed = True
    while changed:
        changed = False
        for size, group in sorted(sizes, reverse=True):
            inside = np.flatnonzero((calls.group == group) & usable)
            ranks = np.unique(calls.rank[inside])
            if size < 2 or settled[ranks].all() or (settled.any() and not settled[ranks].any()):
                continue
            _settle(calls, operator, inside, offset, settled)
            changed = True
    return offset


def _settle(
    calls: Calls, operator: IntArray, inside: IntArray, offset: FloatArray, settled: BoolArray
) -> None:
    end = calls.end_us[inside] + offset[calls.rank[inside]]
    ranks = np.unique(calls.rank[inside])
    known = ranks[settled[ranks]] if settled[ranks].any() else ranks[:1]
    _, code = np.unique(operator[inside], return_inverse=True)
    reference = np.full(int(code.max()) + 1, np.nan)
    anchors = np.isin(calls.rank[inside], known)
    reference[code[anchors]] = end[anchors]
    for rank in ranks:
        if settled[rank] or (not settled.any() and rank == ranks[0]):
            continue
        own = calls.rank[inside] == rank
        difference = reference[code[own]] - end[own]
        difference = difference[np.isfinite(difference)]
        if len(difference):
            offset[rank] += float(np.median(difference))
    settled[ranks] = True
