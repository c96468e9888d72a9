"""Steps of one number that ranks of one host were in at other times: they are not the same iterations.

A rank counts its steps otherwise, or its capture is of another run. Ranks of a host have one clock, and
members of a group are in a step together.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import BoolArray, FloatArray
from cluster_analysis.numeric.columns import numbers
from cluster_analysis.tables.model import Topology
from cluster_analysis.thresholds.common import HALFWAY
from cluster_run.facts import Fact, fact
from cluster_run.ids import HostId


def at_other_times(calls: pa.Table, topology: Topology) -> tuple[Fact, ...]:
    """Return a note on ranks that were in no step when most members of their group on their host were in it.

    Args:
        calls: STEP_CALLS of all ranks.
        topology: groups and hosts.
    """
    ranks, at = np.unique(calls["rank"].to_numpy(), return_inverse=True)
    steps, step = np.unique(calls["step"].to_numpy(), return_inverse=True)
    begin, end = np.full((2, len(ranks), len(steps)), np.nan)
    begin[at, step], end[at, step] = numbers(calls["start_ns"]), numbers(calls["end_ns"])
    place = {rank: at for at, rank in enumerate(ranks.tolist())}
    teams: dict[HostId, set[frozenset[int]]] = {}
    for group in topology.groups.values():
        by_host: dict[HostId, list[int]] = {}
        for rank in set(group.ranks) & topology.hosts.keys() & place.keys():
            by_host.setdefault(topology.hosts[rank], []).append(place[int(rank)])
        for host, own in by_host.items():
            teams.setdefault(host, set()).add(frozenset(own))
    apart: set[int] = set()
    for of_host in teams.values():
        for team in (np.array(sorted(one)) for one in of_host if not any(one < other for other in of_host)):
            apart.update(ranks[team[_are_apart(begin[team], end[team])]].tolist())
    return (fact("other_times", ranks=tuple(sorted(apart))),) if apart else ()


def _are_apart(begin: FloatArray, end: FloatArray) -> BoolArray:
    """Return which ranks share less than half of their time with most others in each step (ranks, steps)."""
    shared = np.minimum(end[:, None], end) - np.maximum(begin[:, None], begin)
    shortest = np.minimum((end - begin)[:, None], end - begin)
    n_steps = np.isfinite(shared).sum(axis=-1)
    n_apart = (shared < HALFWAY * shortest).sum(axis=-1)
    return np.asarray(2 * ((n_apart == n_steps) & (n_steps > 0)).sum(axis=-1) > len(begin) - 1)
