"""Which part is broken: as few parts of the network as explain all of its slow units.

Every hypothesis - a link, a group, a rank's port (its links inside the host) or NIC (its RDMA links), a pair
of hosts, all groups over the same hosts, a rail (the NICs at one place of all hosts, which share a switch),
the uplink of a host or of the hosts of a rack, and one direction of each of these - claims what would be slow
then. Its worth is the number of slow units it explains, less one, less two for each healthy unit that it
claims; a healthy one acquits a port or a NIC. Of two parts of equal worth the smaller one counts. A group
shows its slowest link only: it may be slow because of a part that it only touches, and acquits none.

No file names racks. Hosts that healthy links join have no slow part between them: a rack whose uplink is slow
is what these leave together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import Literal, get_args

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cluster_analysis.judge.measures.slow_units import Units
from cluster_analysis.thresholds.common import HALFWAY, TOLERANCE_SHARE, TWICE
from cluster_analysis.thresholds.judging import LINK_EFFECT, PRICE_OF_HEALTHY, PRICE_OF_PART

#: From the smallest to the largest.
PartName = Literal[
    "link", "group", "port", "port_tx", "port_rx", "nic", "nic_tx", "nic_rx", "host_pair", "host_pair_tx",
    "groups", "uplink", "uplink_tx", "uplink_rx", "card", "card_tx", "card_rx", "rail",
]  # fmt: skip

_UNKNOWN = -1
_SIZES: tuple[PartName, ...] = get_args(PartName)
_PORT: tuple[PartName, ...] = ("port", "port_tx", "port_rx")
_NIC: tuple[PartName, ...] = ("nic", "nic_tx", "nic_rx")
_UPLINK: tuple[PartName, ...] = ("uplink", "uplink_tx", "uplink_rx")
_CARD: tuple[PartName, ...] = ("card", "card_tx", "card_rx")


class Part(Struct, frozen=True):
    """A part that may be broken: `claimed` units (positions) are slow then, those of `perhaps` may be.

    `explained` are the slow ones that nothing larger explains. This may as well be the card or the port of
    the ranks `may_be_of`, or the uplink of the hosts `may_be_hosts`, whose traffic is no other. Or the
    network is built so (`may_be_built`): all that joins racks of as many hosts is slow alike, both ways.
    """

    name: PartName
    ranks: tuple[int, ...]
    hosts: tuple[int, ...]
    claimed: frozenset[int]
    perhaps: frozenset[int] = frozenset()
    explained: tuple[int, ...] = ()
    may_be_of: tuple[int, ...] = ()
    may_be_hosts: tuple[int, ...] = ()
    may_be_built: bool = False

    def worth(self, left: set[int], slow: frozenset[int]) -> float:
        """The remaining slow units that it explains."""
        n_healthy = len(self.claimed - slow)
        if not self.claimed & left or (n_healthy and self.name in (*_PORT, *_NIC)):
            return -np.inf
        return len((self.claimed | self.perhaps) & left) - PRICE_OF_PART - PRICE_OF_HEALTHY * n_healthy


def cover(units: Units, host_of: Mapping[int, int]) -> list[Part]:
    """Explain the slow units by as few parts as possible.

    Args:
        host_of: host number of each rank whose host is known.
    """
    slow = frozenset(np.flatnonzero(units.slow).tolist())
    parts = sorted(_parts(units, slow, host_of), key=lambda one: (one.ranks, one.hosts), reverse=True)
    by_n_hosts = [*_UPLINK, *_CARD]
    parts.sort(
        key=lambda one: (max(1, len(one.hosts)) if one.name in by_n_hosts else 0, _SIZES.index(one.name))
    )
    holding: dict[int, list[int]] = {}
    for number, part in enumerate(parts):
        for at in (part.claimed | part.perhaps) & slow:
            holding.setdefault(at, []).append(number)
    found, left = [], set(slow)
    worth = np.array([part.worth(left, slow) for part in parts])
    while left:
        taken = int(np.argmax(worth))  # the first, and smallest, of equal ones
        best = parts[taken]
        explained = (best.claimed | best.perhaps) & left
        if best.name not in ("link", "group"):
            # It slows all alike: what is far slower than their middle is slow for another reason, too.
            most = TWICE * float(np.median(units.level[[*explained]]))
            explained = frozenset(at for at in explained if units.level[at] <= most)
        touched = {number for at in explained for number in holding[at]}
        ports = [parts[number] for number in touched if parts[number].name in (*_PORT, *_NIC)]
        for other in (parts[number] for number in touched if best.name in _CARD):
            if other.name in _CARD and other.claimed == best.claimed and other.ranks != best.ranks:
                best = replace(best, name="link", ranks=tuple(sorted({*best.ranks, *other.ranks})))
                ports = [one for one in ports if one.claimed <= best.claimed]
        alike = {one.ranks[0] for one in ports if best.name == "link" and one.claimed <= best.claimed}
        same = [parts[number].hosts for number in touched if parts[number].claimed == best.claimed]
        hosts = {host for one in same for host in one if len(one) == len(best.hosts)} - {*best.hosts}
        found.append(
            replace(
                best,
                explained=tuple(sorted(explained)),
                may_be_of=tuple(sorted(alike)),
                may_be_hosts=tuple(sorted(hosts)),
            )
        )
        left -= explained
        for number in touched:
            worth[number] = parts[number].worth(left, slow)
        worth[taken] = -np.inf
    return found


def _parts(units: Units, slow: frozenset[int], host_of: Mapping[int, int]) -> Iterator[Part]:
    """Give each part that may be broken, of those that slow units touch."""
    known = np.flatnonzero(np.isfinite(units.level)).tolist() if slow else []
    of_rank: dict[int, set[int]] = {}
    for at in known:
        for rank in units.members[at]:
            of_rank.setdefault(rank, set()).add(at)
    for ends in {tuple(sorted(units.members[at])) for at in slow}:
        together = frozenset[int].intersection(*(frozenset(of_rank[rank]) for rank in ends))
        same = frozenset(at for at in together & slow if len(units.members[at]) == len(ends))
        # Both directions of a link are one.
        yield Part("link" if len(ends) == 2 else "group", ends, (), same, together - same)
    hosts = {at: [host_of.get(rank, _UNKNOWN) for rank in units.members[at]] for at in known}
    # Ranks with unknown hosts have no host in common.
    remote = {at: frozenset(own) for at, own in hosts.items() if len(set(own)) > 1 and _UNKNOWN not in own}
    for rank in {rank for at in slow for rank in units.members[at]}:
        own, host = of_rank[rank], host_of.get(rank, _UNKNOWN)
        # Other ranks of the host may send a group's data to other hosts.
        may = frozenset(at for at in own if units.is_group[at] and len(set(hosts[at])) > 1)
        perhaps = frozenset(at for at in may if hosts[at].count(host) > 1)
        for carrier in sorted({units.transport[at] for at in own}):
            claimed = frozenset(at for at in own - perhaps if units.transport[at] == carrier)
            names = _NIC if carrier.upper() == "RDMA" else _PORT
            out, into = (_shown(units, slow, claimed, rank, end) for end in (0, -1))
            for name, shown in zip(names, (out | into, out, into), strict=True):
                yield Part(name, (rank,), (), shown, perhaps)
    yield from _cards_and_rails(units, slow, of_rank, host_of)
    for carrier in {units.transport[at] for at in slow & remote.keys()}:
        of_carrier = {at: own for at, own in remote.items() if units.transport[at] == carrier}
        yield from _parts_of_hosts(units, slow, hosts, of_carrier)


def _shown(
    units: Units, slow: frozenset[int], claimed: frozenset[int], rank: int, end: int
) -> frozenset[int]:
    """Which units show how fast a rank's port is in one direction: the slow ones, and those it alone slows.

    Links that share a port have equal parts of it, and one that is alone has all of them.
    """
    own = [at for at in claimed if units.is_group[at] or units.members[at][end] == rank]
    parts = [float(units.rate[at]) for at in own if at in slow and not units.is_group[at]]
    most = (1.0 + LINK_EFFECT) * len(parts) * min(parts, default=0.0)
    return frozenset(at for at in own if at in slow or units.rate[at] > most)


def _cards_and_rails(
    units: Units, slow: frozenset[int], of_rank: Mapping[int, set[int]], host_of: Mapping[int, int]
) -> Iterator[Part]:
    """Give each card that two neighbouring ranks of a host share, and each rail: it slows all their links."""
    by_host: dict[int, list[int]] = {}
    for rank in sorted(of_rank.keys() & host_of.keys()):
        by_host.setdefault(host_of[rank], []).append(rank)
    by_rdma = {at for at, transport in enumerate(units.transport) if transport.upper() == "RDMA"}
    for ranks in by_host.values():
        for pair in zip(ranks[::2], ranks[1::2], strict=False):
            for name, end in zip(_CARD, (slice(None), slice(1), slice(-1, None)), strict=True):
                of_each = [
                    {at for at in of_rank[rank] & by_rdma if rank in units.members[at][end]} for rank in pair
                ]
                claimed = frozenset(at for own in of_each for at in own if not units.is_group[at])
                are_all = all(own and own <= slow for own in of_each) and claimed
                if are_all and np.ptp([np.median(units.level[[*one]]) for one in of_each]) <= TOLERANCE_SHARE:
                    yield Part(name, pair, (), claimed)
    for rail in zip(*by_host.values(), strict=False):
        joined = (at for rank in rail for at in of_rank[rank] if {*units.members[at]} <= {*rail})
        claimed = frozenset(at for at in joined if not units.is_group[at])
        if claimed and claimed <= slow:
            yield Part("rail", rail, (), claimed)


def _parts_of_hosts(
    units: Units, slow: frozenset[int], hosts: Mapping[int, list[int]], remote: Mapping[int, frozenset[int]]
) -> Iterator[Part]:
    """Give the parts between hosts that slow units touch: pairs, groups, uplinks of hosts and of racks.

    `hosts` are those of each member of each known unit, `remote` which hosts a unit joins.
    """
    leaving: dict[int, set[int]] = {}
    arriving: dict[int, set[int]] = {}
    joining: dict[frozenset[int], set[int]] = {}
    for at, own in remote.items():
        joining.setdefault(own, set()).add(at)
        for host in own if units.is_group[at] else hosts[at][:1]:
            leaving.setdefault(host, set()).add(at)
        for host in own if units.is_group[at] else hosts[at][-1:]:
            arriving.setdefault(host, set()).add(at)
    of_slow = {remote[at] for at in slow & remote.keys()}
    racks = _racks(joining, leaving, slow)
    between = frozenset(at for at, own in remote.items() if not any(own <= one for one in racks))
    sizes = [len(one) for one in racks if len(one) > 1]
    # Of racks that are unlike one may be cut off, and a part far slower than the others is no plan.
    are_alike = len(sizes) > 1 and len({*sizes}) == 1 and frozenset() < between <= slow
    most = TWICE * float(np.median(units.level[[*between]])) if are_alike else -np.inf

    def is_built(claimed: frozenset[int]) -> bool:
        return bool(claimed) and claimed <= between and bool(np.median(units.level[[*claimed]]) <= most)

    for those in of_slow:
        exactly = frozenset(joining[those])
        wider = frozenset[int]().union(*(at for own, at in joining.items() if own > those))
        if len(those) > 2:
            ranks = {rank for at in exactly for rank in units.members[at]}
            yield Part("groups", tuple(sorted(ranks)), (), exactly, wider)
            continue
        yield Part("host_pair", (), tuple(sorted(those)), exactly, wider, may_be_built=is_built(exactly))
        for one, other in permutations(sorted(those)):
            yield Part("host_pair_tx", (), (one, other), exactly & leaving.get(one, set()), wider)
    all_hosts = frozenset[int]().union(*racks)
    cuts = {min(one, all_hosts - one, key=len) for one in racks if 1 < len(one) < len(all_hosts)}
    # Of hosts and all others the fewer stand for both: the same uplink joins them.
    for inside in {*(frozenset({host}) for own in of_slow for host in own), *cuts}:
        out, into = (
            frozenset(at for host in inside for at in ways.get(host, ()) if not remote[at] <= inside)
            for ways in (leaving, arriving)
        )
        # What slows both ways slows them alike: else each has a reason of its own.
        levels = [float(np.median(units.level[[*one]])) for one in (out & slow, into & slow) if one]
        both = out | into if min(levels, default=0.0) >= HALFWAY * max(levels, default=0.0) else frozenset()
        for name, claimed in zip(_UPLINK, (both, out, into), strict=True):
            yield Part(name, (), tuple(sorted(inside)), claimed, may_be_built=is_built(claimed))


def _racks(
    joining: Mapping[frozenset[int], set[int]], leaving: Mapping[int, set[int]], slow: frozenset[int]
) -> list[frozenset[int]]:
    """Hosts joined by pairs whose links are mostly healthy both ways."""
    racks = [frozenset({host}) for host in frozenset[int]().union(*joining)]
    for pair, own in joining.items():
        each_way = [own & leaving.get(host, set()) for host in pair]
        if len(pair) == 2 and all(2 * len(way & slow) <= len(way) for way in each_way):
            joined = [one for one in racks if one & pair]
            racks = [*(one for one in racks if not one & pair), frozenset[int]().union(*joined)]
    return racks
