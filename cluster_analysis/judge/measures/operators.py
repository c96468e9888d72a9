"""Operators as observations of the network: how long each took to move its data.

An operator says how long its slowest link took, not which link that was: it observes the ranks that take
part, a group or the two ends of a message. `sent.py` has what each of them moved.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cluster_analysis.judge.measures.slow_units import Observations, beyond_class
from cluster_analysis.numeric.sorting import combined, distinct, first_positions, half_octaves
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.ids import HostId, Rank


def observe_operators(graph: Graph, host_of: Mapping[Rank, HostId], limits: Thresholds) -> Observations:
    """Turn the operators (O,) of a graph into observations of groups and of pairs of ranks that send.

    A class shares type, half-octave of size, number of ranks, and whether data leave a host. Of a message
    whose other end is not known all may be waiting: it compares nothing.
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
    time_us = np.where((is_pair | ~graph.is_message) & (graph.transfer_us > 0), graph.transfer_us, np.nan)
    slowness = np.log(time_us / np.maximum(np.nan_to_num(size), 1.0))
    excess = beyond_class(team, alike, slowness, limits.link_effect)
    return Observations(
        team, graph.operator_step, kind, graph.operator_group, size, time_us, excess, graph.types,
        graph.groups, tuple(members), np.arange(len(members)) < n_groups,
        tuple(np.where(crosses, "RDMA", "HCCS").tolist()),
    )  # fmt: skip
