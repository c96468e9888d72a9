"""What ranks run: operations in streams, each after the one before it and after others that it waits for.

A collective moves phase by phase: inside meshes, between the meshes of a host, between hosts. A phase is a
list of transfers (source, target, MB) that begin together. The next begins when all are done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.models.flows.wiring import Wiring

#: A host that fetches a step's input; kernels; a kernel that waits for its group in itself; calls.
INPUT, KERNELS, FUSED, COLLECTIVE, EXCHANGE = range(5)


@dataclass(slots=True, eq=False)
class Message:
    """What one rank sends to another. An eager one goes when its sender is there, others when both are."""

    source: int
    target: int
    size_mb: float
    is_eager: bool
    noise: float
    sender: int = -1
    receiver: int = -1


@dataclass(slots=True, eq=False)
class Call:
    """One collective: what it moves, phase by phase, and by which factors its transfers are unlike others."""

    name: str
    group: str
    phases: tuple[Phase, ...]
    noise: tuple[tuple[float, ...], ...]
    latency_ms: float
    ops: list[int] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Op:
    """One operation of one rank. `idle_ms` is what its device idles before it, as its host is late."""

    rank: int
    step: int
    kind: int
    stream: str
    what: str
    work_ms: float = 0.0
    idle_ms: float = 0.0
    #: What this rank's host stands still for before it.
    pause_ms: float = 0.0
    #: Length of the sample, as a share of the mean, and how much of the work goes with it.
    length: float = 1.0
    share_of_length: float = 0.0
    #: How late this rank leaves a call.
    jitter_ms: float = 0.0
    group: str = ""
    call: int = -1
    sends: tuple[int, ...] = ()
    receives: tuple[int, ...] = ()
    #: The side call before which a rank may idle although its main stream has nothing left to do.
    is_held_back: bool = False
    #: What experts take for all the tokens that come to them.
    is_of_experts: bool = False
    followers: list[int] = field(default_factory=list)
    n_awaited: int = 0


Transfer = tuple[int, int, float]
Phase = tuple[Transfer, ...]


def phases_of(name: str, ranks: Sequence[int], size_mb: float, wiring: Wiring) -> tuple[Phase, ...]:
    """Return the phases of a collective whose members each hold `size_mb` of the whole."""
    if name == "alltoAll":
        share = size_mb / len(ranks)
        return (tuple((a, b, share) for a in ranks for b in ranks if a != b),)
    down = _scattered(ranks, size_mb, wiring)
    up = tuple(tuple((b, a, size) for a, b, size in phase) for phase in reversed(down))
    return {"reduceScatter": down, "allGather": up, "allReduce": down + up}[name]


def _scattered(ranks: Sequence[int], size_mb: float, wiring: Wiring) -> tuple[Phase, ...]:
    """Return the phases of a reduce-scatter: each level sums up what the next one moves less of."""
    levels = _levels(ranks, wiring)
    if levels is None:
        n = len(ranks)
        return (tuple((a, b, size_mb * (n - 1) / n) for a, b in _ring(ranks)),)
    phases: list[Phase] = []
    share = size_mb
    for is_ring, rows in levels:
        n = len(rows[0])
        if n == 1:
            continue
        if is_ring:
            phases.append(tuple((a, b, share * (n - 1) / n) for row in rows for a, b in _ring(row)))
        else:
            phases.append(tuple((a, b, share / n) for row in rows for a in row for b in row if a != b))
        share /= n
    return tuple(phases)


def _levels(ranks: Sequence[int], wiring: Wiring) -> list[tuple[bool, list[list[int]]]] | None:
    """Return who exchanges with whom in a mesh, in a host and between hosts; None where hosts are unlike."""
    hosts: dict[int, dict[tuple[int, int], list[int]]] = {}
    for rank in ranks:
        hosts.setdefault(wiring.host(rank), {}).setdefault(wiring.mesh(rank), []).append(rank)
    meshes = [row for one in hosts.values() for row in one.values()]
    if len({len(row) for row in meshes}) > 1 or len({len(one) for one in hosts.values()}) > 1:
        return None
    per_mesh = len(meshes[0])
    across = [[row[n] for row in one.values()] for one in hosts.values() for n in range(per_mesh)]
    places = [[rank for row in one.values() for rank in row] for one in hosts.values()]
    between = [[row[n] for row in places] for n in range(len(places[0]))]
    return [(False, meshes), (False, across), (True, between)]


def _ring(ranks: Sequence[int]) -> list[tuple[int, int]]:
    return [(ranks[n], ranks[(n + 1) % len(ranks)]) for n in range(len(ranks))]
