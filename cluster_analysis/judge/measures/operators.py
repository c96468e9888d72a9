"""Operators as observations of the network: how long each took to move its data, and what its members sent.

An operator says how long its slowest link took, not which link that was: it observes the ranks that take
part, a group or the two ends of a message. All groups that reach other hosts may use the slow part, and some
groups resemble no other one. If no matrix has single links, each member of a group is compared with the
others by its own sending, as an observation of a link.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.judge.measures.slow_units import Observations, beyond_class
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import codes
from cluster_analysis.numeric.grouped import medians_of
from cluster_analysis.numeric.sorting import combined, distinct, first_positions, half_octaves
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.judging import SMALL_BYTES
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.ids import HostId, Rank


def observe_operators(graph: Graph, host_of: Mapping[Rank, HostId], limits: Thresholds) -> Observations:
    """Turn the operators (O,) of a graph into observations of groups and of pairs of ranks that send.

    A class shares type, half-octave of size, number of ranks, and whether data leave a host. An operator that
    may be all waiting (a member recorded nothing in that step, or an end of a message is unknown) is in none.
    """
    n, n_groups, n_ranks = len(graph.rank), len(graph.groups), len(graph.ranks)
    ends = np.full((len(graph.transfer_us), 2), -1)
    for other, own_end in ((graph.receiver, 0), (graph.sender, 1)):
        known = np.flatnonzero(graph.is_p2p & (other < n))
        ends[graph.operator[known], own_end] = graph.ranks[graph.rank[known]]
        ends[graph.operator[known], 1 - own_end] = graph.ranks[graph.rank[other[known]]]
    is_pair = ends[:, 0] >= 0
    pair = combined(*ends[is_pair].T)[1]
    team = graph.operator_group.astype(np.int64)
    team[is_pair] = n_groups + pair
    taking_part = graph.operator_group[graph.operator].astype(np.int64) * n_ranks + graph.rank
    group, at = np.divmod(distinct(taking_part)[0], n_ranks)
    of_group = np.split(graph.ranks[at], np.searchsorted(group, np.arange(1, n_groups)))[:n_groups]
    members = [tuple(one.tolist()) for one in (*of_group, *ends[is_pair][first_positions(pair)])]
    crosses = np.array([len({host_of.get(Rank(rank)) for rank in one}) > 1 for one in members], bool)
    size, kind = graph.operator_bytes, graph.operator_type
    alike = kind, half_octaves(size), graph.operator_n_ranks, crosses[team].astype(np.int32)
    is_there = graph.sum_by_cell(np.ones(n)) > 0
    are_there = np.array([is_there[np.searchsorted(graph.ranks, one)].all(0) for one in members])
    is_known = (is_pair | ~graph.is_message) & (graph.transfer_us > 0) & are_there[team, graph.operator_step]
    time_us = np.where(is_known, graph.transfer_us, np.nan)
    slowness = np.log(time_us / np.maximum(np.nan_to_num(size), 1.0))
    excess = beyond_class(team, alike, slowness, limits.link_effect)
    return Observations(
        team, graph.operator_step, kind, graph.operator_group, size, time_us, excess, graph.types,
        graph.groups, tuple(members), np.arange(len(members)) < n_groups,
        tuple(np.where(crosses, "RDMA", "HCCS").tolist()), np.zeros(len(members), bool),
    )  # fmt: skip


def observe_sent(sent: pa.Table, teams: Observations, view: JobView, limits: Thresholds) -> Observations:
    """Put what members sent in the place of operators of groups that reach other hosts.

    A class shares transport, type, half-octave of size, and number of ranks.

    Args:
        sent: SENT of the job.
        teams: what its operators show.
    """
    carriers, carrier = codes(sent["transport"])
    kind, team = codes(sent["op_type"], teams.kinds)[1], codes(sent["group"], teams.groups)[1]
    is_remote = np.array([one == "RDMA" for one in carriers], bool)[carrier]
    is_known = (team < len(teams.groups)) & (kind < len(teams.kinds))
    rows = np.flatnonzero(is_known & np.isin(team, team[is_remote]))
    carrier, team, kind, is_remote = carrier[rows], team[rows], kind[rows], is_remote[rows]
    columns = (sent[name].to_numpy() for name in ("size_bytes", "time_us", "rank", "step"))
    size, time, rank, step = (np.asarray(one)[rows] for one in columns)
    unit = combined(carrier, team, rank)[1]
    n_members = np.array([len(one) for one in teams.members], np.int32)[team]
    excess = beyond_class(
        unit, (carrier, kind, half_octaves(size), n_members), np.log(time / size), limits.link_effect
    )
    first = first_positions(unit)
    senders = zip(rank[first].tolist(), team[first].tolist(), is_remote[first].tolist(), strict=True)
    ends, no = _ends(list(senders), teams, view.topology.hosts), np.zeros(len(first), bool)
    own = Observations(
        unit, np.searchsorted(view.steps, step), kind, team, size, time, excess, teams.kinds, teams.groups,
        tuple(ends), no, tuple(carriers[at] for at in carrier[first].tolist()), no,
    )  # fmt: skip
    is_shown = teams.is_group & np.isin(np.arange(len(teams.members)), team)
    return teams.beside(own, ~is_shown)


def slow_senders(sent: pa.Table, limits: Thresholds) -> dict[str, tuple[int, ...]]:
    """Return by group the members that sent more slowly than most, or whose speed is not known.

    A member's links are added, so that one slow link of many shows as its part of them, on both of its ends.
    Small operators are latency, and say nothing.
    """
    sent = sent.filter(pc.greater_equal(sent["size_bytes"], SMALL_BYTES))
    (_, carrier), (_, kind), (groups, group) = (codes(sent[one]) for one in ("transport", "op_type", "group"))
    rank, size, time = (sent[name].to_numpy() for name in ("rank", "size_bytes", "time_us"))
    unit = combined(carrier, group, rank)[1]
    alike = carrier, kind, group, half_octaves(size)
    excess = beyond_class(unit, alike, np.log(time / size), limits.link_effect)
    level, first = medians_of(excess, unit), first_positions(unit)
    member = first_positions(combined(group, rank)[1])
    n_members = np.bincount(group[member], minlength=len(groups))
    slow = first[~(level < np.log1p(limits.link_effect / np.maximum(n_members[group[first]] - 1, 1)))]
    return {name: tuple(np.unique(rank[slow[group[slow] == at]]).tolist()) for at, name in enumerate(groups)}


def _ends(
    senders: Sequence[tuple[int, int, bool]], teams: Observations, host_of: Mapping[Rank, HostId]
) -> list[tuple[int, int]]:
    """Each sender of a team, to other hosts or to its own, and the member that it is taken to send to."""
    ranks_of: dict[tuple[int, bool], list[int]] = {}
    for rank, team, is_remote in senders:
        ranks_of.setdefault((team, is_remote), []).append(rank)
    rings = {
        (team, is_remote): ring_of(ranks, teams.members[team], host_of, is_remote=is_remote)
        for (team, is_remote), ranks in ranks_of.items()
    }
    return [(rank, rings[team, is_remote][rank]) for rank, team, is_remote in senders]


def ring_of(
    senders: Sequence[int], members: tuple[int, ...], host_of: Mapping[Rank, HostId], *, is_remote: bool
) -> dict[int, int]:
    """The member that each one of a group is assumed to send to over one transport: the next in a ring.

    Where `senders` reach other hosts and their next one is on their own, rings join the members at the same
    place of each host.
    """
    ring = dict(zip(members, (*members[1:], members[0]), strict=True))
    by_host: dict[HostId | None, list[int]] = {}
    for rank in members:
        by_host.setdefault(host_of.get(Rank(rank)), []).append(rank)
    is_inside = any(host_of.get(Rank(one)) == host_of.get(Rank(ring[one])) for one in senders)
    if is_remote and is_inside and len(by_host) > 1:
        hosts = list(by_host.values())
        for own, other in zip(hosts, (*hosts[1:], hosts[0]), strict=True):
            ring |= {rank: other[at % len(other)] for at, rank in enumerate(own)}
    return ring
