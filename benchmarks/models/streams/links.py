"""The network: which links a call uses, how long each takes, and what a call takes by that.

Bandwidths and latencies are those of real captures: HCCS 19 GB/s a link and 2 us, RDMA
24 GB/s and 9.5 us. Inside a host all ranks reach each other; a group over several hosts is a ring.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.models.streams.job import Fault, Job

_GBPS = {"HCCS": 19.0, "RDMA": 24.0}
_LATENCY_US = {"HCCS": 2.0, "RDMA": 9.5}
#: What a member sends over all its links together, in units of the operator's size on one rank, by members n.
_VOLUME = {
    "allReduce": lambda n: 2.0 * (n - 1) / n,
    "reduceScatter": lambda n: (n - 1) / n,
    "allGather": lambda n: (n - 1) / n,
    "alltoAll": lambda n: (n - 1) / n,
}


class Carried(NamedTuple):
    """What one directed link carried of one call, in MB and µs."""

    source: int
    destination: int
    transport: str
    size_mb: float
    time_us: float


class Network:
    """All links of a job. Each differs a little for good; faults multiply its time."""

    def __init__(self, job: Job, seed: int) -> None:
        self._job = job
        self._seed = seed
        self._nature: dict[tuple[int, int], float] = {}
        self._pairs: dict[tuple[str, tuple[int, ...]], list[tuple[int, int, float]]] = {}
        self.faults: Sequence[Fault] = ()
        #: Links that are repaired: as by their specification.
        self.repaired: frozenset[tuple[int, int]] = frozenset()

    def transport(self, source: int, destination: int) -> str:
        """Return how two ranks reach each other."""
        return "HCCS" if self._job.host(source) == self._job.host(destination) else "RDMA"

    def pairs(self, what: str, ranks: tuple[int, ...]) -> list[tuple[int, int, float]]:
        """Return the directed links of a collective, and the share of the size that each carries."""
        known = self._pairs.get((what, ranks))
        if known is None:
            known = self._pairs[what, ranks] = self._pairs_of(what, ranks)
        return known

    def _pairs_of(self, what: str, ranks: tuple[int, ...]) -> list[tuple[int, int, float]]:
        n = len(ranks)
        volume = _VOLUME[what](n)
        if what == "alltoAll" or len({self._job.host(rank) for rank in ranks}) == 1:
            return [(a, b, volume / (n - 1)) for a in ranks for b in ranks if a != b]
        return [(ranks[i], ranks[(i + 1) % n], volume) for i in range(n)]

    def carried(
        self, source: int, destination: int, size_mb: float, step: int, noise: float, luck: float
    ) -> Carried:
        """Return what one link takes for one message; `noise` is the call's own factor, `luck` its number."""
        transport = self.transport(source, destination)
        repaired = (source, destination) in self.repaired
        factor, added_ms = 1.0 if repaired else self._nature_of(source, destination) * noise, 0.0
        for fault in () if repaired else self.faults:
            is_hit = fault.cause == "link" and luck < fault.calls_share
            if is_hit and self.is_hit(fault, source, destination, transport):
                factor *= fault.factor_in(step, self._job.steps)
                added_ms += fault.add_ms
        time_us = _LATENCY_US[transport] + (size_mb / _GBPS[transport] * factor + added_ms) * 1000.0
        return Carried(source, destination, transport, size_mb, time_us)

    def is_hit(self, fault: Fault, source: int, destination: int, transport: str) -> bool:
        """Return whether a link is one of those that a fault slows."""
        if fault.links:
            return (source, destination) in fault.links
        if transport != "RDMA":
            return False
        if fault.kind == "slow_nic":
            return source in fault.ranks or destination in fault.ranks
        hosts = {self._job.host(source), self._job.host(destination)}
        if fault.kind == "slow_host_pair":
            return hosts == {fault.host, fault.other_host}
        return fault.kind == "slow_uplink" and fault.host in hosts

    def _nature_of(self, source: int, destination: int) -> float:
        known = self._nature.get((source, destination))
        if known is None:
            dice = random.Random(f"{self._seed}/link/{source}/{destination}")
            known = max(0.8, dice.gauss(1.0, self._job.varying.link_sigma))
            self._nature[source, destination] = known
        return known
