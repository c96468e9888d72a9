"""Operators as observations of the network, where no link was observed: how long each took to move its data.

An operator says how long its slowest link took, not which link that was: it observes the ranks that take
part, a group or the two ends of a message.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from cluster_analysis.judge.measures.slow_units import Units, beyond_class, judge_units
from cluster_analysis.numeric.arrays import IntArray
from cluster_analysis.numeric.sorting import combined, distinct, first_positions, half_octaves
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.limits import Thresholds
from cluster_analysis.thresholds.network import SMALL_BYTES
from cluster_run.ids import HostId, Rank


class Teams(Struct, frozen=True):
    """Ranks that communicate: the groups of a graph, then sender and receiver of messages.

    `of_operator` (O,) is -1 for messages whose other end is not known.
    """

    members: tuple[tuple[int, ...], ...]
    n_groups: int
    of_operator: IntArray


def teams_of(graph: Graph) -> Teams:
    """Number the groups and the directed pairs of ranks that send to each other."""
    n, n_groups = len(graph.rank), len(graph.groups)
    ends = np.full((len(graph.transfer_us), 2), -1)
    for other, own_end in ((graph.receiver, 0), (graph.sender, 1)):
        known = np.flatnonzero(graph.is_p2p & (other < n))
        ends[graph.operator[known], own_end] = graph.ranks[graph.rank[known]]
        ends[graph.operator[known], 1 - own_end] = graph.ranks[graph.rank[other[known]]]
    is_known = ends[:, 0] >= 0
    pair = combined(ends[is_known, 0], ends[is_known, 1])[1]
    pairs = ends[is_known][first_positions(pair)].tolist()
    of_operator = np.where(graph.is_message, -1, graph.operator_group.astype(np.int64))
    of_operator[is_known] = n_groups + pair
    taking_part, n_ranks = graph.operator_group[graph.operator].astype(np.int64), len(graph.ranks)
    group, at = np.divmod(distinct(taking_part * n_ranks + graph.rank)[0], n_ranks)
    of_group = np.split(graph.ranks[at], np.searchsorted(group, np.arange(1, n_groups)))
    groups = [tuple(members.tolist()) for members in of_group[:n_groups]]
    return Teams((*groups, *map(tuple, pairs)), n_groups, of_operator)


def judge_operators(graph: Graph, host_of: Mapping[Rank, HostId], limits: Thresholds) -> Units:
    """Find the slow groups and pairs of ranks, each held against those of its class.

    A class shares type, half-octave of size, number of ranks, and whether data leave a host.
    """
    teams = teams_of(graph)
    crosses = np.array([len({host_of.get(Rank(rank)) for rank in one}) > 1 for one in teams.members], bool)
    known = np.flatnonzero(
        (teams.of_operator >= 0) & (graph.operator_bytes >= SMALL_BYTES) & (graph.transfer_us > 0)
    )
    team, size = teams.of_operator[known], graph.operator_bytes[known]
    n_ranks, kind = graph.operator_n_ranks[known], graph.operator_type[known]
    alike = (kind, half_octaves(size), n_ranks, crosses[team].astype(np.int64))
    excess = beyond_class(team, alike, np.log(graph.transfer_us[known] / size), limits.link_effect)
    is_group = np.arange(len(teams.members)) < teams.n_groups
    transport = tuple(np.where(crosses, "RDMA", "HCCS").tolist())
    return judge_units(team, excess, teams.members, is_group, transport, limits.link_effect)
