"""Sends and receives that a rank's files lack, by its TP/CP peers.

Ranks of one pipeline stage send and receive alike. A missing send or receive (its running number is
not there) is put where a TP/CP peer has it, counted from a call that both have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from cluster_analysis.numeric.arrays import IntArray
from cluster_analysis.tables.model import Topology
from cluster_analysis.thresholds.trace import MAX_MISSING_SHARE
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.missing.record import MissingCall
from cluster_run.ids import Rank


def missing_messages(
    calls: Calls, operator: IntArray, filled: Sequence[MissingCall], topology: Topology
) -> list[MissingCall]:
    """Return the messages that most ranks of a stage have and some lack.

    Args:
        calls: the step's calls.
        operator: the operator of each call (V,).
        filled: collectives that are filled in.
        topology: stages and replicas.
    """
    n_messages = np.bincount(calls.rank[calls.is_point_to_point], minlength=len(calls.ranks))
    stages = np.array([topology.stages.get(Rank(int(rank)), -1) for rank in calls.ranks])
    found = []
    for stage in np.unique(stages[stages >= 0]):
        ranks = np.flatnonzero((stages == stage) & (n_messages > 0))
        if len(np.unique(n_messages[ranks])) > 1:
            found += _missing_in_stage(calls, operator, filled, ranks, topology)
    return found


def _missing_in_stage(
    calls: Calls, operator: IntArray, filled: Sequence[MissingCall], ranks: IntArray, topology: Topology
) -> list[MissingCall]:
    by_rank: dict[int, dict[int, int]] = {}
    for rank in ranks.tolist():
        inside = calls.of_rank(rank)
        own = inside.start + np.flatnonzero(calls.is_point_to_point[inside])
        if len(np.unique(calls.group[own])) == 1 and (calls.number[own] >= 0).all():
            by_rank[rank] = dict(zip(calls.number[own].tolist(), own.tolist(), strict=True))
    counts = Counter(number for numbers in by_rank.values() for number in numbers)
    wanted = [number for number, count in counts.items() if 2 * count > len(by_rank)]
    replica = {rank: topology.dp_index.get(Rank(int(calls.ranks[rank])), -1) for rank in by_rank}
    found = []
    for rank, own_calls in by_rank.items():
        missing = [number for number in wanted if number not in own_calls]
        if not missing or len(missing) > MAX_MISSING_SHARE * len(wanted):
            continue
        others = sorted(by_rank, key=lambda other, rank=rank: (replica[other] != replica[rank], other))  # type: ignore[misc]
        group = int(calls.group[next(iter(own_calls.values()))])
        inside = calls.of_rank(rank)
        together = inside.start + np.flatnonzero(~calls.is_point_to_point[inside])
        left_us = dict(zip(operator[together].tolist(), calls.end_us[together].tolist(), strict=True))
        left_us.update({int(operator[one.source]): one.end_us for one in filled if one.rank == rank})
        for number in sorted(missing):
            peer = next(other for other in others if number in by_rank[other])
            source = by_rank[peer][number]
            shift_us = _since_they_met(calls, operator, source, left_us)
            if shift_us is None:
                shift_us = _since_a_message(calls, number, own_calls, by_rank[peer])
            alike = [by_rank[other][number] for other in others if number in by_rank[other]]
            usual_us = float(np.median(calls.elapse_us[alike]))
            found.append(_like_peer(calls, rank, group, source, shift_us=shift_us, usual_us=usual_us))
    return found


def _since_they_met(calls: Calls, operator: IntArray, source: int, left_us: dict[int, float]) -> float | None:
    """What to add to the time of a peer's call by the last collective that both left before it; None: none.

    Args:
        calls: the step's calls.
        operator: the operator of each call (V,).
        source: the peer's call.
        left_us: when the rank left each of its collectives, by operator.
    """
    before = source - 1
    while before >= 0 and calls.rank[before] == calls.rank[source]:
        is_over = calls.end_us[before] <= calls.start_us[source]
        if is_over and int(operator[before]) in left_us:
            return left_us[int(operator[before])] - float(calls.end_us[before])
        before -= 1
    return None


def _since_a_message(calls: Calls, number: int, own: dict[int, int], tp_cp_peers: dict[int, int]) -> float:
    """What to add to the time of a TP/CP peer's message by the nearest one that both have."""
    shared = [other for other in own if other in tp_cp_peers]
    anchor = min(shared, key=lambda other: (abs(other - number), other)) if shared else next(iter(own))
    return float(calls.start_us[own[anchor]] - calls.start_us[tp_cp_peers.get(anchor, tp_cp_peers[number])])


def _like_peer(
    calls: Calls, rank: int, group: int, source: int, *, shift_us: float, usual_us: float
) -> MissingCall:
    start = float(calls.start_us[source] + shift_us)
    end = start + (usual_us if calls.is_send[source] else float(calls.elapse_us[source]))
    if not calls.is_send[source]:
        own = calls.of_rank(rank)
        begun, ended = calls.start_us[own], calls.end_us[own]
        end = min(end, float(begun[begun > start].min(initial=np.inf)))
        start = min(max(start, float(ended[ended <= end].max(initial=-np.inf))), end)
    return MissingCall(rank, group, source, start, end, start, start)
