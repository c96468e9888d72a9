"""Hints on which calls belong together, known beforehand: one is used if the calls' times agree with it.

The order of messages between two ranks is the same at both ends. The partner of each call of a stage may be
in the files. It is plain in a group of two, and follows from the schedule if a pipeline has as many calls as
a known one. A hint is believed only if no other partners coincide more often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, permutations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from cluster_analysis.numeric.arrays import BoolArray, IntArray
from cluster_analysis.thresholds.calls import LEAST_AGREEING_SHARE, LEAST_EXPLAINED_SHARE
from cluster_analysis.thresholds.common import TOLERANCE_SHARE
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.pairing.coincidences import Sample, Votes, explained
from cluster_analysis.trace.pairing.program import Edges
from cluster_analysis.trace.pairing.schedules import (
    BatchCall,
    Message,
    StageCalls,
    batched,
    candidates,
    of_kinds,
    single,
)
from cluster_analysis.trace.pairing.slots import BATCH, RECEIVE, SEND, Family

_Laying = Callable[[StageCalls, Sequence[bool], Sequence[bool]], "tuple[BatchCall, ...] | None"]


#: How messages may lie on calls all of which may send and receive at once.
_LAYINGS: tuple[_Laying, ...] = (
    lambda stage, sends, _: batched(stage, len(sends), same_peer=False),
    lambda stage, sends, _: batched(stage, len(sends), same_peer=True),
    lambda stage, sends, _: single(stage) if len(stage.messages) == len(sends) else None,
)


class Stated(Struct, frozen=True):
    """Records of messages: the operators' names by row of COLLECTIVES, and LINKS with global ranks."""

    names: pa.ChunkedArray
    links: pa.Table

    def peers(self, calls: Calls, ranks: IntArray) -> tuple[IntArray, IntArray]:
        """Return calls, and the position in `calls.ranks` of the other end of a message of each: (N,), (N,).

        Args:
            ranks: whose calls are asked for (positions).
        """
        nothing = np.empty(0, np.int64), np.empty(0, np.int64)
        is_asked = np.zeros(len(calls.ranks) + 1, bool)
        is_asked[ranks] = True
        is_asked[-1] = False
        messages = np.flatnonzero(calls.is_point_to_point & is_asked[calls.rank])
        links = self._of(calls, is_asked)
        if not len(messages) or not links.num_rows:
            return nothing
        own = pc.dictionary_encode(self.names.take(pa.array(calls.rows[messages]))).combine_chunks()
        if isinstance(own, pa.ChunkedArray):  # an empty column stays chunked
            return nothing
        name = pc.fill_null(pc.index_in(links["op_name"], value_set=own.dictionary), -1).to_numpy()
        rank, source, target = (links[column].to_numpy() for column in ("rank", "src_rank", "dst_rank"))
        other = np.where(source == rank, target, source)
        at, peer = np.searchsorted(calls.ranks, rank), np.searchsorted(calls.ranks, other)
        peer = np.minimum(peer, len(calls.ranks) - 1)
        known = (name >= 0) & ((source == rank) ^ (target == rank)) & (calls.ranks[peer] == other)
        key_of_call = calls.rank[messages].astype(np.int64) * len(own.dictionary) + own.indices.to_numpy()
        order = np.argsort(key_of_call, kind="stable")
        key = (at * len(own.dictionary) + name)[known]
        found = order[np.minimum(np.searchsorted(key_of_call[order], key), len(order) - 1)]
        is_there = key_of_call[found] == key
        return messages[found[is_there]].astype(np.int64), peer[known][is_there].astype(np.int64)

    def _of(self, calls: Calls, is_asked: BoolArray) -> pa.Table:
        """The links of single messages of the ranks that are asked for."""
        if not self.links.num_rows:
            return self.links
        rank = self.links["rank"].to_numpy()
        at = np.minimum(np.searchsorted(calls.ranks, rank), len(calls.ranks) - 1)
        links = self.links.select(["rank", "op_name", "src_rank", "dst_rank", "is_p2p"])
        links = links.take(pa.array(np.flatnonzero(is_asked[at] & (calls.ranks[at] == rank))))
        links = links.filter(pc.fill_null(links["is_p2p"], False))
        return links.drop_columns("is_p2p").drop_null()


def allowed_stages(family: Family, sample: IntArray, stated: Stated | None, calls: Calls) -> BoolArray:
    """Say which stages each slot may talk with, (slots, stages): those stated in any group, else all.

    Args:
        sample: the groups that are looked at.
        stated: what files say.
    """
    found = np.zeros((len(family.stage), family.n_stages), bool)
    if stated is not None:
        call, peer = stated.peers(calls, family.ranks[sample].ravel())
        rows, slots = np.nonzero(family.table[sample] >= 0)
        place = np.full((2, len(calls)), -1)
        place[:, family.table[sample][rows, slots]] = sample[rows], slots
        call, peer = call[place[1, call] >= 0], peer[place[1, call] >= 0]
        is_peer = family.ranks[place[0, call]] == peer[:, None]
        is_member = is_peer.any(axis=1)
        found[place[1, call[is_member]], is_peer.argmax(axis=1)[is_member]] = True
    return np.asarray(found | ~found.any(axis=1, keepdims=True))


def hinted(family: Family, sample: Sample, votes: Votes, allowed: BoolArray) -> tuple[Edges | None, float]:
    """Return the messages of the best hint, and which share of the waiting they explain.

    The best hint explains enough of the waiting and has the most evident ends. Ends that lie far apart are
    weak evidence: they may coincide anywhere, so they explain any waiting. Among equals the first is taken.
    Where none explains enough, the one that explains most is taken; None without any.

    Args:
        sample: some of them, on one clock.
        votes: what coincides in it.
        allowed: stages that each slot may talk with (slots, stages).
    """
    best, most = None, (0.0, 0.0)
    for edges in hints(family, allowed):
        share = float(np.nan_to_num(explained(sample, votes, edges), nan=LEAST_EXPLAINED_SHARE))
        own = (
            min(share, LEAST_EXPLAINED_SHARE),
            votes.evidence(edges) if share >= LEAST_EXPLAINED_SHARE else 0.0,
        )
        if own > (most[0], (1.0 + TOLERANCE_SHARE) * most[1]):
            best, most = edges, own
    return best, most[0]


def completed(family: Family, edges: Edges, allowed: BoolArray) -> Edges:
    """Return messages with those of the hint that most of them agree with, where the others leave room."""
    found = set(zip(*(side.tolist() for side in edges), strict=True))
    best: Edges | None = None
    most = LEAST_AGREEING_SHARE * len(found)
    for hint in hints(family, allowed):
        agreeing = len(found & set(zip(*(side.tolist() for side in hint), strict=True)))
        if agreeing > most:
            best, most = hint, float(agreeing)
    if best is None:
        return edges
    source, target = best
    free = ~np.isin(source, np.concatenate(edges)) & ~np.isin(target, np.concatenate(edges))
    return np.concatenate([edges[0], source[free]]), np.concatenate([edges[1], target[free]])


def hints(family: Family, allowed: BoolArray) -> Iterator[Edges]:
    """Messages of all slots, if the hint has as many as there are."""
    stated = in_order(family, allowed)
    if stated is not None:
        yield stated
    # Of two stages the order says it, but where calls of one meet two of the other's.
    if stated is None or family.n_stages > 2:
        yield from _scheduled(family)
        yield from _rings(family)


def in_order(family: Family, allowed: BoolArray) -> Edges | None:
    """Pair calls by their order where each slot's one partner is known; None unless all of them fit."""
    if not (allowed.sum(axis=1) - allowed[np.arange(len(allowed)), family.stage] == 1).all():
        return None
    sources: list[IntArray] = []
    targets: list[IntArray] = []
    for s, t in permutations(range(family.n_stages), 2):
        for sends, receives in ((SEND, RECEIVE), (BATCH, BATCH)):
            own = np.flatnonzero((family.stage == s) & (family.kind == sends) & allowed[:, t])
            other = np.flatnonzero((family.stage == t) & (family.kind == receives) & allowed[:, s])
            if len(own) != len(other):
                return None
            sources.append(own)
            targets.append(other)
    return np.concatenate(sources), np.concatenate(targets)


def _rings(family: Family) -> Iterator[Edges]:
    """Rings of any length among the members, neighbours first (context parallelism): each sends to the next.

    A group that holds several rings, replicas' say, has them side by side, or one through the other.
    """
    n = family.n_stages
    own = [family.slots_of(stage) for stage in range(n)]
    sends, receives = ([one[family.kind[one] != kind] for one in own] for kind in (RECEIVE, SEND))
    for length in (size for size in range(n, 2, -1) if n % size == 0):
        for apart in (one for one in range(1, n // length + 1) if n // length % one == 0):
            members = np.arange(n).reshape(-1, length, apart)
            for ahead in (1, -1):
                after = np.empty(n, np.int64)
                after[members] = np.roll(members, -ahead, axis=1)
                if all(len(sends[s]) == len(receives[t]) for s, t in enumerate(after.tolist())):
                    yield np.concatenate(sends), np.concatenate([receives[t] for t in after.tolist()])


def _scheduled(family: Family) -> Iterator[Edges]:
    """The messages of every known schedule that has as many calls at each stage as there are."""
    if (family.kind == BATCH).any():
        yield from _with_batches(family)
        return
    by_stage = [family.slots_of(stage) for stage in range(family.n_stages)]
    sends = [own[family.kind[own] == SEND] for own in by_stage]
    receives = [own[family.kind[own] == RECEIVE] for own in by_stage]
    all_sends, all_receives = np.concatenate(sends), np.concatenate(receives)
    for source, target in _of_singles(tuple((len(a), len(b)) for a, b in zip(sends, receives, strict=True))):
        yield all_sends[source], all_receives[target]


@cache
def _of_singles(wanted: tuple[tuple[int, int], ...]) -> tuple[Edges, ...]:
    """Messages of every known schedule whose stages send and receive as many, each in a call of its own.

    By their places among the sends, and among the receives, of all stages one after the other. All steps of a
    job ask for the same.
    """
    found: list[Edges] = []
    for schedule in candidates(len(wanted), wanted[0][0]):
        sends, receives = ([getattr(one, side) for one in schedule] for side in ("sends", "receives"))
        if tuple((len(a), len(b)) for a, b in zip(sends, receives, strict=True)) == wanted:
            sent, received = (
                {message: at for at, message in enumerate(chain.from_iterable(side))}
                for side in (sends, receives)
            )
            found.append(_where_both(sent, received))
    return tuple(found)


def _with_batches(family: Family) -> Iterator[Edges]:
    """The same where calls send and receive at once: some, by their kinds, or all, by their number."""
    sends, receives = family.kind != RECEIVE, family.kind != SEND
    by_stage = [family.slots_of(stage) for stage in range(family.n_stages)]
    are_all = bool((family.kind == BATCH).all())
    if are_all:
        layings, n_sends = _LAYINGS, range(1, len(by_stage[0]) + 1)
    else:
        first = int(sends[by_stage[0]].sum())
        layings, n_sends = (of_kinds,), range(first, first + 1)
    for number in n_sends:
        for schedule in candidates(family.n_stages, number):
            for lay in layings:
                laid = [
                    lay(stage, sends[own].tolist(), receives[own].tolist())
                    for stage, own in zip(schedule, by_stage, strict=True)
                ]
                if None not in laid:
                    yield _edges((own, calls) for own, calls in zip(by_stage, laid, strict=True) if calls)


def _edges(contents: Iterable[tuple[IntArray, Sequence[BatchCall]]]) -> Edges:
    sent: dict[Message, int] = {}
    received: dict[Message, int] = {}
    for slots, calls in contents:
        for slot, call in zip(slots.tolist(), calls, strict=True):
            sent.update(dict.fromkeys(call.sends, slot))
            received.update(dict.fromkeys(call.receives, slot))
    return _where_both(sent, received)


def _where_both(sent: Mapping[Message, int], received: Mapping[Message, int]) -> Edges:
    both = [message for message in sent if message in received]
    return (
        np.array([sent[message] for message in both], np.int64),
        np.array([received[message] for message in both], np.int64),
    )
