"""Ranks whose files are not of the steps that the others made: they did not train together.

Members of a collective leave it at one time, whenever each of them came. Clocks of hosts differ, but by one
offset. A rank whose ends scatter as its starts do waited for others than these: its capture is of another job
or run, its steps are numbered otherwise, or a clock was set meanwhile. Here one step shows that. Where two
ranks have the same times, the files of one are a copy of the other's.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, field

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.grouped import medians_of, quantiles_of
from cluster_analysis.numeric.sorting import combined
from cluster_analysis.tables.hccl_names import OWN_GROUP_PREFIX
from cluster_analysis.tables.model import Topology
from cluster_analysis.tables.operations import COMMON_END
from cluster_analysis.tables.schema import CLOCKS
from cluster_analysis.thresholds.calls import CONNECTED_US, DRIFT, LEAST_TOLERANCE_US
from cluster_analysis.thresholds.common import MOSTLY, TOLERANCE_SHARE
from cluster_analysis.trace.alignment import connected
from cluster_analysis.trace.calls import calls_of
from cluster_analysis.trace.matching import match_calls
from cluster_run.facts import Fact, fact
from cluster_run.ids import Rank

_NEVER_US = 1e18
_UNSURE = -1


class Departures(Struct, frozen=True):
    """When ranks left the collectives of a step: in which ranks are `apart`, and CLOCKS."""

    apart: tuple[Rank, ...] = ()
    clocks: pa.Table = field(default_factory=CLOCKS.empty_table)


def of_same_times(steps: pa.Table) -> tuple[Fact, ...]:
    """Return a note for ranks whose step times (STEPS) equal those of another rank to the last digit.

    If half of them or more would be copies, the times were not measured: a program wrote them.
    """
    own: dict[int, list[tuple[object, ...]]] = {}
    for rank, *row in zip(*steps.to_pydict().values(), strict=True):
        if any(row[1:]):
            own.setdefault(rank, []).append(tuple(row))
    alike: dict[object, list[int]] = {}
    for rank, rows in sorted(own.items()):
        alike.setdefault(frozenset(rows), []).append(rank)
    if 2 * len(alike) <= len(own):
        return ()
    return tuple(fact("same_times", ranks=tuple(one)) for one in alike.values() if len(one) > 1)


def departures(collectives: pa.Table, topology: Topology) -> Departures:
    """Return which ranks left collectives with at most half of the ranks that groups connect them with.

    A single call tells nothing about clocks of two hosts: there ranks of each host are compared.

    Args:
        collectives: COLLECTIVES rows of one step.
        topology: groups with all their members, and hosts: ranks of one have one clock.
    """
    calls = calls_of(collectives)
    is_named = np.array([not one.startswith(OWN_GROUP_PREFIX) for one in calls.groups], bool)
    order = calls.by_group[np.isin(calls.types, COMMON_END)[calls.kind[calls.by_group]]]
    order = order[is_named[calls.group[order]]]
    # A rank whose file names no group says nothing of the times at which it left one.
    n_ranks = len(calls.ranks)
    place = {int(calls.ranks[at]): at for at in np.unique(calls.rank[order]).tolist()}
    known = ((at, topology.groups.get(calls.groups[at])) for at in np.unique(calls.group[order]).tolist())
    pairs = [(at, place[one]) for at, group in known if group for one in sorted(place.keys() & group.ranks)]
    if not pairs or not calls.has_clock:
        return Departures()
    group, rank = np.array(pairs).T
    key, own = group * n_ranks + rank, calls.group[order].astype(np.int64) * n_ranks + calls.rank[order]
    order, own = order[np.isin(own, key)], own[np.isin(own, key)]
    member = np.searchsorted(key, own)
    hosts = [topology.hosts.get(Rank(one), f"?{one}") for one in calls.ranks.tolist()]
    host = np.unique(hosts, return_inverse=True)[1]
    matched = match_calls(calls)[0][order]
    _, operator = combined(group[member], matched)
    (came_us, starts_us), (left_us, ends_us) = (
        _usual(time_us[order], operator, member, len(rank)) for time_us in (calls.start_us, calls.end_us)
    )
    # Members of one host have one clock; a single call tells nothing about those of two.
    here = combined(group, host[rank])[1]
    later_us = left_us + calls.origin_us[rank]
    later_us = np.abs(later_us - medians_of(later_us, here)[here])
    span_us = np.zeros(n_ranks)
    np.maximum.at(span_us, calls.rank, calls.end_us)
    limit_us = LEAST_TOLERANCE_US + DRIFT * span_us[rank] + TOLERANCE_SHARE * starts_us
    is_near = (ends_us <= limit_us) & (later_us <= CONNECTED_US)
    is_single = np.bincount(group[member]) <= np.bincount(group[np.unique(member)])
    related = np.where(
        is_near & (later_us > limit_us),
        _UNSURE,
        combined(group, np.where(is_single[group], host[rank], 0))[1],
    )
    is_apart = in_minority(is_near, related, rank, n_ranks)
    since_us = pc.min(collectives["start_ns"]).as_py() / 1e3 + calls.origin_us[rank]
    number = {name: at for at, name in enumerate(topology.groups)}
    groups = np.array([number.get(name, -1) for name in calls.groups])[group]
    clocks = pa.table([groups, calls.ranks[rank], since_us + came_us, since_us + left_us], schema=CLOCKS)
    return Departures(tuple(map(Rank, calls.ranks[is_apart].tolist())), clocks)


def in_minority(is_near: BoolArray, related: IntArray, rank: IntArray, n_ranks: int) -> BoolArray:
    """Mark ranks (ranks,) that are near at most half of those that groups connect them with.

    Args:
        is_near: whether a member is near most others of its group (M,).
        related: the group of each member (M,); -1 where nothing is known.
        rank: which rank it is (M,).
        n_ranks: how many there are.
    """
    together = np.where(is_near, related, related.max(initial=-1) + 1 + np.arange(len(related)))
    is_known = related >= 0
    in_time, all_of = (connected(one[is_known], rank[is_known], n_ranks) for one in (together, related))
    n_in_time, n_related = np.bincount(in_time)[in_time], np.bincount(all_of)[all_of]
    return np.asarray((2 * n_in_time <= n_related) & (n_related > 1))


def _usual(
    time_us: FloatArray, operator: IntArray, member: IntArray, n_members: int
) -> tuple[FloatArray, FloatArray]:
    """Return each member's usual time in the calls of its group, and how far most of its calls lie from it.

    Usual is its median, if it makes all calls; compared is with the median of all members' times since their
    own, so that no clock's offset counts, nor a few members that are apart.
    """
    own = medians_of(time_us, member, n_members)
    since = time_us - own[member]
    later = since - medians_of(since, operator)[operator]
    offset = medians_of(later, member, n_members)
    apart = np.nan_to_num(np.abs(later - offset[member]), nan=_NEVER_US)
    return own + offset, quantiles_of(apart, member, MOSTLY, n_members)
