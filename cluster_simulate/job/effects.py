"""Turn faults into changes of a simulation, and place faults that have no place yet."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from cluster_run.errors import UsageError
from cluster_simulate.job.arrays import Floats, Ints
from cluster_simulate.job.faults import CUBE_SHARE, LINK_KINDS, Fault, LinkEffect, links_of
from cluster_simulate.job.job import HCCS, PCIE, RDMA
from cluster_simulate.job.noise import generator
from cluster_simulate.job.spec import JobSpec

#: Clock of the AI cores of a 910B at full speed.
NOMINAL_MHZ = 1800.0


@dataclass(frozen=True)
class Retransmission:
    """One operator of one step that lasts longer, over one link."""

    step: int
    src: int
    dst: int
    extra_us: float


@dataclass(frozen=True)
class Effects:
    """Changes by all faults together, by [step, rank].

    `throttle` is the part of `compute_factor` that a slower clock causes; `dispatch_us` is idle time spread
    over a step.
    """

    compute_factor: Floats
    throttle: Floats
    cube_factor: Floats
    dispatch_us: Floats
    input_us: Floats
    pause_us: Floats
    links: tuple[LinkEffect, ...]
    retransmissions: tuple[Retransmission, ...]


def with_workload(spec: JobSpec, faults: tuple[Fault, ...]) -> JobSpec:
    """Return the job with the workload traits that scenarios ask for."""
    for fault in faults:
        if fault.kind == "stage_imbalance":
            *others, last = spec.healthy.stage_work or (1.0,) * spec.pp
            work = (*others, last * fault.severity)
            spec = replace(spec, healthy=replace(spec.healthy, stage_work=work))
        elif fault.kind == "data_imbalance":
            both = math.hypot(spec.healthy.sequence_sigma, fault.severity)
            spec = replace(spec, healthy=replace(spec.healthy, sequence_sigma=both))
        elif fault.kind == "expert_imbalance":
            if spec.ep < 2:
                raise UsageError("expert_imbalance needs experts", "give --ep 2 or more")
            both = math.hypot(spec.healthy.expert_sigma, fault.severity)
            spec = replace(spec, healthy=replace(spec.healthy, expert_sigma=both))
        elif fault.kind == "small_packets":
            spec = replace(spec, dp_buckets=max(2, int(fault.severity)))
        elif fault.kind == "input_bound":
            spec = replace(spec, noise=replace(spec.noise, preparing_ms=fault.severity))
        elif fault.kind == "host_bound":
            spec = replace(spec, free_share=fault.severity)
    return spec


def place_faults(spec: JobSpec, faults: tuple[Fault, ...], seed: int, used: Ints) -> tuple[Fault, ...]:
    """Give every fault its place; `used` holds the (src, dst) of all links the job uses.

    Raises:
        UsageError: a place that the job does not have, or a kind that needs what it lacks.
    """
    placed = []
    taken: set[int] = set()
    for number, fault in enumerate(faults):
        one = fault if fault.is_placed else _drawn(spec, fault, generator(seed, "place", number), used, taken)
        taken.update(one.ranks)
        _refuse_strange_places(spec, one)
        placed.append(one)
    return tuple(placed)


def effects_of(spec: JobSpec, faults: tuple[Fault, ...], seed: int) -> Effects:
    """Return what placed faults change."""
    shape = (spec.steps, spec.n_ranks)
    compute, throttle, cube = np.ones(shape), np.ones(shape), np.ones(shape)
    dispatch, late, pause = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    links: list[LinkEffect] = []
    retransmissions: list[Retransmission] = []
    for fault in faults:
        active = active_in_steps(spec, fault, seed)
        ranks = ranks_of(spec, fault)
        extra = (fault.severity - 1.0) * active
        if fault.kind in ("slow_rank", "slow_host"):
            share_us = (extra * spec.nominal_step_ms * 1e3)[:, None]
            if fault.cause == "compute":
                share = {"": 1.0, "cube": CUBE_SHARE, "vector": 1.0 - CUBE_SHARE}[fault.op_class]
                compute[:, ranks] *= (1.0 + share * extra)[:, None]
                throttle[:, ranks] *= (1.0 + extra * (not fault.op_class))[:, None]
                cube_part = 1.0 + extra if fault.op_class != "vector" else np.ones_like(extra)
                cube[:, ranks] *= (cube_part / (1.0 + share * extra))[:, None]
            elif fault.cause == "input":
                late[:, ranks] += share_us
            else:
                dispatch[:, ranks] += share_us
        elif fault.kind == "periodic_pause":
            pause[:, ranks] += (active * fault.severity * 1e3)[:, None]
        elif fault.kind == "retransmission":
            step = int(np.argmax(active))
            retransmissions += [Retransmission(step, *link, fault.severity * 1e3) for link in fault.links]
        else:
            effect = link_effect(spec, fault, 1.0 + extra)
            links += [effect] if effect is not None else []
    return Effects(compute, throttle, cube, dispatch, late, pause, tuple(links), tuple(retransmissions))


def ranks_of(spec: JobSpec, fault: Fault) -> list[int]:
    """Return the ranks that a placed fault is of, those of its hosts too."""
    if fault.ranks == (-1,):
        return list(range(spec.n_ranks))
    return [*fault.ranks, *(rank for host in sorted(fault.hosts) for rank in spec.ranks_of(host))]


def active_in_steps(spec: JobSpec, fault: Fault, seed: int) -> Floats:
    """Return how much of a placed fault there is in each step, 0 to 1.

    The draws belong to the fault and its place, not to its number: they stay when others are taken away.
    """
    place = f"{fault.kind} {fault.ranks} {fault.hosts} {fault.links}"
    draws = generator(seed, f"activity {place}").random(spec.steps)
    if fault.kind == "periodic_pause":
        return np.where((np.arange(spec.steps) + 1) % fault.every == 0, 1.0, 0.0)
    if fault.kind == "retransmission" or fault.pattern == "transient":
        return np.where(np.arange(spec.steps) == int(draws[0] * spec.steps), 1.0, 0.0)
    if fault.pattern == "intermittent":
        duty = fault.duty if fault.duty < 1.0 else 0.3
        n_active = max(min(2, spec.steps), round(duty * spec.steps))
        return np.where(np.argsort(np.argsort(draws)) < n_active, 1.0, 0.0)
    if fault.pattern == "trend":
        return np.linspace(0.0, 1.0, spec.steps)
    return np.ones(spec.steps)


def link_effect(spec: JobSpec, fault: Fault, by_step: Floats) -> LinkEffect | None:
    """Return which links a fault slows, `by_step` times; None for a fault that is not one of links."""
    if fault.kind not in LINK_KINDS:
        return None
    if fault.kind in ("slow_link", "retransmission"):
        return LinkEffect(by_step, links=fault.links)
    if fault.kind == "slow_host_pair":
        both = tuple(ranks_of(spec, fault))
        return LinkEffect(by_step, src_ranks=both, dst_ranks=both, transports=(RDMA,), is_between=True)
    ranks_here = tuple(ranks_of(spec, fault))
    return LinkEffect(
        by_step,
        src_ranks=() if fault.direction == "rx" else ranks_here,
        dst_ranks=() if fault.direction == "tx" else ranks_here,
        transports=(HCCS, PCIE) if fault.via == "hccs" else (RDMA,),
    )


def _drawn(spec: JobSpec, fault: Fault, rng: np.random.Generator, used: Ints, taken: set[int]) -> Fault:
    remote = used[spec.host_of(used[:, 0]) != spec.host_of(used[:, 1])]
    if fault.kind in ("slow_rank", "periodic_pause"):
        free = [rank for rank in range(spec.n_ranks) if rank not in taken] or list(range(spec.n_ranks))
        return replace(fault, ranks=(int(rng.choice(free)),))
    if fault.kind == "slow_host":
        return replace(fault, hosts=(int(rng.integers(spec.n_hosts)),))
    pool = used if fault.kind in ("slow_link", "retransmission") or fault.via == "hccs" else remote
    if not len(pool):
        raise UsageError(
            f"{fault.kind}: the job has no such link", "use more ranks, or fewer --ranks-per-host"
        )
    src, dst = (int(rank) for rank in pool[int(rng.integers(len(pool)))])
    if fault.kind in ("slow_link", "retransmission"):
        return replace(fault, links=links_of(fault, src, dst))
    if fault.kind == "slow_nic":
        return replace(fault, ranks=(src,))
    ends = (src, dst) if fault.kind == "slow_host_pair" else (src,)
    return replace(fault, hosts=tuple(map(spec.host_of, ends)))


def _refuse_strange_places(spec: JobSpec, fault: Fault) -> None:
    ranks = [*fault.ranks, *(rank for link in fault.links for rank in link)]
    if any(not (0 <= rank < spec.n_ranks or rank == -1) for rank in ranks):
        raise UsageError(
            f"{fault.kind}: no such rank in {ranks}", f"the job has ranks 0 to {spec.n_ranks - 1}"
        )
    if any(not 0 <= host < spec.n_hosts for host in fault.hosts):
        raise UsageError(f"{fault.kind}: no such host", f"the job has hosts 1 to {spec.n_hosts}")
    if any(src == dst for src, dst in fault.links) or len(set(fault.hosts)) != len(fault.hosts):
        raise UsageError(f"{fault.kind}: both ends are the same", "a link has two ends")
