"""Model C: hosts that launch ahead into the queues of their devices, and stumble; torch_npu's files."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from benchmarks.models.queues.events import Course, Mended, Run, Trouble
from benchmarks.models.queues.files import write
from benchmarks.models.queues.job import Job
from benchmarks.models.queues.shape import Shape
from benchmarks.models.truth import KnownFault, KnownJob
from cluster_run.findings import Finding

NAME = "queues"


@dataclass(frozen=True)
class Fault:
    """A trouble, what it is called, and by how much it may grow until it costs what it should."""

    trouble: Trouble
    kind: str
    most: float
    accepted: tuple[str, ...] = ()
    host: int | None = None


def make(mode: str, seed: int, fault_class: str | None, folder: Path, n_steps: int | None = None) -> KnownJob:
    """Write the job of a seed, or its first steps, into `folder`, and return what is true of it."""
    dice = random.Random(f"queues/{seed}/{fault_class}")
    shape = drawn(dice, mode, fault_class)
    job = Job(replace(shape, steps=n_steps or shape.steps), seed)
    faults = [one for pick in CLASSES[fault_class] for one in pick(job, dice)] if fault_class else []
    faults = [_grown(job, one, 0.012 * 15 ** dice.random()) for one in faults]
    return made(job, faults, folder, mode, fault_class or "healthy")


# The runs that fix a fault's size are those that tell what it costs, and which of them is written.
@lru_cache(maxsize=8)
def _course(job: Job, troubles: tuple[Trouble, ...], mended: Mended) -> Course:
    return Run(job, troubles, mended).course_of_all()


def made(job: Job, faults: list[Fault], folder: Path, mode: str = "plain", name: str = "healthy") -> KnownJob:
    """Run a job, write it, and return what is true of it."""
    shape = job.shape
    troubles = tuple(one.trouble for one in faults)

    def step_ms(some: tuple[Trouble, ...], mended: Mended | None = None) -> float:
        if any(one.stage is not None for one in troubles) and not any(one.stage is not None for one in some):
            mended = replace(mended or Mended(), are_stages_even=True)
        return _course(job, some, mended or Mended()).step_ms(shape.steps)

    course = _course(job, troubles, Mended())
    whole_ms = course.step_ms(shape.steps)
    clean_ms = step_ms(()) if faults else whole_ms
    known = []
    for fault in faults:
        others = tuple(one for one in troubles if one is not fault.trouble)
        alone_ms = (step_ms((fault.trouble,)) if others else whole_ms) - clean_ms
        known.append(_known(fault, alone_ms, whole_ms - step_ms(others) if others else alone_ms))
    write(job, course, folder)
    way = "waits" if shape.do_senders_wait else "eager"
    about = (
        f"tensor {shape.tensor} data {shape.data} stages {shape.stages} layers {shape.layers} {way} "
        f"{'beside' if shape.are_gradients_beside else 'after'} {shape.steps} steps {shape.form}"
    )

    def saving_ms(finding: Finding) -> float:
        mended = _mended(finding)
        return max(whole_ms - step_ms(troubles, mended), clean_ms - step_ms((), mended))

    return KnownJob(
        folder,
        mode,
        job.seed,
        name,
        about,
        shape.n_ranks,
        whole_ms,
        whole_ms - clean_ms,
        tuple(known),
        saving_ms,
    )


def _known(fault: Fault, alone_ms: float, beside_ms: float) -> KnownFault:
    trouble = fault.trouble
    ranks = trouble.ranks | {end for wire in trouble.wires for end in wire}
    links = tuple(sorted(trouble.wires)) if fault.kind == "slow_link" else ()
    if fault.kind == "slow_nic":
        ranks = trouble.ranks
    return KnownFault(
        kind=fault.kind,
        accepted=fault.accepted or (fault.kind,),
        ranks=tuple(sorted(ranks)),
        hosts=() if fault.host is None else (str(fault.host + 1),),
        links=links,
        cost_ms=alone_ms,
        marginal_ms=beside_ms,
    )


def _mended(finding: Finding) -> Mended:
    """Return what a finding asks to repair; what this model has no part for repairs nothing."""
    ranks = frozenset(int(rank) for rank in finding.ranks)
    wires = [(int(link.src), int(link.dst)) for link in finding.links]
    is_device = finding.kind in ("slow_rank", "slow_host", "host_bound", "input_bound")
    return Mended(
        ranks=ranks if is_device else frozenset(),
        wires=frozenset([*wires, *((b, a) for a, b in wires)]),
        pauses=ranks if finding.kind == "periodic_pause" else frozenset(),
        are_samples_even=finding.kind == "data_imbalance",
        are_stages_even=finding.kind == "stage_imbalance",
    )


def drawn(dice: random.Random, mode: str, fault_class: str | None) -> Shape:
    """Draw a job of 16 to 64 ranks on at least two hosts."""
    is_hard = mode == "hard"
    tensor, data, stages = dice.choice(
        [(1, 16, 1), (1, 32, 1), (2, 8, 1), (4, 8, 1), (8, 4, 1), (8, 2, 2), (4, 4, 2), (2, 8, 2), (1, 8, 4),
         (4, 4, 4), (2, 4, 4), (2, 8, 4), (8, 4, 2), (4, 16, 1), (1, 8, 2)]
    )  # fmt: skip
    if fault_class == "stage, too many layers":
        tensor, data, stages = dice.choice([(4, 4, 2), (2, 8, 2), (1, 8, 4), (4, 4, 4), (2, 4, 4), (8, 2, 2)])
    needs_steps = fault_class in (
        "device, a third of the steps",
        "device, ever slower",
        "rank, garbage collection",
    )
    layers = [dice.choice([2, 3, 4])] * stages
    if fault_class == "stage, too many layers":
        layers[dice.randrange(stages)] += 1
    n = tensor * data * stages
    return Shape(
        tensor=tensor,
        data=data,
        stages=stages,
        per_host=16 if n >= 64 and dice.random() < 0.3 else 8,
        steps=dice.randint(6 if needs_steps else 3, 12),
        microbatches=dice.choice([1, 2, 4]) if stages == 1 else dice.choice([stages, 2 * stages]),
        layers=tuple(layers),
        head=dice.uniform(0.1, 0.4) if is_hard and fault_class != "stage, too many layers" else 0.0,
        work_ms=dice.uniform(3, 10),
        launch_share=dice.uniform(0.2, 0.5),
        input_ms=dice.uniform(1, 8),
        tensor_mb=dice.uniform(8, 48),
        message_mb=dice.uniform(8, 48),
        gradients_mb=dice.uniform(100, 600),
        are_gradients_beside=dice.random() < 0.6,
        do_senders_wait=dice.random() < 0.5,
        form=dice.choice(["text", "text", "database"]),
        has_wait_fields=dice.random() < 0.6,
        kernel_sigma=0.015 if is_hard else 0.008,
        device_sigma=0.006 if is_hard else 0.003,
        device_tail=0.004 if is_hard else 0.002,
        length_sigma=dice.choice([0.0, 0.1, 0.2, 0.35]) if is_hard else dice.choice([0.0, 0.0, 0.05]),
        hiccups=0.01 if is_hard else 0.004,
        late_launches=0.01 if is_hard else 0.003,
        collection_ms=dice.choice([0.0, dice.uniform(4, 20)]) if is_hard else 0.0,
        checkpoint_every=dice.choice([0, 3, 4]) if is_hard else 0,
        skew_ms=dice.uniform(0.5, 4) if is_hard else 0.3,
        slow_singles=0.001 if is_hard else 0.0003,
    )


# -- classes of faults ------------------------------------------------------------------------------------
def _one(job: Job, dice: random.Random) -> frozenset[int]:
    return frozenset([dice.randrange(job.shape.n_ranks)])


def _device(job: Job, dice: random.Random) -> list[Fault]:
    return [Fault(Trouble("computes", ranks=_one(job, dice)), "slow_rank", 1.5)]


def _throttled(job: Job, dice: random.Random) -> list[Fault]:
    steps = job.shape.steps
    n = max(2, steps // 3)
    first = dice.randrange(1, steps - n + 1)
    some = range(first, first + n) if dice.random() < 0.5 else dice.sample(range(steps), n)
    return [Fault(Trouble("throttles", ranks=_one(job, dice), steps=frozenset(some)), "slow_rank", 2.0)]


def _ageing(job: Job, dice: random.Random) -> list[Fault]:
    return [Fault(Trouble("ages", ranks=_one(job, dice)), "slow_rank", 2.0)]


def _host(what: str, most: float) -> Callable[[Job, random.Random], list[Fault]]:
    def pick(job: Job, dice: random.Random) -> list[Fault]:
        shape = job.shape
        host = dice.randrange(shape.host(shape.n_ranks - 1) + 1)
        ranks = frozenset(rank for rank in range(shape.n_ranks) if shape.host(rank) == host)
        per_stage = shape.tensor * shape.data
        stages = {rank // per_stage for rank in ranks}
        peers = {rank for rank in range(shape.n_ranks) if rank // per_stage in stages}
        # Nothing tells a host that is a whole stage from its stage.
        alone = ("stage_imbalance", "input_bound", "host_bound") if peers == ranks else ()
        accepted = ("slow_host", *alone)
        return [Fault(Trouble(what, ranks=ranks), "slow_host", most, accepted, host)]

    return pick


def _far(job: Job) -> list[tuple[int, int]]:
    """Links between hosts that are used by more than a word."""
    wires = {(w.source, w.target) for one in job.meetings for w in one.wires if w.size_mb > 0.1}
    return sorted(one for one in wires if job.transport(*one) == "RDMA")


def _link(job: Job, dice: random.Random) -> list[Fault]:
    """A link between two hosts; where others join these hosts or ends too, it can be told from them."""
    far, host = _far(job), job.shape.host
    a, b = dice.choice(far)
    hosts = {host(a), host(b)}
    between = [one for one in far if {host(one[0]), host(one[1])} == hosts]
    accepted = ["slow_link"]
    if all({a, b} == set(one) for one in between):
        accepted.append("slow_host_pair")
    if any(all({a, b} == set(one) for one in far if end in one) for end in (a, b)):
        accepted.append("slow_nic")
    wires = frozenset([(a, b)])
    return [Fault(Trouble("carries", wires=wires), "slow_link", 12.0, tuple(accepted))]


def _card(job: Job, dice: random.Random) -> list[Fault]:
    far = _far(job)
    rank = dice.choice(sorted({end for one in far for end in one}))
    wires = frozenset(one for one in far if rank in one)
    return [Fault(Trouble("carries", ranks=frozenset([rank]), wires=wires), "slow_nic", 12.0)]


def _stage(job: Job, dice: random.Random) -> list[Fault]:
    """The stage with a layer more, which is part of the job already."""
    shape = job.shape
    stage = max(range(shape.stages), key=lambda one: shape.layers[one])
    ranks = frozenset(rank for rank in range(shape.n_ranks) if rank // (shape.tensor * shape.data) == stage)
    return [Fault(Trouble("layers", ranks=ranks, stage=stage), "stage_imbalance", 0.0)]


def _collector(job: Job, dice: random.Random) -> list[Fault]:
    every = dice.choice([2, 3])
    steps = frozenset(range(1 + dice.randrange(every), job.shape.steps, every))
    return [
        Fault(
            Trouble("pauses", ranks=_one(job, dice), steps=steps),
            "periodic_pause",
            600.0,
            ("periodic_pause", "slow_rank"),
        )
    ]


Pick = Callable[[Job, random.Random], list[Fault]]
CLASSES: dict[str, tuple[Pick, ...]] = {
    "device, all kernels": (_device,),
    "device, a third of the steps": (_throttled,),
    "device, ever slower": (_ageing,),
    "host, feeds late": (_host("feeds", 400.0),),
    "host, launches late": (_host("launches", 12.0),),
    "link between hosts": (_link,),
    "network card": (_card,),
    "stage, too many layers": (_stage,),
    "rank, garbage collection": (_collector,),
    "device and host": (_device, _host("feeds", 400.0)),
}
FAULT_CLASSES = tuple(CLASSES)


def _grown(job: Job, fault: Fault, share: float) -> Fault:
    """Return the fault in the size that costs about this share of the step, if it can cost so much."""
    if fault.most == 0.0:
        return fault
    steps, size = job.shape.steps, 0.0
    clean_ms = _course(job, (), Mended()).step_ms(steps)
    low, high = 0.0, fault.most
    for _ in range(7):
        size = (low + high) / 2 if low or high < fault.most else fault.most / 8
        cost_ms = _course(job, (fault.trouble.sized(size),), Mended()).step_ms(steps) - clean_ms
        if abs(cost_ms / clean_ms - share) < 0.25 * share:
            break
        low, high = (size, high) if cost_ms < share * clean_ms else (low, size)
    return replace(fault, trouble=fault.trouble.sized(size))
