"""Model D: flows share cards, fabrics and uplinks max-min fairly; collectives in phases, rings, racks."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from benchmarks.models.flows.draw import drawn
from benchmarks.models.flows.faults import CLASSES, FAULT_CLASSES, Fault
from benchmarks.models.flows.files import write
from benchmarks.models.flows.program import Program
from benchmarks.models.flows.run import Course, Mended, Run, Trouble
from benchmarks.models.truth import KnownFault, KnownJob
from cluster_run.findings import Finding

NAME = "flows"
__all__ = ["FAULT_CLASSES", "NAME", "made", "make"]


def make(mode: str, seed: int, fault_class: str | None, folder: Path, n_steps: int | None = None) -> KnownJob:
    """Write the job of a seed, or its first steps, into `folder`, and return what is true of it."""
    dice = random.Random(f"flows/{seed}/{fault_class}")
    picks, layouts = CLASSES[fault_class] if fault_class else ((), ())
    shape = drawn(dice, mode, fault_class, layouts)
    program = Program(replace(shape, steps=n_steps or shape.steps), seed)
    faults = [pick(program, dice) for pick in picks]
    faults = [_grown(program, one, 0.012 * 17 ** dice.random()) for one in faults]
    return made(program, faults, folder, mode, fault_class or "healthy")


# The runs that fix a fault's size are those that tell what it costs, and which of them is written.
@lru_cache(maxsize=8)
def _course(program: Program, troubles: tuple[Trouble, ...], mended: Mended) -> Course:
    return Run(program, troubles, mended).course_of_all()


def _step_ms(program: Program, troubles: tuple[Trouble, ...], mended: Mended | None = None) -> float:
    return _course(program, troubles, mended or Mended()).step_ms(program)


def _cost_ms(program: Program, trouble: Trouble, clean_ms: float) -> float:
    return _step_ms(program, (trouble,)) - clean_ms


def _grown(program: Program, fault: Fault, share: float) -> Fault:
    """Return the fault in the size that costs about this share of the step, if it can cost so much."""
    if fault.most == 0.0:
        return fault
    clean_ms = _step_ms(program, ())
    low, low_ms, size = 0.0, 0.0, fault.most / 8
    for _ in range(5):
        cost_ms = _cost_ms(program, fault.trouble.sized(size), clean_ms)
        wanted_ms = share * clean_ms
        if abs(cost_ms - wanted_ms) < 0.3 * wanted_ms:
            break
        if cost_ms < wanted_ms:
            low, low_ms = size, cost_ms
            size = min(fault.most, size * min(6.0, max(1.3, wanted_ms / max(cost_ms, 1e-6))))
        else:
            size = low + (size - low) * max(0.05, (wanted_ms - low_ms) / (cost_ms - low_ms))
    return replace(fault, trouble=fault.trouble.sized(size))


def made(
    program: Program, faults: list[Fault], folder: Path, mode: str = "plain", name: str = "healthy"
) -> KnownJob:
    """Run a job, write it, and return what is true of it: it is run again without each fault."""
    troubles = tuple(one.trouble for one in faults)
    course = _course(program, troubles, Mended())
    whole_ms = course.step_ms(program)

    def step_ms(some: tuple[Trouble, ...], mended: Mended | None = None) -> float:
        gone = [one for one in faults if one.is_of_many and one.trouble not in some]
        # Who makes such a thing even, or ends such pauses, does so for those that are the job's own as well.
        what = {one.trouble.what for one in gone}
        even = replace(
            mended or Mended(),
            are_samples_even="samples" in what or (mended is not None and mended.are_samples_even),
            are_experts_even="is hot" in what,
            pauses_nobody="pauses" in what,
        )
        return _step_ms(program, some, even)

    clean_ms = step_ms(()) if faults else whole_ms
    known = []
    for fault in faults:
        others = tuple(one for one in troubles if one is not fault.trouble)
        alone_ms = (step_ms((fault.trouble,)) if others else whole_ms) - clean_ms
        beside_ms = whole_ms - step_ms(others) if others else alone_ms
        known.append(_known(fault, alone_ms, beside_ms))
    write(program, course, folder)

    def saving_ms(finding: Finding) -> float:
        mended = _mended(finding)
        return max(whole_ms - step_ms(troubles, mended), clean_ms - step_ms((), mended))

    return KnownJob(
        folder, mode, program.seed, name, _about(program), program.shape.n_ranks, whole_ms,
        whole_ms - clean_ms, tuple(known), saving_ms,
    )  # fmt: skip


def _about(program: Program) -> str:
    shape = program.shape
    striped = " striped" if shape.is_mesh_striped else ""
    sizes = " ".join(
        f"{name} {size}"
        for name, size in (
            ("tensor", shape.tensor), ("context", shape.context), ("data", shape.data),
            ("stages", shape.stages), ("chunks", shape.chunks), ("experts", shape.experts),
        )
        if size > 1
    )  # fmt: skip
    return (
        f"{sizes}{' fused' if shape.is_fused else ''}; {shape.n_hosts} hosts of {shape.per_host} in meshes "
        f"of {shape.per_mesh}{striped}, {shape.hosts_per_rack} a rack; {shape.steps} steps, {shape.form}"
    )


def _known(fault: Fault, alone_ms: float, beside_ms: float) -> KnownFault:
    return KnownFault(
        kind=fault.kind,
        accepted=fault.accepted or (fault.kind,),
        ranks=fault.ranks,
        hosts=tuple(str(host + 1) for host in fault.hosts),
        links=fault.links,
        cost_ms=alone_ms,
        marginal_ms=beside_ms,
        other_hosts=tuple(tuple(str(host + 1) for host in hosts) for hosts in fault.other_hosts),
        is_of_many=fault.is_of_many,
    )


def _mended(finding: Finding) -> Mended:
    """Return what a finding asks to repair; what this model has no part for repairs nothing."""
    ranks = frozenset(int(rank) for rank in finding.ranks)
    links = [(int(link.src), int(link.dst)) for link in finding.links]
    is_device = finding.kind in ("slow_rank", "slow_host", "host_bound", "input_bound", "periodic_pause")
    return Mended(
        ranks=ranks if is_device else frozenset(),
        links=frozenset([*links, *((b, a) for a, b in links)]),
        are_samples_even=finding.kind == "data_imbalance",
    )
