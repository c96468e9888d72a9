"""Which part is broken: the shortest description that covers the slow links.

Every hypothesis - a link, a rank's port (all its links inside the host), its NIC (all its RDMA links, or
one direction), a pair of hosts, the uplink of a host - claims a set of links. It is worth the slow
links it explains, less two for each link it claims that is healthy. Of two that explain as much, it is the
smaller part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from cluster_analysis.thresholds.common import FEWEST_PEERS
from cluster_run.findings import FaultKind

Part = Literal["link", "port", "nic", "nic_tx", "nic_rx", "host_pair", "uplink"]
Pair = tuple[int, int]

_UNKNOWN = -1
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
        host_of: host number of each rank whose host is known.
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
) -> Iterator[tuple[float, Cover]]:
    """Give parts that would explain links that are `left`, and what each explanation is worth."""
    for part, ranks, hosts, claimed in _claims(left, seen, slow, host_of, is_remote=is_remote):
        covered, n_healthy = claimed & left, len(claimed - slow)
        if part == "link":  # charged once for both directions
            yield 0.0, Cover(part, ranks, hosts, tuple(sorted(covered)), is_separable=True)
        elif _may_be_broken(part, claimed, covered, n_healthy, host_of):
            separable = len(claimed) >= FEWEST_PEERS
            yield (
                len(covered) - 1.0 - 2.0 * n_healthy,
                Cover(part, ranks, hosts, tuple(sorted(covered)), separable),
            )


def _claims(
    left: set[Pair],
    seen: Mapping[Pair, str],
    slow: frozenset[Pair],
    host_of: Mapping[int, int],
    *,
    is_remote: bool,
) -> Iterator[tuple[Part, tuple[int, ...], tuple[int, ...], set[Pair]]]:
    """Give each part that may be broken, its ranks or hosts, and all links that would be slow then."""
    for one, other in sorted({(min(pair), max(pair)) for pair in left}):
        yield "link", (one, other), (), {(one, other), (other, one)} & slow
    for rank in sorted({rank for pair in left for rank in pair}):
        for carried in _carried(rank, seen):
            yield "nic" if is_remote else "port", (rank,), (), carried
            yield "nic_tx", (rank,), (), {pair for pair in carried if pair[0] == rank}
            yield "nic_rx", (rank,), (), {pair for pair in carried if pair[1] == rank}
    if is_remote:
        # Ranks whose hosts are not known may be of several: what they have in common is no host.
        pairs = sorted({_hosts(pair, host_of) for pair in left})
        for both in (pair for pair in pairs if _UNKNOWN not in pair):
            yield "host_pair", (), both, {pair for pair in seen if _hosts(pair, host_of) == both}
        for host in sorted({host for both in pairs for host in both} - {_UNKNOWN}):
            yield "uplink", (), (host,), {pair for pair in seen if host in _hosts(pair, host_of)}


def _carried(rank: int, seen: Mapping[Pair, str]) -> list[set[Pair]]:
    """A rank's links that may share a part: all of them, or those of one transport, with ports of its own."""
    own = {pair for pair in seen if rank in pair}
    transports = sorted({seen[pair] for pair in own})
    by_transport = [{pair for pair in own if seen[pair] == one} for one in transports]
    return [own, *by_transport] if len(transports) > 1 else [own]


def _hosts(pair: Pair, host_of: Mapping[int, int]) -> tuple[int, int]:
    one, other = sorted((host_of.get(pair[0], _UNKNOWN), host_of.get(pair[1], _UNKNOWN)))
    return one, other


def _may_be_broken(
    part: Part, claimed: set[Pair], covered: set[Pair], n_healthy: int, host_of: Mapping[int, int]
) -> bool:
    """Whether a part of several links explains more than its links by themselves, or a smaller part, do."""
    if len(covered) < 2 or len({frozenset(pair) for pair in claimed}) < 2:
        return False
    if part not in ("host_pair", "uplink"):
        return n_healthy == 0
    is_more_than_a_link = len({rank for pair in covered for rank in pair}) > 2
    n_host_pairs = len({_hosts(pair, host_of) for pair in claimed})
    return is_more_than_a_link and (part == "host_pair" or n_host_pairs > 1)
