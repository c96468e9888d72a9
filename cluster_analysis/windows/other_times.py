"""Ranks whose files are not of the steps that the others made: they did not train together.

Members of a collective leave it at one time, whenever each of them came. Clocks of hosts differ, but by one
offset. A rank whose ends scatter as its starts do waited for others than these: its capture is of another job
or run, its steps are numbered otherwise, or a clock was set meanwhile. Here one step shows that. Where two
ranks have the same times, the files of one are a copy of the other's.
"""

from __future__ import annotations

from collections.abc import Iterator

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
from cluster_analysis.trace.calls import Calls, calls_of
from cluster_analysis.trace.matching import match_calls
from cluster_run.facts import Fact, fact
from cluster_run.ids import Rank

_NEVER_US = 1e18
_UNSURE = -1
#: Sets of members that are told apart, and where the lead of each next one is taken from among those who are
#: in none: a set of most members is met in few looks, wherever it lies.
_MOST_SETS, _NEXT_LOOK = 16, 0.618


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
    is_single = np.bincount(group[member]) <= np.bincount(group[np.unique(member)])
    _, compared = combined(group, np.where(is_single[group], host[rank], 0))
    matched = match_calls(calls)[0][order]
    _, operator = combined(compared[member], matched)
    left = _left_together(calls, (order, operator, member), (compared, rank), host)
    is_apart = in_minority(left, compared, rank, n_ranks)
    # From step to step hosts are compared by single calls, too.
    _, operator = combined(group[member], matched)
    since_us = pc.min(collectives["start_ns"]).as_py() / 1e3
    came_us, left_us = (since_us + one for one in _clocks(calls, (order, operator, member), (group, rank)))
    number = {name: at for at, name in enumerate(topology.groups)}
    groups = np.array([number.get(name, -1) for name in calls.groups])[group]
    clocks = pa.table([groups, calls.ranks[rank], came_us, left_us], schema=CLOCKS)
    return Departures(tuple(map(Rank, calls.ranks[is_apart].tolist())), clocks)


def in_minority(together: IntArray, related: IntArray, rank: IntArray, n_ranks: int) -> BoolArray:
    """Mark ranks (ranks,) that sets connect with at most half of those that groups connect them with.

    Args:
        together: the set that each member was in (M,); -1 for unknown.
        related: the group of each member (M,).
        rank: which rank it is (M,).
        n_ranks: how many there are.
    """
    is_known = together >= 0
    in_time, all_of = (connected(one[is_known], rank[is_known], n_ranks) for one in (together, related))
    n_in_time, n_related = np.bincount(in_time)[in_time], np.bincount(all_of)[all_of]
    return np.asarray((2 * n_in_time <= n_related) & (n_related > 1))


def _clocks(
    calls: Calls, collectives: tuple[IntArray, IntArray, IntArray], members: tuple[IntArray, IntArray]
) -> Iterator[FloatArray]:
    """Yield when members came to and when they left collectives that they share with the first of their
    group, by their own clocks, from the first call of the step on (M,)."""
    (order, operator, member), (group, rank) = collectives, members
    first = np.searchsorted(group, group)
    for time_us in (calls.start_us[order], calls.end_us[order]):
        later_us, _ = _scatter(time_us, operator, member, first)
        yield calls.origin_us[rank] + medians_of(time_us, member)[first] + later_us


def _left_together(
    calls: Calls,
    collectives: tuple[IntArray, IntArray, IntArray],
    members: tuple[IntArray, IntArray],
    host: IntArray,
) -> IntArray:
    """Number the sets of members that left their collectives together, for each member (M,).

    Members are compared with the first one of their group; those who differ, with one of themselves. Who is
    in none of so many sets left alone: to compare all with all would take hours for thousands. Who is near by
    the clock of one host may be there by chance: that is not sure.

    Args:
        collectives: which calls they are, the operator of each, and which member made it (V,).
        members: the number of each one's group, and the position of its rank (M,).
        host: which host each rank is of (ranks,).
    """
    (order, operator, member), (group, rank) = collectives, members
    span_us = np.zeros(len(host))
    np.maximum.at(span_us, calls.rank, calls.end_us)
    sets, waiting = np.arange(len(rank)), np.ones(len(rank), bool)
    for look in range(_MOST_SETS):
        some = np.flatnonzero(waiting)
        if not len(some):
            break
        some = some[np.argsort(group[some], kind="stable")]
        which, begin, count = np.unique(group[some], return_index=True, return_counts=True)
        leads = np.full(int(group.max()) + 1, len(rank) - 1)
        leads[which] = some[begin + (look * _NEXT_LOOK % 1.0 * count).astype(np.int64)]
        lead = leads[group]
        (_, starts_us), (offset_us, ends_us) = (
            _scatter(time[order], operator, member, lead) for time in (calls.start_us, calls.end_us)
        )
        offset_us += calls.origin_us[rank] - calls.origin_us[rank[lead]]
        offset_us = np.where(host[rank] == host[rank[lead]], np.abs(offset_us), 0.0)
        limit_us = LEAST_TOLERANCE_US + DRIFT * span_us[rank] + TOLERANCE_SHARE * starts_us
        is_near = waiting & (ends_us <= limit_us) & (offset_us <= CONNECTED_US)
        sets[is_near] = np.where(offset_us <= limit_us, lead, _UNSURE)[is_near]
        waiting &= ~is_near
        waiting[lead[waiting]] = False
    return sets


def _scatter(
    time_us: FloatArray, operator: IntArray, member: IntArray, lead: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return how much later than its lead's each member's calls are, and how far most lie from that."""
    is_lead = lead[member] == member
    reference = np.full(int(operator.max()) + 1, np.nan)
    reference[operator[is_lead]] = time_us[is_lead]
    later = time_us - reference[operator]
    offset = medians_of(later, member, len(lead))
    apart = np.nan_to_num(np.abs(later - offset[member]), nan=_NEVER_US)
    return offset, quantiles_of(apart, member, MOSTLY, len(lead))
