"""The classes of faults: what is wrong, what it is called, and in which jobs it can be."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from benchmarks.models.flows.draw import LAYOUTS
from benchmarks.models.flows.program import Program
from benchmarks.models.flows.run import Trouble
from benchmarks.models.flows.wiring import Part

#: Kinds that name a part of the network between hosts, whatever its size.
_OF_NETWORKS = ("slow_uplink", "slow_rack", "slow_host_pair")


@dataclass(frozen=True)
class Fault:
    """A trouble, what it is called, where, and by how much it may grow until it costs what it should.

    `other_hosts` are hosts that name it as well, where nothing tells the two ends of what all transfers pass.
    """

    trouble: Trouble
    kind: str
    most: float
    accepted: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    hosts: tuple[int, ...] = ()
    links: tuple[tuple[int, int], ...] = ()
    other_hosts: tuple[tuple[int, ...], ...] = ()
    #: Whether a finding that names some of the ranks, or none in particular, is right.
    is_of_many: bool = False


def _of_host(program: Program, host: int) -> tuple[int, ...]:
    return tuple(rank for rank in range(program.shape.n_ranks) if program.wiring.host(rank) == host)


def _any_rank(program: Program, dice: random.Random) -> int:
    return dice.randrange(program.shape.n_ranks)


def _on_rank(what: str, kind: str, most: float, *others: str) -> Pick:
    def pick(program: Program, dice: random.Random) -> Fault:
        rank = _any_rank(program, dice)
        return Fault(Trouble(what, ranks=frozenset([rank])), kind, most, (kind, *others), ranks=(rank,))

    return pick


def _device_at_times(program: Program, dice: random.Random) -> Fault:
    rank, steps = _any_rank(program, dice), program.shape.steps
    some = frozenset(dice.sample(range(steps), max(2, steps // 3)))
    return Fault(Trouble("computes", ranks=frozenset([rank]), steps=some), "slow_rank", 2.0, ranks=(rank,))


def _on_host(what: str, most: float) -> Pick:
    def pick(program: Program, dice: random.Random) -> Fault:
        host = dice.randrange(program.shape.n_hosts)
        ranks = _of_host(program, host)
        stages = {program.shape.stage(rank) for rank in ranks}
        peers = {rank for rank in range(program.shape.n_ranks) if program.shape.stage(rank) in stages}
        # Nothing tells a host that is a whole stage from its stage.
        alone = ("stage_imbalance", "input_bound", "host_bound") if peers == set(ranks) else ()
        trouble = Trouble(what, ranks=frozenset(ranks))
        return Fault(trouble, "slow_host", most, ("slow_host", *alone), ranks=ranks, hosts=(host,))

    return pick


def _pauses(program: Program, dice: random.Random) -> Fault:
    rank = _any_rank(program, dice)
    every = dice.choice([1, 2, 3])
    first = dice.randrange(every)
    pauses = tuple(
        (dice.choice(program.kernels[rank, step]), dice.uniform(0.7, 1.3))
        for step in range(first, program.shape.steps, every)
    )
    return Fault(
        Trouble("pauses", pauses=pauses), "periodic_pause", 2000.0, ("periodic_pause", "slow_rank"), (rank,)
    )


def _pauses_of_many(program: Program, dice: random.Random) -> Fault:
    """Each rank stands still once in a while, each at its own time."""
    shape = program.shape
    pauses = []
    for rank in range(shape.n_ranks):
        for step in dice.sample(range(shape.steps), max(1, shape.steps // 8)):
            pauses.append((dice.choice(program.kernels[rank, step]), dice.uniform(0.5, 1.5)))
    ranks = tuple(range(shape.n_ranks))
    trouble = Trouble("pauses", pauses=tuple(pauses))
    return Fault(trouble, "periodic_pause", 500.0, ("periodic_pause", "host_bound"), ranks, is_of_many=True)


def used(program: Program) -> list[tuple[int, int]]:
    """Return the links that carry more than a word."""
    links = {(a, b) for call in program.calls for phase in call.phases for a, b, _ in phase}
    return sorted(links | {(one.source, one.target) for one in program.messages})


def _far(program: Program) -> list[tuple[int, int]]:
    return [one for one in used(program) if program.wiring.transport(*one) == "RDMA"]


def _carries(parts: Iterable[Part]) -> Trouble:
    return Trouble("carries", parts=tuple(parts))


def _link(is_far: bool) -> Pick:
    def pick(program: Program, dice: random.Random) -> Fault:
        wiring = program.wiring
        links = [one for one in used(program) if (wiring.transport(*one) == "RDMA") == is_far] or used(
            program
        )
        a, b = dice.choice(links)
        accepted = ["slow_link"]
        hosts = {wiring.host(a), wiring.host(b)}
        if len([one for one in links if {wiring.host(end) for end in one} == hosts]) <= 2:
            accepted.append("slow_host_pair")
        if any(all({a, b} == set(one) for one in links if end in one) for end in (a, b)):
            accepted.append("slow_nic")
        return Fault(_carries([("link", a, b)]), "slow_link", 20.0, tuple(accepted), links=((a, b),))

    return pick


def _port(way: str) -> Pick:
    """A card, or the port of a device in its mesh, that is slow in one direction."""

    def pick(program: Program, dice: random.Random) -> Fault:
        end = 0 if way == "out" else 1
        far = _far(program)
        is_far = bool(far) and dice.random() < 0.7
        rank = dice.choice(far if is_far else used(program))[end]
        if program.wiring.transport(*next(one for one in used(program) if one[end] == rank)) == "RDMA":
            is_far = True
        if is_far:
            card = program.wiring.card(rank)
            ranks = tuple(range(card, card + program.shape.devices_per_card))
            part: Part = (f"card {way}", card)
        else:
            ranks, part = (rank,), (f"port {way}", rank)
        links = {one for one in (far if is_far else used(program)) if one[end] in ranks}
        also = ("slow_link",) if len(links) == 1 else ()
        # A card that two devices share may be named by either.
        accepted = ("slow_nic", *also)
        return Fault(_carries([part]), "slow_nic", 20.0, accepted, ranks=ranks, is_of_many=len(ranks) > 1)

    return pick


def _host_pair(program: Program, dice: random.Random) -> Fault:
    far = _far(program)
    a, b = (program.wiring.host(end) for end in dice.choice(far))
    n_pairs = len({frozenset(program.wiring.host(end) for end in one) for one in far})
    accepted = ("slow_host_pair", *(("slow_uplink",) if n_pairs == 1 else ()))
    trouble = _carries([("hosts", a, b), ("hosts", b, a)])
    return Fault(
        trouble, "slow_host_pair", 20.0, accepted, (*_of_host(program, a), *_of_host(program, b)), (a, b)
    )


def _uplink(what: str, is_shared: bool) -> Pick:
    """The way out of, or into, a host or a rack: slow, or shared with other jobs in some steps."""

    def pick(program: Program, dice: random.Random) -> Fault:
        wiring, far = program.wiring, _far(program)
        hosts = sorted({wiring.host(end) for one in far for end in one})
        way = dice.choice(["out", "in"])
        host = dice.choice(hosts)
        within: tuple[int, ...] = (host,)
        where = host
        if what == "rack":
            where = wiring.rack(host * program.shape.per_host)
            within = tuple(one for one in hosts if wiring.rack(one * program.shape.per_host) == where)
        others = tuple(one for one in hosts if one not in within)
        # All that leaves one of two comes to the other.
        twins = (others, hosts) if len({wiring.rack(o * program.shape.per_host) for o in hosts}) == 2 or len(
            hosts) == 2 else ()  # fmt: skip
        steps = frozenset(dice.sample(range(program.shape.steps), 2)) if is_shared else None
        trouble = Trouble(
            "is shared" if is_shared else "carries", parts=((f"{what} {way}", where),), steps=steps
        )
        ranks = tuple(rank for one in within for rank in _of_host(program, one))
        most = 400.0 if is_shared else 20.0
        return Fault(
            trouble, "slow_uplink", most, _OF_NETWORKS, ranks, within, other_hosts=tuple(map(tuple, twins))
        )

    return pick


def _foreign(program: Program, dice: random.Random) -> Fault:
    if dice.random() < 0.5:
        return _uplink("rack", True)(program, dice)
    return _uplink("host", True)(program, dice)


def _hot(program: Program, dice: random.Random) -> Fault:
    shape = program.shape
    expert = dice.randrange(shape.experts)
    ranks = tuple(rank for rank in range(shape.n_ranks) if shape.expert(rank) == expert)
    return Fault(
        Trouble("is hot", ranks=frozenset(ranks)), "expert_imbalance", 3.0, ranks=ranks, is_of_many=True
    )


def _samples(program: Program, dice: random.Random) -> Fault:
    """Samples of unequal length, which are part of the job: without, all are as long as their mean."""
    ranks = tuple(range(program.shape.n_ranks))
    return Fault(Trouble("samples"), "data_imbalance", 0.0, ranks=ranks, is_of_many=True)


Pick = Callable[[Program, random.Random], Fault]
_RACKED = (
    "data 32",
    "tensor 8 data 8",
    "context 4 data 8, apart",
    "experts 8 data 32",
    "interleaved, data 8",
)
_MIXED = ("experts 8 data 16", "experts 8 data 32")
_RINGS = ("context 4 data 8", "context 4 data 8, apart", "context 8 data 4", "tensor 2 context 4 data 4")
#: What moves inside fused kernels is in no file: nobody can tell what a slow network costs there.
_SHOWN = tuple(name for name, shape in LAYOUTS.items() if not shape.is_fused)
_FUSED = ("experts 4 data 16, fused", "experts 16 data 16, fused")
#: What is wrong, and the layouts of its jobs: all where none is named.
CLASSES: dict[str, tuple[tuple[Pick, ...], tuple[str, ...]]] = {
    "device": ((_on_rank("computes", "slow_rank", 2.0),), ()),
    "device, some steps": ((_device_at_times,), ()),
    "device, context ring": ((_on_rank("computes", "slow_rank", 2.0),), _RINGS),
    "device, fused kernels": ((_on_rank("computes", "slow_rank", 2.0),), _FUSED),
    "rank, dispatch": ((_on_rank("dispatches", "slow_rank", 60.0),), ()),
    "rank, idle before a side call": ((_on_rank("holds back", "slow_rank", 400.0, "periodic_pause"),), ()),
    "rank, pauses": ((_pauses,), ()),
    "ranks, pauses": ((_pauses_of_many,), ()),
    "host computes": ((_on_host("computes", 2.0),), ()),
    "host dispatches": ((_on_host("dispatches", 60.0),), ()),
    "host, input": ((_on_host("feeds", 400.0),), ()),
    "link between hosts": ((_link(True),), _SHOWN),
    "link in a host": ((_link(False),), _SHOWN),
    "port out": ((_port("out"),), _SHOWN),
    "port in": ((_port("in"),), _SHOWN),
    "host pair": ((_host_pair,), _RACKED),
    "host uplink": ((_uplink("host", False),), _SHOWN),
    "rack uplink": ((_uplink("rack", False),), _RACKED),
    "foreign traffic": ((_foreign,), _RACKED),
    "hot expert": ((_hot,), _MIXED),
    "samples": ((_samples,), ()),
    "device and port": ((_on_rank("computes", "slow_rank", 2.0), _port("out")), _SHOWN),
}
FAULT_CLASSES = tuple(CLASSES)
