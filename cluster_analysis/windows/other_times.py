"""Ranks whose files are not of the steps that the others made: they did not train together.

Members of a collective leave it at one time, whenever each of them came. Clocks of hosts differ, but by one
offset. A rank whose ends scatter as its starts do waited for others than these: its capture is of another job
or run, its steps are numbered otherwise, or a clock was set meanwhile. Where two ranks have the same times,
the files of one are a copy of the other's.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray, numbers
from cluster_analysis.numeric.grouped import medians_of, quantiles_of
from cluster_analysis.numeric.sorting import combined
from cluster_analysis.numeric.stats import median
from cluster_analysis.tables.hccl_names import OWN_GROUP_PREFIX
from cluster_analysis.tables.model import Topology
from cluster_analysis.tables.operations import COMMON_END
from cluster_analysis.thresholds.calls import CONNECTED_US, DRIFT, LEAST_TOLERANCE_US
from cluster_analysis.thresholds.common import MOSTLY, TOLERANCE_SHARE
from cluster_analysis.trace.alignment import connected
from cluster_analysis.trace.calls import Calls, calls_of
from cluster_analysis.trace.evidence import StepEvidence
from cluster_analysis.trace.matching import match_calls
from cluster_run.facts import Fact, fact
from cluster_run.ids import Rank, Step

_NEVER_US = 1e18
_UNSURE = -1
#: Sets of members that are told apart, and where the lead of each next one is taken from among those who are
#: in none: a set of most members is met in few looks, wherever it lies.
_MOST_SETS, _NEXT_LOOK = 16, 0.618


def at_other_times(
    steps: Sequence[StepEvidence], calls: pa.Table, teams: Set[tuple[Rank, ...]]
) -> tuple[Fact, ...]:
    """Return a note on ranks that were not in steps together with most others of their groups.

    Args:
        steps: all of them.
        calls: STEP_CALLS of all ranks.
        teams: members of groups that communicate.
    """
    apart = {(one.step, rank) for one in steps for rank in one.apart} | _after_a_clock_was_set(calls, teams)
    ranks, in_steps = (tuple(sorted({one[at] for one in apart})) for at in (1, 0))
    return (fact("other_times", ranks=ranks, steps=in_steps),) if apart else ()


def _after_a_clock_was_set(calls: pa.Table, teams: Set[tuple[Rank, ...]]) -> set[tuple[Step, Rank]]:
    """Return steps, and who ended them later behind the step before than its team, by a whole step."""
    if not calls.num_rows:
        return set()
    ranks, at = np.unique(calls["rank"].to_numpy(), return_inverse=True)
    steps, step = np.unique(calls["step"].to_numpy(), return_inverse=True)
    end = np.full((len(ranks), len(steps)), np.nan)
    end[at, step] = numbers(calls["end_ns"])
    took = np.diff(end)

    def is_far(some: FloatArray) -> BoolArray:
        return np.asarray(np.abs(some - median(some, 0)) > np.nan_to_num(np.abs(some), nan=np.inf).min(0))

    found: set[tuple[Step, Rank]] = set()
    for team in teams if is_far(took).any() else ():
        rows = np.flatnonzero(np.isin(ranks, team))
        for row, column in zip(*np.nonzero(is_far(took[rows])), strict=True) if len(rows) > 1 else ():
            found.add((Step(int(steps[column + 1])), Rank(int(ranks[rows[row]]))))
    return found


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


def ranks_apart(collectives: pa.Table, topology: Topology) -> tuple[Rank, ...]:
    """Return the ranks that left collectives with at most half of the ranks that groups connect them with.

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
        return ()
    group, rank = np.array(pairs).T
    key, own = group * n_ranks + rank, calls.group[order].astype(np.int64) * n_ranks + calls.rank[order]
    order, own = order[np.isin(own, key)], own[np.isin(own, key)]
    member = np.searchsorted(key, own)
    hosts = [topology.hosts.get(Rank(one), f"?{one}") for one in calls.ranks.tolist()]
    host = np.unique(hosts, return_inverse=True)[1]
    is_single = np.bincount(group[member]) <= np.bincount(group[np.unique(member)])
    _, compared = combined(group, np.where(is_single[group], host[rank], 0))
    _, operator = combined(compared[member], match_calls(calls)[0][order])
    left = _left_together(calls, (order, operator, member), (compared, rank), host)
    in_time, related = (connected(one[left >= 0], rank[left >= 0], n_ranks) for one in (left, compared))
    n_in_time, n_related = np.bincount(in_time)[in_time], np.bincount(related)[related]
    return tuple(map(Rank, calls.ranks[(2 * n_in_time <= n_related) & (n_related > 1)].tolist()))


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
