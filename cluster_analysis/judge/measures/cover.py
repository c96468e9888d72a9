"""Which part is broken: the shortest description that covers the slow units of the network.

Every hypothesis - a link, a group, a rank's port (all its links inside the host), its NIC (all its RDMA
links), one direction of them, a pair of hosts, all groups over the same hosts, the uplink of a host - claims
what would be slow then. It is worth the slow units it explains, less one, less two for each that is healthy.
Of two that explain as much, it is the smaller part. A group shows its slowest link only: it may be slow
because of a part that it only touches, and acquits none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, get_args

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cluster_analysis.judge.measures.slow_units import Units

#: From the smallest to the largest.
PartName = Literal[
    "link", "group", "port", "port_tx", "port_rx", "nic", "nic_tx", "nic_rx", "host_pair", "groups", "uplink"
]

_UNKNOWN = -1
_SIZES: tuple[PartName, ...] = get_args(PartName)
_CARDS: tuple[tuple[PartName, PartName, PartName], ...] = (
    ("port", "port_tx", "port_rx"),
    ("nic", "nic_tx", "nic_rx"),
)


class Part(Struct, frozen=True):
    """What may be broken: `claimed` units (positions) are slow then, those of `perhaps` may be.

    `explained` are the slow ones that nothing larger explains. This may as well be the card or the port of
    the ranks `may_be_of`, whose traffic is no other.
    """

    name: PartName
    ranks: tuple[int, ...]
    hosts: tuple[int, ...]
    claimed: frozenset[int]
    perhaps: frozenset[int] = frozenset()
    explained: tuple[int, ...] = ()
    may_be_of: tuple[int, ...] = ()


class _Seen:
    """The units that compare something: the slow ones, those of each rank, and the hosts of their members."""

    def __init__(self, units: Units, host_of: Mapping[int, int]) -> None:
        known = np.flatnonzero(np.isfinite(units.level)).tolist()
        self.members = units.members
        self.is_group = units.is_group
        self.transport = units.transport
        self.slow = frozenset(at for at in known if units.slow[at])
        self.of_rank: dict[int, set[int]] = {}
        self.hosts: dict[int, list[int]] = {}
        for at in known if self.slow else ():
            self.hosts[at] = [host_of.get(rank, _UNKNOWN) for rank in units.members[at]]
            for rank in units.members[at]:
                self.of_rank.setdefault(rank, set()).add(at)

    def is_remote(self, at: int) -> bool:
        """Whether a unit's data leave a host."""
        return self.transport[at].upper() == "RDMA"

    def may_pass_by(self, at: int, rank: int) -> bool:
        """Whether what a group sends to other hosts may leave by others of a rank's host."""
        own = self.hosts[at][self.members[at].index(rank)]
        return bool(self.is_group[at]) and self.is_remote(at) and self.hosts[at].count(own) > 1


def cover(units: Units, host_of: Mapping[int, int]) -> list[Part]:
    """Explain the slow units by as few parts as possible.

    Args:
        units: all that were observed.
        host_of: host number of each rank whose host is known.
    """
    found: list[Part] = []
    seen = _Seen(units, host_of)
    left = set(seen.slow)
    while left:
        worth = {part: _worth(part, left, seen) for part in _parts(left, seen)}
        best = max(worth, key=lambda one: (worth[one], -_SIZES.index(one.name), one.ranks, one.hosts))
        explained = (best.claimed | best.perhaps) & left
        alike = {one.ranks[0] for one in worth if one.claimed <= best.claimed and len(one.ranks) == 1}
        may_be_of = tuple(sorted(alike)) if best.name == "link" else ()
        found.append(replace(best, explained=tuple(sorted(explained)), may_be_of=may_be_of))
        left -= explained
    return found


def _worth(part: Part, left: set[int], seen: _Seen) -> float:
    """What a part explains beyond its units by themselves; both directions of a link are one."""
    covered, n_healthy = (part.claimed | part.perhaps) & left, len(part.claimed - seen.slow)
    may_be = bool(part.claimed & left) and len({frozenset(seen.members[at]) for at in covered}) > 1
    if part.name == "uplink":
        may_be &= len({frozenset(seen.hosts[at]) for at in part.claimed}) > 1
    elif part.name not in ("host_pair", "groups"):
        may_be &= n_healthy == 0
    if part.name in ("link", "group") and not may_be:
        return 0.0
    return len(covered) - 1.0 - 2.0 * n_healthy if may_be else -np.inf


def _parts(left: set[int], seen: _Seen) -> Iterator[Part]:
    """Give each part that may be broken."""
    for ends in sorted({tuple(sorted(seen.members[at])) for at in left}):
        together = frozenset.intersection(*(frozenset(seen.of_rank[rank]) for rank in ends))
        same = frozenset(at for at in together & seen.slow if len(seen.members[at]) == len(ends))
        if len(ends) == 2:  # charged once for both directions
            yield Part("link", ends, (), same, together - same)
        else:
            yield Part("group", ends, (), same)
    for rank in sorted({rank for at in left for rank in seen.members[at]}):
        yield from _parts_of_rank(rank, seen)
    # Ranks whose hosts are not known may be of several: what they have in common is no host.
    far = {at: frozenset(hosts) for at, hosts in seen.hosts.items() if seen.is_remote(at)}
    among = {far[at] for at in left & far.keys() if len(far[at]) > 1 and _UNKNOWN not in far[at]}
    for hosts in sorted(among, key=sorted):
        exactly = frozenset(at for at, own in far.items() if own == hosts)
        wider = frozenset(at for at, own in far.items() if own > hosts)
        if len(hosts) == 2:
            yield Part("host_pair", (), tuple(sorted(hosts)), exactly, wider)
        else:
            everybody = sorted({rank for at in exactly for rank in seen.members[at]})
            yield Part("groups", tuple(everybody), (), exactly, wider)
    for host in sorted({host for at in left & far.keys() for host in far[at]} - {_UNKNOWN}):
        yield Part("uplink", (), (host,), frozenset(at for at, hosts in far.items() if host in hosts))


def _parts_of_rank(rank: int, seen: _Seen) -> Iterator[Part]:
    """Give its card and its port; links inside a host may share one, or each transport has its own."""
    own = seen.of_rank[rank]
    perhaps = frozenset(at for at in own if seen.may_pass_by(at, rank))
    inside = frozenset(at for at in own if not seen.is_remote(at))
    transports = sorted({seen.transport[at] for at in own})
    of_each = [frozenset(at for at in own - perhaps if seen.transport[at] == one) for one in transports]
    for claimed in filter(None, (inside, *of_each)):
        whole, sending, receiving = _CARDS[not claimed <= inside]
        yield Part(whole, (rank,), (), claimed, perhaps)
        for name, end in ((sending, 0), (receiving, -1)):
            one_way = frozenset(at for at in claimed if seen.is_group[at] or seen.members[at][end] == rank)
            if one_way:
                yield Part(name, (rank,), (), one_way, perhaps)
