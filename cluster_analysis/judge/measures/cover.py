"""Which part is broken: the shortest description that covers the slow links.

Every hypothesis - a link, a rank's port (all its links inside the host), its NIC (all its RDMA links, or
one direction), a pair of hosts, the uplink of a host - claims a set of links. It is worth the slow
links it explains, less two for each link it claims that is healthy. Of two that explain as much, it is the
smaller part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cluster_analysis.thresholds.common import FEWEST_PEERS
from cluster_run.findings import FaultKind

Part = Literal["link", "port", "nic", "nic_tx", "nic_rx", "host_pair", "uplink"]
Pair = tuple[int, int]

#: From the smallest to the largest.
_SIZES: tuple[Part, ...] = ("link", "port", "nic", "nic_tx", "nic_rx", "host_pair", "uplink")
KIND_OF_PART: Mapping[Part, FaultKind] = {
    "link": "slow_link",
    "port": "slow_nic",
    "nic": "slow_nic",
    "nic_tx": "slow_nic",
    "nic_rx": "slow_nic",
    "host_pair": "slow_host_pair",
    "uplink": "slow_uplink",
}


@dataclass(frozen=True)
class Cover:
    """One broken part: its links that are slow, and whether the traffic could tell it from others."""

    part: Part
    ranks: tuple[int, ...]
    hosts: tuple[int, ...]
    links: tuple[Pair, ...]
    is_separable: bool


def cover(
    slow: frozenset[Pair], seen: Mapping[Pair, str], host_of: Mapping[int, int], *, is_remote: bool
) -> list[Cover]:
    """Explain the slow directed links of one class of transport by as few parts as possible.

    Args:
        slow: (src, dst) that are slow.
        seen: all (src, dst) that were observed, slow ones included, and their transports.
        host_of: host number of each rank.
        is_remote: whether the links leave hosts.
    """
    left = set(slow)
    found: list[Cover] = []
    while left:
        best = max(
            _hypotheses(left, seen, slow, host_of, is_remote=is_remote),
            key=lambda one: (one[0], -_SIZES.index(one[1].part), one[1].ranks, one[1].hosts),
        )[1]
        left -= set(best.links)
        found.append(best)
    return found


def _hypotheses(
    left: set[Pair],
    seen: Mapping[Pair, str],
    slow: frozenset[Pair],
    host_of: Mapping[int, int],
    *,
    is_remote: bool,
) -> list[tuple[float, Cover]]:
    options: list[tuple[float, Cover]] = []
    ends = sorted({rank for pair in left for rank in pair})
    claims: list[tuple[Part, tuple[int, ...], tuple[int, ...], set[Pair]]] = []
    for one, other in sorted({(min(pair), max(pair)) for pair in left}):
        claims.append(
            ("link", (one, other), (), {p for p in seen if p in ((one, other), (other, one)) and p in slow})
        )
    for rank in ends:
        for carried in _carried(rank, seen):
            out = {pair for pair in carried if pair[0] == rank}
            into = {pair for pair in carried if pair[1] == rank}
            claims += [
                ("nic" if is_remote else "port", (rank,), (), out | into),
                ("nic_tx", (rank,), (), out),
                ("nic_rx", (rank,), (), into),
            ]
    if is_remote:
        pairs = {_hosts(pair, host_of) for pair in left}
        claims += [
            ("host_pair", (), both, {p for p in seen if _hosts(p, host_of) == both}) for both in sorted(pairs)
        ]
        hosts = sorted({host for both in pairs for host in both})
        claims += [("uplink", (), (host,), {p for p in seen if host in _hosts(p, host_of)}) for host in hosts]
    for part, ranks, hosts_named, claimed in claims:
        covered = claimed & left
        good = len(claimed - slow)
        if not covered or (part != "link" and not _allowed(part, claimed, covered, good, host_of)):
            continue
        # A link is charged once for both directions.
        worth = len(covered) if part != "link" else 1
        score = worth - 1.0 - 2.0 * good
        separable = part == "link" or len(claimed) >= FEWEST_PEERS
        options.append((score, Cover(part, ranks, hosts_named, tuple(sorted(covered)), separable)))
    return options


def _carried(rank: int, seen: Mapping[Pair, str]) -> list[set[Pair]]:
    """A rank's links that may share a part: all of them, or those of one transport, with ports of its own."""
    own = {pair for pair in seen if rank in pair}
    transports = sorted({seen[pair] for pair in own})
    by_transport = [{pair for pair in own if seen[pair] == one} for one in transports]
    return [own, *by_transport] if len(transports) > 1 else [own]


def _hosts(pair: Pair, host_of: Mapping[int, int]) -> tuple[int, int]:
    one, other = sorted((host_of.get(pair[0], -1), host_of.get(pair[1], -1)))
    return one, other


def _allowed(
    part: Part, claimed: set[Pair], covered: set[Pair], good: int, host_of: Mapping[int, int]
) -> bool:
    if len(covered) < 2 or (part in ("port", "nic", "nic_tx", "nic_rx") and good):
        return False
    partners = {frozenset(pair) for pair in claimed}
    if len(partners) < 2:
        return False
    if part in ("nic_tx", "nic_rx"):
        return len(covered) >= 2
    if part == "uplink":
        return (
            len({_hosts(pair, host_of) for pair in claimed}) >= 2 and len({r for p in covered for r in p}) > 2
        )
    if part == "host_pair":
        return len({rank for pair in covered for rank in pair}) > 2
    return True
