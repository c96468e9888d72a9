"""Which slots of a family exchange messages: what coincides, in the order of sending, and what is between.

A slot that only sends or receives has one partner; one that does both has one or two, of different stages.
Messages between two stages are received in the order in which they are sent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.thresholds.calls import LEAST_SECOND_SHARE, LEAST_SHARE, LEAST_STRENGTH, PRICE_STEP
from cluster_analysis.trace.pairing.coincidences import Votes
from cluster_analysis.trace.pairing.slots import BATCH, RECEIVE, SEND, Family

_ROUNDS = 40

#: Source and target slots of messages (P,).
Edges = tuple[IntArray, IntArray]
NO_EDGES: Edges = (np.empty(0, np.int64), np.empty(0, np.int64))
#: Messages (source slot, target slot), and how evident they are.
Chosen = dict[tuple[int, int], float]


def edges_of(family: Family, votes: Votes, allowed: BoolArray) -> Edges:
    """Return the messages that times tell.

    Args:
        votes: what coincides.
        allowed: stages that each slot may talk with (slots, stages).
    """
    strength = _strengths(family, votes)
    is_heard = strength >= max(LEAST_STRENGTH, LEAST_SHARE * float(strength.max(initial=0.0)))
    weight = np.where(is_heard, votes.weight * strength, 0.0)
    chosen = _one_each(family, votes, weight)
    chosen |= _seconds(family, votes, weight, chosen)
    chosen.update(dict.fromkeys(_between(family, chosen, allowed), 0.0))
    return oriented(family, chosen)


def _one_each(family: Family, votes: Votes, weight: FloatArray) -> Chosen:
    """The chains of all pairs of stages in which every slot has one partner.

    Slots that several chains claim get costlier until one of them is left (dual ascent).
    """
    channels = [np.flatnonzero(_is_of(family, votes, s, t)) for s, t in sorted(votes.clocks)]
    price = np.zeros(len(family.stage))
    step = PRICE_STEP * float(weight.max(initial=0.0))
    proposed: Chosen = {}
    for _ in range(_ROUNDS):
        worth = weight - price[votes.source] - price[votes.target]
        chains = [
            here[_heaviest_chain(votes.source[here], votes.target[here], worth[here])]
            for here in (one[worth[one] > 0] for one in channels)
        ]
        edges = np.concatenate([np.empty(0, np.int64), *chains])
        pairs = zip(votes.source[edges].tolist(), votes.target[edges].tolist(), strict=True)
        proposed = dict(zip(pairs, weight[edges].tolist(), strict=True))
        partners: dict[int, set[int]] = defaultdict(set)
        for a, b in proposed:
            partners[a].add(b)
            partners[b].add(a)
        rivals = [slot for slot, own in partners.items() if len(own) > 1]
        if not rivals:
            break
        price[rivals] += step
    return _heaviest_first(proposed)


def _heaviest_first(edges: Chosen) -> Chosen:
    partner: dict[int, int] = {}
    kept: Chosen = {}
    for (a, b), weight in sorted(edges.items(), key=lambda one: (-one[1], one[0])):
        if partner.setdefault(a, b) == b and partner.setdefault(b, a) == a:
            kept[a, b] = weight
    return kept


def _seconds(family: Family, votes: Votes, weight: FloatArray, chosen: Chosen) -> Chosen:
    """Second partners of slots that send and receive: of another stage, in order, and nearly as evident."""
    own = np.zeros(len(family.stage))
    stages: dict[int, set[int]] = defaultdict(set)
    for (a, b), w in chosen.items():
        own[a], own[b] = max(own[a], w), max(own[b], w)
        stages[a].add(int(family.stage[b]))
        stages[b].add(int(family.stage[a]))
    is_batch = family.kind == BATCH
    least = LEAST_SECOND_SHARE * np.maximum(own[votes.source], own[votes.target])
    likely = (
        is_batch[votes.source]
        & is_batch[votes.target]
        & (votes.source < votes.target)
        & (weight >= least)
        & (weight > 0)
    )
    found: Chosen = {}
    for edge in np.flatnonzero(likely)[np.argsort(-weight[likely], kind="stable")].tolist():
        a, b = int(votes.source[edge]), int(votes.target[edge])
        s, t = int(family.stage[a]), int(family.stage[b])
        if max(len(stages[a]), len(stages[b])) < 2 and t not in stages[a] and s not in stages[b]:  # noqa: SIM102
            if _fits(chosen | found, family, a, b):
                found[a, b] = float(weight[edge])
                stages[a].add(t)
                stages[b].add(s)
    return found


def _strengths(family: Family, votes: Votes) -> FloatArray:
    """Share of two stages' calls that coincide, for each edge: frequent partners are likely ones."""
    found = np.zeros((family.n_stages, family.n_stages))
    for s, t in votes.clocks:
        here = np.flatnonzero(_is_of(family, votes, s, t))
        chain = here[_heaviest_chain(votes.source[here], votes.target[here], votes.weight[here])]
        found[s, t] = votes.weight[chain].sum()
    n_calls = np.bincount(family.stage, minlength=family.n_stages)
    found = (found + found.T) / np.maximum(np.minimum.outer(n_calls, n_calls), 1) / votes.n_groups
    return np.asarray(found[family.stage[votes.source], family.stage[votes.target]])


def _heaviest_chain(source: IntArray, target: IntArray, weight: FloatArray) -> IntArray:
    """Edges (E,) of the heaviest chain in which sources and targets increase, in order.

    The messages between two stages are received in the order in which they are sent.
    """
    if not len(source):
        return np.empty(0, np.int64)
    order = np.lexsort((-target, source))
    _, place = np.unique(target, return_inverse=True)
    place = np.ravel(place)
    # best[p]: the heaviest chain so far that ends in the p-th target, and its last edge.
    best = np.zeros(int(place.max()) + 2)
    last = np.full(len(best), -1, np.int64)
    before = np.full(len(source), -1, np.int64)
    for edge in order.tolist():
        p = int(place[edge])
        at = int(np.argmax(best[: p + 1]))
        total = best[at] + weight[edge]
        before[edge] = last[at]
        if total > best[p + 1]:
            best[p + 1], last[p + 1] = total, edge
    chain, edge = [], int(last[np.argmax(best)])
    while edge >= 0:
        chain.append(edge)
        edge = int(before[edge])
    return np.array(chain[::-1], np.int64)


def _is_of(family: Family, votes: Votes, s: int, t: int) -> BoolArray:
    return np.asarray((family.stage[votes.source] == s) & (family.stage[votes.target] == t))


def _fits(chosen: Chosen, family: Family, a: int, b: int) -> bool:
    """Whether a message keeps the order of those between the same stages that are chosen."""
    s, t = family.stage[a], family.stage[b]
    return all(
        (x < a) == (y < b) and x != a and y != b
        for x, y in chosen
        if family.stage[x] == s and family.stage[y] == t and (x, y) != (a, b)
    )


def _between(family: Family, chosen: Chosen, allowed: BoolArray) -> list[tuple[int, int]]:
    """Pair what is left between two neighbours in a chain, where as many are sent as are received."""
    is_free = np.ones(len(family.stage), bool)
    is_free[[slot for edge in chosen for slot in edge]] = False
    found: list[tuple[int, int]] = []
    talking = {(int(family.stage[a]), int(family.stage[b])) for a, b in chosen}
    for s, t in sorted(talking | {(t, s) for s, t in talking}):
        chain = sorted((a, b) for a, b in chosen if family.stage[a] == s and family.stage[b] == t)
        end = len(family.stage)
        for (a0, b0), (a1, b1) in pairwise([(-1, -1), *chain, (end, end)]):
            for sends, receives in ((SEND, RECEIVE), (BATCH, BATCH)):
                own = is_free & (family.stage == s) & (family.kind == sends) & allowed[:, t]
                other = is_free & (family.stage == t) & (family.kind == receives) & allowed[:, s]
                left = a0 + 1 + np.flatnonzero(own[a0 + 1 : a1])
                right = b0 + 1 + np.flatnonzero(other[b0 + 1 : b1])
                if len(left) == len(right):
                    found += zip(left.tolist(), right.tolist(), strict=True)
                    is_free[left] = is_free[right] = False
    return found


def oriented(family: Family, edges: Iterable[tuple[int, int]]) -> Edges:
    """Say which of two sends if both may: each sends to one and receives from one, or does both with one."""
    given = set(edges)
    sends, receives = {}, {}
    undirected: dict[int, list[int]] = defaultdict(list)
    for a, b in sorted(given):
        if family.kind[a] == BATCH and family.kind[b] == BATCH:
            if (b, a) not in given or a < b:
                undirected[a].append(b)
                undirected[b].append(a)
        else:
            sends[a], receives[b] = b, a
    found = set(sends.items())
    walked: set[tuple[int, int]] = set()
    # Chains begin where one has a single partner; circles anywhere.
    for first in sorted(undirected, key=lambda slot: (len(undirected[slot]) > 1, slot)):
        here = first
        while True:
            ahead = [x for x in undirected[here] if (min(here, x), max(here, x)) not in walked]
            if not ahead:
                break
            there = ahead[0]
            walked.add((min(here, there), max(here, there)))
            alone = len(undirected[here]) == len(undirected[there]) == 1
            for a, b in ((here, there), (there, here)):
                if (
                    a not in sends
                    and b not in receives
                    and (alone or (a, b) == (here, there) or (here, there) not in found)
                ):
                    sends[a], receives[b] = b, a
                    found.add((a, b))
            here = there
    source, target = (
        (np.array(side, np.int64) for side in zip(*sorted(found), strict=True))
        if found
        else (np.empty(0, np.int64), np.empty(0, np.int64))
    )
    return source, target
