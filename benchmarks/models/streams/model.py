"""Model A: jobs as operations on the streams of devices, run by an event queue, in torch_npu's text files."""

from __future__ import annotations

from pathlib import Path

from benchmarks.models.streams.events import Repaired, costs, run
from benchmarks.models.streams.files import write
from benchmarks.models.streams.job import Fault, Job
from benchmarks.models.streams.program import Program
from benchmarks.models.streams.scenarios import BY_NAME, CLASSES, scenario
from benchmarks.models.truth import KnownFault, KnownJob
from cluster_run.findings import Finding

NAME = "streams"
FAULT_CLASSES = tuple(CLASSES)
__all__ = ["BY_NAME", "FAULT_CLASSES", "NAME", "made", "make"]


def make(mode: str, seed: int, fault_class: str | None, folder: Path) -> KnownJob:
    """Write the job of a seed into `folder`, and return what is true of it."""
    job, faults = scenario(mode, seed, fault_class)
    return made(job, faults, seed, folder, mode, fault_class or "healthy")


def made(
    job: Job, faults: list[Fault], seed: int, folder: Path, mode: str = "plain", name: str = "healthy"
) -> KnownJob:
    """Run a job, write it, and return what is true of it."""
    program = Program(job, seed)
    clean_us, step_us, each = costs(program, faults)
    write(program, folder)
    known = tuple(_known(job, fault, *both) for fault, both in zip(faults, each, strict=True))
    about = (
        f"tp{job.tp} cp{job.cp} dp{job.dp} pp{job.pp} ep{job.ep} {job.schedule if job.pp > 1 else job.data} "
        f"{job.exchanges if job.pp > 1 else f'beside {job.beside_share:.0%}'}"
    )

    def saving_ms(finding: Finding) -> float:
        repaired = _repaired(job, finding)
        return max(step_us - run(program, faults, repaired), clean_us - run(program, [], repaired)) / 1000.0

    return KnownJob(
        folder,
        mode,
        seed,
        name,
        about,
        job.n_ranks,
        step_us / 1000.0,
        (step_us - clean_us) / 1000.0,
        known,
        saving_ms,
    )


def _known(job: Job, fault: Fault, alone_us: float, beside_us: float) -> KnownFault:
    hosts = [host for host in (fault.host, fault.other_host) if host is not None]
    ranks = set(fault.ranks) | {end for link in fault.links for end in link}
    groups = job.groups()
    for name in fault.groups:
        ranks |= set(groups[name])
    if fault.cause == "link" and not ranks:
        ranks = {rank for host in hosts for rank in job.ranks_of(host)}
    return KnownFault(
        kind=fault.kind,
        accepted=fault.accepted or (fault.kind,),
        ranks=tuple(sorted(ranks)),
        hosts=tuple(str(host + 1) for host in sorted(hosts)),
        links=tuple(sorted(fault.links)),
        cost_ms=alone_us / 1000.0,
        marginal_ms=beside_us / 1000.0,
    )


def _repaired(job: Job, finding: Finding) -> Repaired:
    """Return what a finding asks to repair; a kind that no part of this model stands for repairs nothing."""
    kind, ranks = finding.kind, [int(rank) for rank in finding.ranks]
    if kind in ("slow_rank", "slow_host", "host_bound", "input_bound"):
        return Repaired(devices=frozenset(ranks), pauses=frozenset(ranks))
    if kind.startswith("slow_") or kind == "retransmission":
        ends = [(int(link.src), int(link.dst)) for link in finding.links]
        both = {pair for a, b in ends for pair in ((a, b), (b, a))}
        return Repaired(links=frozenset(both))
    return Repaired(
        samples=kind == "data_imbalance",
        experts=kind == "expert_imbalance",
        stages=kind == "stage_imbalance",
        pauses=frozenset(range(job.n_ranks)) if kind == "periodic_pause" else frozenset(),
    )
