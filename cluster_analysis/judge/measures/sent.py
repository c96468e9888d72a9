"""What members of a group sent, as observations of links: where no matrix tells of single ones.

An operator says how long its slowest link took. Of groups that reach other hosts all may use the slow part,
and some groups have no like: there each member is held against the others by what it sent itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from cluster_analysis.judge.measures.slow_units import Observations, beyond_class
from cluster_analysis.numeric.sorting import combined, first_positions, half_octaves
from cluster_analysis.thresholds.limits import Thresholds
from cluster_analysis.trace.calls import codes
from cluster_run.ids import HostId, Rank, Step


def observe_sent(
    sent: pa.Table,
    teams: Observations,
    steps: Sequence[Step],
    host_of: Mapping[Rank, HostId],
    limits: Thresholds,
) -> Observations:
    """Put what members sent in the place of operators of groups, where these compare too little.

    A class shares transport, type, half-octave of size, and number of ranks.

    Args:
        sent: SENT of the job.
        teams: what its operators show.
        steps: of the job, in order.
        host_of: host of each rank that is known.
        limits: the least effect.
    """
    (carriers, carrier), (kinds, kind), (groups, group) = (
        codes(sent[name]) for name in ("transport", "op_type", "group")
    )
    is_remote = np.array([one.upper() == "RDMA" for one in carriers], bool)[carrier]
    is_compared = teams.is_group[teams.unit] & np.isfinite(teams.excess)
    judged = {teams.groups[at] for at in np.unique(teams.group[is_compared])}
    judged -= {groups[at] for at in np.unique(group[is_remote])}
    team_of = {name: at for at, name in enumerate(teams.groups) if name not in judged}
    team = np.array([team_of.get(name, -1) for name in groups], np.int64)[group]
    kind_of = {name: at for at, name in enumerate(teams.kinds)}
    kind = np.array([kind_of.get(name, -1) for name in kinds], np.int64)[kind]
    rows = np.flatnonzero((team >= 0) & (kind >= 0))
    if not len(rows):
        return teams
    carrier, team, kind = carrier[rows], team[rows], kind[rows]
    size, time, rank, step = (
        np.asarray(sent[name].to_numpy())[rows] for name in ("size_bytes", "time_us", "rank", "step")
    )
    unit = combined(carrier, team, rank)[1]
    n_members = np.array([len(one) for one in teams.members], np.int32)[team]
    alike = carrier, kind, half_octaves(size), n_members
    excess = beyond_class(unit, alike, np.log(time / size), limits.link_effect)
    first = first_positions(unit)
    owner = combined(carrier[first], team[first])[1]
    ends = [(0, 0)] * len(first)
    for one in range(int(owner.max()) + 1):
        own = np.flatnonzero(owner == one)
        at = first[own]
        pairs = _pairs(
            rank[at].tolist(), teams.members[team[at[0]]], host_of, is_remote=bool(is_remote[rows[at[0]]])
        )
        for place, pair in zip(own.tolist(), pairs, strict=True):
            ends[place] = pair
    kept = np.flatnonzero(~(np.isin(teams.group, team) & teams.is_group[teams.unit]))
    n = len(ends)
    own_rows = {
        "unit": len(teams.members) + unit, "step": np.searchsorted(steps, step), "kind": kind, "group": team,
        "size_bytes": size, "time_us": time, "excess": excess,
    }  # fmt: skip
    return replace(
        teams,
        **{name: np.r_[getattr(teams, name)[kept], values] for name, values in own_rows.items()},
        members=(*teams.members, *ends),
        is_group=np.r_[teams.is_group, np.zeros(n, bool)],
        transport=(*teams.transport, *(carriers[at] for at in carrier[first].tolist())),
        is_guess=np.r_[teams.is_guess, np.ones(n, bool)],
    )


def _pairs(
    senders: Sequence[int], members: tuple[int, ...], host_of: Mapping[Rank, HostId], *, is_remote: bool
) -> list[tuple[int, int]]:
    """Whom each of a group's senders over one transport is taken to send to: the next one, as in a ring.

    Where ranks send to other hosts whose next one is on their own, rings join the members at the same place
    of each host.
    """
    ring = dict(zip(members, (*members[1:], *members[:1]), strict=True))
    by_host: dict[HostId | None, list[int]] = {}
    for rank in members:
        by_host.setdefault(host_of.get(Rank(rank)), []).append(rank)
    is_inside = any(host_of.get(Rank(one)) == host_of.get(Rank(ring[one])) for one in senders)
    if is_remote and is_inside and len(by_host) > 1:
        hosts = list(by_host.values())
        for own, other in zip(hosts, (*hosts[1:], *hosts[:1]), strict=True):
            ring |= {rank: other[at % len(other)] for at, rank in enumerate(own)}
    return [(rank, ring[rank]) for rank in senders]
