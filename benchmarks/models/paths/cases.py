"""Which job a seed gives here, and what is wrong with it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from benchmarks.models.paths.job import groups_of
from benchmarks.models.paths.shape import Shape, Spread, Trouble

Dice = random.Random
Make = Callable[[Dice], Shape]
Break = Callable[[Shape, Dice], list[Trouble]]


# -- jobs -----------------------------------------------------------------------------------------------


def pieces(dice: Dice) -> Shape:
    """Data parallelism only, gradients summed in pieces beside the backward."""
    return Shape(data=dice.choice((16, 24, 32)), gradients="pieces", beside=dice.choice((0.0, 0.3, 0.5, 0.8)),
                 blocks=dice.choice((6, 10)), microbatches=dice.choice((1, 2)),
                 block_ms=dice.choice((4.0, 8.0)), gradients_mb=dice.choice((300.0, 900.0)))  # fmt: skip


def sharded(dice: Dice) -> Shape:
    """Weights and gradients are sharded over all ranks; the next block's weights come beside this one."""
    return Shape(data=dice.choice((16, 32)), gradients="sharded", blocks=dice.choice((6, 8)), microbatches=1,
                 block_ms=dice.choice((8.0, 20.0)), gradients_mb=dice.choice((400.0, 1200.0)))  # fmt: skip


def like_the_trace(dice: Dice) -> Shape:
    """A pipeline as the production trace has it: messages single and in batches, gradients at the end."""
    stages, data, tensor = dice.choice(((4, 8, 1), (4, 4, 2), (2, 8, 2), (8, 4, 1), (4, 4, 1)))
    return Shape(stages=stages, data=data, tensor=tensor, per_host=dice.choice((4, 8)), blocks=2,
                 microbatches=stages * dice.choice((1, 2)), way=dice.choice(("1f1b", "1f1b", "gpipe")),
                 style=dice.choice(("single", "mixed", "batched")), block_ms=dice.choice((12.0, 34.0)),
                 hidden_join=dice.random() < 0.15)  # fmt: skip


def both_ways(dice: Dice) -> Shape:
    """Two pipelines against each other over the same ranks."""
    return Shape(stages=4, data=dice.choice((4, 8)), way="bidirectional",
                 microbatches=dice.choice((4, 8)), blocks=2,
                 style=dice.choice(("single", "mixed")), block_ms=dice.choice((12.0, 20.0)))  # fmt: skip


def with_experts(dice: Dice) -> Shape:
    """Experts over eight or four neighbours."""
    return Shape(data=dice.choice((16, 32)), experts=dice.choice((4, 8)), gradients="pieces", blocks=4,
                 microbatches=2, block_ms=dice.choice((6.0, 12.0)), beside=dice.choice((0.0, 0.5)),
                 gradients_mb=400.0, tensor_mb=24.0)  # fmt: skip


def tensors(dice: Dice) -> Shape:
    """Tensor parallelism inside hosts, gradients scattered between them."""
    tensor = dice.choice((2, 4, 8))
    return Shape(tensor=tensor, data=32 // tensor, blocks=5, microbatches=2, block_ms=dice.choice((5.0, 9.0)),
                 gradients=dice.choice(("pieces", "scattered")), gradients_mb=400.0)  # fmt: skip


JOBS: tuple[Make, ...] = (
    pieces,
    pieces,
    sharded,
    like_the_trace,
    like_the_trace,
    both_ways,
    with_experts,
    tensors,
)


def varied(shape: Shape, mode: str, dice: Dice) -> Shape:
    """Return the job with little or with much that differs in it, in one of both forms of files."""
    shape = replace(
        shape, form=dice.choice(("text", "text", "database")), wait_fields=dice.choice(("full", "none"))
    )
    if mode == "plain":
        return replace(shape, spread=replace(shape.spread, blocks=0.4))
    spread = Spread(
        blocks=dice.choice((0.5, 1.0)),
        chip=dice.choice((0.002, 0.006)),
        rack=dice.choice((0.002, 0.01)),
        gap=dice.choice((0.06, 0.3)),
        samples=dice.choice((0.0, 0.0, 0.04, 0.12)),
        experts=dice.choice((0.0, 0.06)) if shape.experts > 1 else 0.0,
        last_stage=dice.choice((1.0, 1.2, 1.6)) if shape.stages > 1 and shape.way != "bidirectional" else 1.0,
        hiccups=dice.choice((0.004, 0.032)),
        exit_us=dice.choice((20.0, 140.0)),
        clock_ms=dice.choice((1.0, 40.0)),
        lost=dice.choice((0.0, 0.0, 0.002, 0.01, 0.03)),
    )
    return replace(shape, spread=spread)


# -- troubles -------------------------------------------------------------------------------------------


def _one(shape: Shape, dice: Dice) -> tuple[int, ...]:
    return (dice.randrange(shape.n_ranks),)


def _chip(shape: Shape, dice: Dice) -> list[Trouble]:
    return [Trouble("slow_rank", "chip", dice.choice((1.06, 1.1, 1.18, 1.3)), ranks=_one(shape, dice))]


def _matrix(shape: Shape, dice: Dice) -> list[Trouble]:
    return [Trouble("slow_rank", "matrix", dice.choice((1.2, 1.35)), ranks=_one(shape, dice))]


def _once(shape: Shape, dice: Dice) -> list[Trouble]:
    step = dice.randrange(1, shape.steps)
    return [Trouble("slow_rank", "chip", dice.choice((1.3, 1.6)), ranks=_one(shape, dice), steps=(step,))]


def _now_and_then(shape: Shape, dice: Dice) -> list[Trouble]:
    steps = tuple(sorted(dice.sample(range(shape.steps), shape.steps * 2 // 5)))
    return [Trouble("slow_rank", "chip", 1.35, ranks=_one(shape, dice), steps=steps)]


def _warming(shape: Shape, dice: Dice) -> list[Trouble]:
    return [Trouble("slow_rank", "chip", 1.3, ranks=_one(shape, dice), grows=True)]


def _launching(shape: Shape, dice: Dice) -> list[Trouble]:
    return [Trouble("slow_rank", "launch", dice.choice((6.0, 12.0)), ranks=_one(shape, dice))]


def _two(shape: Shape, dice: Dice, equal: bool) -> list[Trouble]:
    first, second = dice.sample(range(shape.n_ranks), 2)
    times = dice.choice((1.12, 1.22))
    other = times if equal else times + 0.1
    return [
        Trouble("slow_rank", "chip", times, ranks=(first,)),
        Trouble("slow_rank", "chip", other, ranks=(second,)),
    ]


def _machine(shape: Shape, host: int, what: str, dice: Dice) -> Trouble:
    ranks = shape.host_ranks(host)
    if what == "feed":
        return Trouble("slow_host", "feed", plus_ms=dice.choice((15.0, 40.0)), ranks=ranks, hosts=(host,))
    if what == "launch":
        return Trouble("slow_host", "launch", dice.choice((5.0, 10.0)), ranks=ranks, hosts=(host,))
    return Trouble("slow_host", "chip", dice.choice((1.07, 1.12, 1.2)), ranks=ranks, hosts=(host,))


def _machine_of(what: str) -> Break:
    return lambda shape, dice: [_machine(shape, dice.randrange(shape.n_hosts), what, dice)]


def _machine_is_stage(shape: Shape, dice: Dice) -> list[Trouble]:
    what = dice.choice(("feed", "chip"))
    host = 0 if what == "feed" else dice.randrange(shape.n_hosts)
    told = ("slow_host", "stage_imbalance", "input_bound", "host_bound")
    return [replace(_machine(shape, host, what, dice), accepted=told)]


def _two_machines(shape: Shape, dice: Dice) -> list[Trouble]:
    return [_machine(shape, host, "chip", dice) for host in dice.sample(range(shape.n_hosts), 2)]


def _machine_and_chip(shape: Shape, dice: Dice) -> list[Trouble]:
    host = dice.randrange(shape.n_hosts)
    others = [rank for rank in range(shape.n_ranks) if rank not in shape.host_ranks(host)]
    chip = Trouble("slow_rank", "chip", 1.3, ranks=(dice.choice(others),))
    return [_machine(shape, host, "chip", dice), chip]


def _used(shape: Shape) -> list[tuple[int, int]]:
    """Return wires between neighbours of rings over hosts, inside hosts, and along pipelines."""
    found = set()
    groups = groups_of(shape)
    for kind in ("data", "tensor", "experts"):
        for members in set(groups[kind].values()):
            if len(members) > 1 and (kind != "experts" or shape.experts > 1):
                found |= {(members[n - 1], rank) for n, rank in enumerate(members)}
    for members in set(groups["pipe"].values()):
        found |= {(a, b) for a, b in pairwise(members)}
    return sorted(found)


def _far(shape: Shape) -> list[tuple[int, int]]:
    return [(a, b) for a, b in _used(shape) if a // shape.per_host != b // shape.per_host]


def _wire(shape: Shape, dice: Dice) -> list[Trouble]:
    a, b = dice.choice(_used(shape))
    return [Trouble("slow_link", "wire", dice.choice((2.5, 5.0)), wires=((a, b), (b, a)))]


def _card(shape: Shape, dice: Dice) -> list[Trouble]:
    rank = dice.choice(dice.choice(_far(shape)))
    return [Trouble("slow_nic", "wire", dice.choice((3.0, 8.0)), ranks=(rank,))]


def _machine_pair(shape: Shape, dice: Dice) -> list[Trouble]:
    a, b = dice.choice(_far(shape))
    hosts = tuple(sorted((a // shape.per_host, b // shape.per_host)))
    return [Trouble("slow_host_pair", "wire", 4.0, hosts=hosts)]


def _uplink(shape: Shape, dice: Dice) -> list[Trouble]:
    host = dice.choice(dice.choice(_far(shape))) // shape.per_host
    return [Trouble("slow_uplink", "wire", dice.choice((2.5, 5.0)), hosts=(host,))]


def _event(shape: Shape, dice: Dice, plus_ms: float, kind: str) -> list[Trouble]:
    named = sorted({members for members in groups_of(shape)["data"].values() if len(members) > 1})
    hit = named if kind == "retransmission" else dice.sample(named, min(2, len(named)))
    hit = hit[:1] if kind == "retransmission" else hit
    told = ("retransmission", "periodic_pause", "exposed_communication", "slow_uplink", "slow_host_pair")
    accepted = (kind,) if kind == "retransmission" else told
    ranks = tuple(sorted({rank for members in hit for rank in members}))
    groups = tuple(f"data{members}" for members in hit)
    step = (dice.randrange(shape.steps),)
    return [
        Trouble(kind, "stall", plus_ms=plus_ms, ranks=ranks, groups=groups, steps=step, accepted=accepted)
    ]


def _any(dice: Dice) -> Shape:
    return dice.choice(JOBS)(dice)


def _four_hosts(dice: Dice) -> Shape:
    make = dice.choice((pieces, sharded, tensors))
    return replace(make(dice), data=32, tensor=1) if make is not tensors else make(dice)


def _longer(dice: Dice) -> Shape:
    return replace(_any(dice), steps=10, blocks=3, microbatches=4)


def _stage_machines(dice: Dice) -> Shape:
    return replace(like_the_trace(dice), stages=4, data=4, tensor=2, per_host=8, microbatches=4)


def _replica_machines(dice: Dice) -> Shape:
    if dice.random() < 0.5:
        return replace(tensors(dice), tensor=8, data=4)
    return replace(_stage_machines(dice), replica_first=True)


def _unseen(dice: Dice) -> Shape:
    return replace(like_the_trace(dice), hidden_join=True)


CLASSES: dict[str, tuple[Make, Break]] = {
    "rank, data only": (pieces, _chip),
    "rank, sharded": (sharded, _chip),
    "rank, two-way pipeline": (both_ways, _chip),
    "rank, unseen wait": (_unseen, _chip),
    "rank, all kernels": (_any, _chip),
    "rank, some kernels": (_any, _matrix),
    "rank, one step": (_any, _once),
    "rank, intermittent": (_longer, _now_and_then),
    "rank, trend": (_longer, _warming),
    "rank, dispatch": (_any, _launching),
    "two ranks": (_any, lambda shape, dice: _two(shape, dice, equal=False)),
    "two equal ranks": (_any, lambda shape, dice: _two(shape, dice, equal=True)),
    "host, compute": (_four_hosts, _machine_of("chip")),
    "host, dispatch": (_four_hosts, _machine_of("launch")),
    "host, input": (_four_hosts, _machine_of("feed")),
    "host is a stage": (_stage_machines, _machine_is_stage),
    "host is a replica": (_replica_machines, _machine_of("chip")),
    "two hosts of four": (_four_hosts, _two_machines),
    "host and rank": (_four_hosts, _machine_and_chip),
    "link": (_four_hosts, _wire),
    "network card": (_four_hosts, _card),
    "host pair": (_four_hosts, _machine_pair),
    "uplink": (_four_hosts, _uplink),
    "stalled groups": (_any, lambda shape, dice: _event(shape, dice, 280.0, "stalled_groups")),
    "retransmission": (_any, lambda shape, dice: _event(shape, dice, 4000.0, "retransmission")),
}


def case(mode: str, seed: int, fault_class: str | None) -> tuple[Shape, list[Trouble]]:
    """Return a seed's job, and what is wrong with it: nothing without a class."""
    dice = random.Random(f"paths/{mode}/{seed}/{fault_class}")
    make, broken = CLASSES[fault_class] if fault_class else (_any, None)
    shape = varied(make(dice), mode, dice)
    return shape, broken(shape, dice) if broken else []
