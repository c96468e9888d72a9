"""The right answer: what was broken, where, and what each fault really cost.

The cost of a fault is the mean step with it minus the mean step of the same job, with the same random
numbers, without it. `cumulative_saving_ms` is what is gained when the faults are repaired one after the
other, costliest first. Workload scenarios are measured against the same job without them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from cluster_simulate.job.effects import active_in_steps, link_effect, ranks_of
from cluster_simulate.job.events import simulate
from cluster_simulate.job.faults import Fault
from cluster_simulate.job.job import SimulatedJob
from cluster_simulate.job.network import transport_of
from cluster_simulate.job.plant import build_plant

SCHEMA = "cluster-truth/1"


@dataclass(frozen=True)
class TrueFault:
    """One injected fault.

    `hosts` are named as findings name them; `links` hold both directions where both are slow; `used_links`
    are all links that it slowed and that the job used: where there is but one, a slow link, NIC, host pair
    and uplink look alike. `steps` are those in which it was active, as the profiler numbers them.
    """

    kind: str
    severity: float
    cause: str
    pattern: str
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    links: tuple[tuple[int, int], ...]
    used_links: tuple[tuple[int, int], ...]
    steps: tuple[int, ...]
    direction: str
    via: str
    op_class: str
    is_workload: bool
    cost_ms_per_step: float
    cost_share: float
    cumulative_saving_ms: float


@dataclass(frozen=True)
class Truth:
    """All faults of a job, costliest first. `healthy_step_ms` is the step without any of them."""

    seed: int
    step_ms: float
    healthy_step_ms: float
    faults: tuple[TrueFault, ...]


def truth(job: SimulatedJob) -> Truth:
    """Simulate the job again without each of its faults, and without all of them."""

    known = {job.faults: job.step_ms}

    def step_ms(faults: tuple[Fault, ...]) -> float:
        if faults not in known:
            known[faults] = simulate(job.requested, faults, job.seed, job.run).step_ms
        return known[faults]

    costs = [job.step_ms - step_ms((*job.faults[:n], *job.faults[n + 1 :])) for n in range(len(job.faults))]
    order = sorted(range(len(costs)), key=lambda n: (-costs[n], n))
    left = list(job.faults)
    savings = {}
    for n in order:
        left.remove(job.faults[n])
        savings[n] = job.step_ms - step_ms(tuple(left))
    faults = tuple(_true_fault(job, job.faults[n], costs[n], savings[n]) for n in order)
    return Truth(job.seed, job.step_ms, step_ms(()), faults)


def truth_path(run: Path) -> Path:
    """Return where the truth of a run directory lies: next to it, where no analysis looks for rank tables."""
    return run.parent / f"{run.name}.truth.json"


def truth_to_json(answer: Truth) -> str:
    """Return the text of the truth file."""
    return json.dumps({"schema": SCHEMA, **asdict(answer)}, indent=1) + "\n"


def _used_links(job: SimulatedJob, fault: Fault) -> tuple[tuple[int, int], ...]:
    """Return the links of large messages that a fault slows, in order."""
    effect = link_effect(job.spec, fault, np.ones(job.spec.steps))
    if effect is None:
        return ()
    src, dst = build_plant(job.spec, job.seed).used_links().T
    covered = effect.covers(src, dst, transport_of(job.spec, src, dst))
    return tuple(zip(src[covered].tolist(), dst[covered].tolist(), strict=True))


def _true_fault(job: SimulatedJob, fault: Fault, cost: float, saving: float) -> TrueFault:
    spec = job.spec
    active = active_in_steps(spec, fault, job.seed)
    ranks = tuple(ranks_of(spec, fault))
    hosts = fault.hosts or tuple(sorted(set(map(spec.host_of, ranks))))
    return TrueFault(
        kind=fault.kind,
        severity=fault.severity,
        cause=fault.cause,
        pattern=fault.pattern,
        ranks=ranks,
        hosts=tuple(str(host + 1) for host in hosts),
        links=fault.links,
        used_links=_used_links(job, fault),
        steps=tuple(int(step) + spec.first_step for step in np.flatnonzero(active)),
        direction=fault.direction,
        via=fault.via,
        op_class=fault.op_class,
        is_workload=fault.is_workload,
        cost_ms_per_step=cost,
        cost_share=cost / job.step_ms,
        cumulative_saving_ms=saving,
    )
