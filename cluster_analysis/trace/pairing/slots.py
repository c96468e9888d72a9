"""Calls of pipelines that run one program, as a matrix: one row a group, one column a slot.

Replicas run one program, so that the k-th call of a stage is the same call in each of them. A *slot* is such
a place in the program: a stage and a running place in it. Where records are lost, running numbers say which
slot a call is in, if the profiler counts what was lost; else groups are families of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
from msgspec import Struct

from cluster_analysis.numeric.arrays import BoolArray, IntArray
from cluster_analysis.numeric.sorting import begins
from cluster_analysis.tables.model import Topology
from cluster_analysis.thresholds.calls import MOST_NUMBERS_FACTOR
from cluster_analysis.trace.calls import Calls

SEND, RECEIVE, BATCH = 0, 1, 2


class Family(Struct, frozen=True):
    """Groups of one program. `table` (groups, slots) are calls, -1 for none; the slots lie stage by stage.

    `stage` and `kind` (slots,) say whose they are and whether they send, receive or do both. `ranks`
    (groups, stages) are positions in the calls' ranks, -1 for a rank without calls.
    """

    table: IntArray
    stage: IntArray
    kind: IntArray
    ranks: IntArray

    @property
    def n_stages(self) -> int:
        """Members of each group."""
        return int(self.ranks.shape[1])

    def slots_of(self, stage: int) -> IntArray:
        """Return the slots of a stage, in order."""
        return np.flatnonzero(self.stage == stage)


class _Runs(Struct, frozen=True):
    """The messages of each rank in each group: run `r` is `calls[begin[r]:begin[r + 1]]`, in order."""

    calls: IntArray
    begin: IntArray
    group: IntArray
    rank: IntArray
    stage: IntArray
    number: IntArray
    kind: IntArray

    @property
    def counts(self) -> IntArray:
        return np.diff(self.begin)

    def of(self, chosen: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Entries of chosen runs, which of the runs each is of, and its place in it."""
        counts = self.counts[chosen]
        which = np.repeat(np.arange(len(chosen)), counts)
        place = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.begin[chosen][which] + place, which, place


def families(calls: Calls, topology: Topology) -> Iterator[Family]:
    """Yield the families of all groups that have messages."""
    runs, size_of = _runs(calls, topology)
    for n_stages in np.unique(size_of[size_of > 1]).tolist():
        waiting = np.flatnonzero(size_of == n_stages)
        while len(waiting):
            own = np.flatnonzero(np.isin(runs.group, waiting) & (runs.stage < n_stages))
            family, regular = _family(runs, own, waiting, n_stages)
            yield family
            waiting = waiting[~regular]


def _runs(calls: Calls, topology: Topology) -> tuple[_Runs, IntArray]:
    """All runs, and how many members each group (numbered from 0) has."""
    order = calls.messages_by_group
    # A rank issues its calls in the order of their numbers; starts on two streams may differ from it.
    number = calls.number[order]
    if (number >= 0).all():
        ahead = begins(calls.group[order]) | begins(calls.rank[order])
        if (np.diff(number)[~ahead[1:]] < 0).any():
            order = order[np.lexsort((number, np.cumsum(ahead)))]
    group, rank = calls.group[order], calls.rank[order]
    first = np.flatnonzero(begins(group) | begins(rank))
    bounds = np.r_[np.flatnonzero(begins(group[first])), len(first)]
    stage = np.empty(len(first), np.int64)
    sizes = np.empty(len(bounds) - 1, np.int64)
    for one, (begin, end) in enumerate(pairwise(bounds.tolist())):
        ranks = calls.ranks[rank[first[begin:end]]].tolist()
        stage_of = _stages(calls.groups[int(group[first[begin]])], ranks, topology)
        sizes[one] = len(stage_of)
        # Calls of ranks that the group does not name lie behind its last stage.
        stage[begin:end] = [stage_of.get(member, len(stage_of)) for member in ranks]
    kind = np.where(calls.is_send[order], SEND, np.where(calls.is_receive[order], RECEIVE, BATCH))
    numbered = np.repeat(np.arange(len(sizes)), np.diff(bounds))
    runs = _Runs(
        order, np.r_[first, len(order)], numbered, rank[first].astype(np.int64), stage,
        calls.number[order].astype(np.int64), kind,
    )  # fmt: skip
    return runs, sizes


def _stages(name: str, ranks: list[int], topology: Topology) -> Mapping[int, int]:
    """The place of each rank in the group's pipeline; in an unknown group, the order of its ranks."""
    known = topology.stages_in_groups.get(name)
    return {rank: place for place, rank in enumerate(sorted(set(ranks)))} if known is None else known


def _family(runs: _Runs, own: IntArray, groups: IntArray, n_stages: int) -> tuple[Family, BoolArray]:
    """The groups (G,) that run the program of most, and which they are; the others are tried again."""
    row = np.searchsorted(groups, runs.group)
    is_regular = np.ones(len(groups), bool)
    columns: list[tuple[IntArray, IntArray, IntArray, IntArray]] = []
    for stage in range(n_stages):
        chosen = own[runs.stage[own] == stage]
        if not len(chosen):
            continue
        entries, which, place = runs.of(chosen)
        slot, fits = _slots(runs, chosen, entries, which, place)
        is_regular[row[chosen[~fits]]] = False
        kind = runs.kind[entries]
        usual = _majority(slot, kind)
        odd = np.bincount(which, usual[slot] != kind, len(chosen)) > 0
        is_regular[row[chosen[odd]]] = False
        columns.append((row[chosen[which]], slot, entries, usual))
    if not is_regular.any():  # every group has some rank unlike the others: one after the other
        is_regular[0] = True
        if len(groups) > 1:
            own = own[runs.group[own] == groups[0]]
            family, _ = _family(runs, own, groups[:1], n_stages)
            return family, is_regular
    width = [len(usual) for *_, usual in columns]
    table = np.full((len(groups), sum(width)), -1, np.int64)
    for before, (at, slot, entries, _) in zip(np.cumsum([0, *width]).tolist(), columns, strict=False):
        table[at, before + slot] = runs.calls[entries]
    ranks = np.full((len(groups), n_stages), -1, np.int64)
    ranks[row[own], runs.stage[own]] = runs.rank[own]
    stages = [stage for stage in range(n_stages) if (runs.stage[own] == stage).any()]
    kept = np.flatnonzero(is_regular)
    family = Family(
        table[kept],
        np.repeat(np.array(stages, np.int64), width),
        np.concatenate([usual for *_, usual in columns]),
        ranks[kept],
    )
    return family, is_regular


def _slots(
    runs: _Runs, chosen: IntArray, entries: IntArray, which: IntArray, place: IntArray
) -> tuple[IntArray, BoolArray]:
    """The slot of each entry of a stage's runs, and which of the runs fit (R,)."""
    counts = runs.counts[chosen]
    most = int(counts.max())
    everyone = np.ones(len(chosen), bool)
    number = runs.number[entries]
    first = number[np.cumsum(counts) - counts]
    since = number - first[which]
    if (counts == most).all() and (since == np.tile(since[:most], len(chosen))).all():
        return place, everyone
    if (number >= 0).all():
        for relative in (number, since):
            found, slot = np.unique(relative, return_inverse=True)
            if len(found) <= MOST_NUMBERS_FACTOR * most + 1:
                # Of one kind all: what all have lost keeps its slot.
                if found[-1] - found[0] < MOST_NUMBERS_FACTOR * most + 1 and np.ptp(runs.kind[entries]) == 0:
                    return relative - found[0], everyone
                return np.ravel(slot), everyone
    return place, counts == most


def _majority(slot: IntArray, kind: IntArray) -> IntArray:
    """The kind that most calls of each slot have; of slots that are empty, the kind of all."""
    n_slots = int(slot.max(initial=-1)) + 1
    counts = np.bincount(slot * 3 + kind, minlength=3 * n_slots).reshape(n_slots, 3)
    return np.asarray(np.where(counts.any(axis=1), counts.argmax(axis=1), counts.sum(axis=0).argmax()))
