"""Slow parts of the network without a communication matrix: operators that last longer than the like of them.

An operator says how long its slowest link took, not which link that was. What the slow ones have in common
says as much as can be told: two ranks, or a rank, a host or a pair of hosts where all of them meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.detectors.slow_network import message_ends
from cluster_analysis.judge.measures.links import beyond_chance, beyond_class
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.grouped import medians_of
from cluster_analysis.numeric.sorting import half_octaves
from cluster_analysis.numeric.stats import sigma
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.limits import Thresholds
from cluster_analysis.thresholds.network import SMALL_BYTES
from cluster_run.facts import Fact, fact
from cluster_run.findings import Evidence, FaultKind, Link
from cluster_run.ids import HostId, Rank


@dataclass(frozen=True)
class _Teams:
    """Ranks that communicate: a group, or the two ends of a message. `of_operator` (O,) is -1 for none."""

    members: tuple[tuple[int, ...], ...]
    of_operator: IntArray
    is_message: BoolArray


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give the slow part of the network, as one suspect, where no link was observed."""
    view, limits, graph = case.view, case.limits, case.view.graph
    if case.links is not None or graph is None:
        return
    teams = _teams(graph)
    excess = _excess(graph, teams, view.topology.hosts, limits)
    known = teams.of_operator >= 0
    n_teams = len(teams.members)
    level = np.full(n_teams, np.nan)
    of_known = medians_of(excess[known], teams.of_operator[known])
    level[: len(of_known)] = of_known
    _, is_slow, chance = beyond_chance(excess[known], teams.of_operator[known], level, limits.group_effect)
    slow = np.flatnonzero(is_slow)
    if not len(slow):
        return
    of_slow = np.isin(teams.of_operator, slow)
    factor = np.ones(len(excess))
    factor[of_slow] = np.exp(-level[teams.of_operator[of_slow]])
    ratio = float(np.exp(np.median(level[slow])))
    spread = float(np.nan_to_num(sigma(excess[np.isfinite(excess) & ~of_slow])))
    n_others = n_teams - len(slow)
    yield replace(
        _at_common_place(view, teams, slow, slower_share=ratio - 1.0, n_others=n_others),
        evidence=(Evidence("transfer_time_ratio", ratio, 1.0, spread, n_others),),
        p_value=min(1.0, n_teams * float(np.prod(chance[slow]))),
        link_factor=factor,
    )


def _teams(graph: Graph) -> _Teams:
    """Number the groups and the directed pairs of ranks that send to each other."""
    source, target = message_ends(graph)
    is_message = (source >= 0) & (target >= 0)
    of_operator = np.full(len(source), -1, np.int64)
    of_operator[~graph.is_message] = graph.operator_group[~graph.is_message]
    members = [tuple(sorted(group)) for group in _members(graph)]
    pairs, pair = np.unique(np.c_[source, target][is_message], axis=0, return_inverse=True)
    of_operator[is_message] = len(members) + np.ravel(pair)
    members += [(int(one), int(other)) for one, other in pairs.tolist()]
    return _Teams(tuple(members), of_operator, np.arange(len(members)) >= len(graph.groups))


def _members(graph: Graph) -> list[set[int]]:
    """Global ranks that take part in each group's operators."""
    group = graph.operator_group[graph.operator].astype(np.int64)
    seen = np.unique(group * len(graph.ranks) + graph.rank)
    members: list[set[int]] = [set() for _ in graph.groups]
    for code in seen.tolist():
        at, rank = divmod(code, len(graph.ranks))
        members[at].add(int(graph.ranks[rank]))
    return members


def _excess(graph: Graph, teams: _Teams, host_of: Mapping[Rank, HostId], limits: Thresholds) -> FloatArray:
    """ln(time per byte) of each operator (O,) above its class's: type, half-octave of size, ranks, network.

    NaN for latency, and where nothing is compared.
    """
    crosses = np.array([len({host_of.get(Rank(rank)) for rank in one}) > 1 for one in teams.members], bool)
    is_known = (teams.of_operator >= 0) & (graph.operator_bytes >= SMALL_BYTES) & (graph.transfer_us > 0)
    known = np.flatnonzero(is_known)
    excess = np.full(len(graph.transfer_us), np.nan)
    if len(known):
        team, size = teams.of_operator[known], graph.operator_bytes[known]
        n_ranks, kind = graph.operator_n_ranks[known], graph.operator_type[known]
        alike = (kind, half_octaves(size), n_ranks, crosses[team].astype(np.int64))
        slowness = np.log(graph.transfer_us[known] / size)
        excess[known] = beyond_class(team, alike, slowness, limits.group_effect)
    return excess


def _at_common_place(view: JobView, teams: _Teams, slow: IntArray, **told: float) -> Suspect:
    """The suspect of slow teams by what they have in common: a part if that is told, else whole groups."""
    host_of = view.topology.hosts
    members = [teams.members[team] for team in slow.tolist()]
    ranks = sorted(set(members[0]).intersection(*members))
    hosts_of_teams = [{host_of[Rank(rank)] for rank in one if Rank(rank) in host_of} for one in members]
    hosts = tuple(sorted(set(hosts_of_teams[0]).intersection(*hosts_of_teams)))
    transport = "RDMA" if all(len(one) > 1 for one in hosts_of_teams) else "HCCS"
    everybody = tuple(sorted(set().union(*members)))
    if len(everybody) == 2:
        both = [pair for pair in members if teams.is_message[slow].all()] or [everybody, everybody[::-1]]
        links = tuple(Link(Rank(one), Rank(other), transport) for one, other in both)
        said = fact("operators_between_two", **told, ends=everybody)
        name = f"{both[0][0]}-{both[0][1]}"
        return _suspect("slow_link", name, said, hosts=view.hosts_of_ranks(ranks), links=links)
    if len(ranks) == 1 and len(members) > 1:
        said = fact("operators_of_rank", **told, rank=ranks[0], transport=transport)
        return _suspect("slow_nic", f"{ranks[0]}", said, ranks, view.hosts_of_ranks(ranks))
    if len(hosts) == 1 and len(members) > 1 and transport == "RDMA":
        return _suspect("slow_uplink", hosts[0], fact("operators_across_host", **told), hosts=hosts)
    if len(hosts) == 2 and len(members) > 1:
        return _suspect(
            "slow_host_pair", "-".join(hosts), fact("operators_between_hosts", **told), hosts=hosts
        )
    if len(members) == 1:
        said = fact("operators_of_group", **told, ranks=members[0])
    else:
        said = fact("operators_of_groups", **told, n_groups=len(members))
    where = view.hosts_of_ranks(ranks)
    return replace(
        _suspect("slow_link", f"{everybody[0]}-{everybody[-1]}", said, everybody, where), confidence="low"
    )


def _suspect(
    kind: FaultKind,
    name: str,
    said: Fact,
    ranks: Sequence[int] = (),
    hosts: tuple[HostId, ...] = (),
    links: tuple[Link, ...] = (),
) -> Suspect:
    """The suspect of a part of the network, before anything is known of how slow it is."""
    return Suspect(
        key=f"{kind}-{name}",
        kind=kind,
        evidence=(),
        ranks=tuple(Rank(rank) for rank in ranks),
        hosts=hosts,
        cause="bandwidth",
        facts=(said, fact("no_matrix")),
        confidence="medium",
        links=links,
    )
