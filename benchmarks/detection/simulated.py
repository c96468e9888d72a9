"""Jobs of the project's own simulator for `benchmarks.detection`, judged from their tables."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from benchmarks.detection.field_rules import RULES
from benchmarks.detection.no_matrix import has_matrix, mode_of_model
from benchmarks.detection.scoring import Said
from benchmarks.detection.simulated_tables import tables, topology
from benchmarks.models.truth import KnownFault, KnownJob
from cluster_analysis.judge.detection import detect
from cluster_analysis.replay.job_evidence import JobEvidence, merge_steps
from cluster_analysis.tables.model import Topology
from cluster_analysis.trace.reduction import reduce_step
from cluster_run.findings import Finding
from cluster_run.ids import Step
from cluster_simulate.api import Fault, Healthy, JobSpec, Noise, SimulatedJob, parse_scenario, simulate, truth

NAME = "simulator"
FAULTS = (
    "slow_rank:1.05", "slow_rank:1.1", "slow_rank:1.2", "slow_rank:1.5", "slow_rank:1.3,op=vector",
    "slow_rank:1.4,pattern=intermittent,duty=0.4", "slow_rank:1.3,pattern=trend",
    "slow_rank:1.05,cause=dispatch", "slow_rank:1.1,cause=input",
    "slow_host:1.05", "slow_host:1.15", "slow_host:1.1,cause=compute", "slow_host:1.05,cause=input",
    "slow_link:1.5", "slow_link:2", "slow_link:5", "slow_link:3,dir=one",
    "slow_nic:3", "slow_nic:10", "slow_nic:4,dir=tx", "slow_nic:4,dir=rx", "slow_nic:3,via=hccs",
    "slow_host_pair:3", "slow_uplink:2", "slow_uplink:4",
    "retransmission:4000", "periodic_pause:200,every=2",
)  # fmt: skip
LAYOUTS = (
    JobSpec(tp=4, pp=4, dp=4), JobSpec(tp=8, pp=2, dp=4), JobSpec(tp=4, pp=2, dp=4),
    JobSpec(tp=2, pp=2, dp=4, ranks_per_host=4), JobSpec(tp=8, pp=1, dp=4), JobSpec(tp=1, pp=1, dp=32),
    JobSpec(tp=4, pp=4, dp=4, vpp=2), JobSpec(tp=4, pp=4, dp=4, p2p="rendezvous"),
    JobSpec(tp=4, pp=2, dp=4, cp=2), JobSpec(tp=8, pp=4, dp=8),
)  # fmt: skip
STEPS = (5, 5, 8, 12)


def judge(mode: str, seed: int, scenario: str | None) -> tuple[KnownJob, Said]:
    """Simulate one job, judge it, and return what is true and what was said."""
    job, evidence, where = read(mode, seed, scenario)
    found = detect(evidence, where)
    rules = {name: rule(evidence, where) for name, rule in RULES.items()}
    return job, Said(found.verdict, tuple(found.findings), found.replay.get("error_share"), rules)


def read(mode: str, seed: int, scenario: str | None) -> tuple[KnownJob, JobEvidence, Topology]:
    """Simulate one job, and return what is true of it and what is read of it."""
    spec = job_spec(mode_of_model(mode), seed)
    scenarios = [parse_scenario(scenario)] if scenario else []
    job = simulate(spec, scenarios, seed=seed)
    hidden = set(spec.healthy.missing_ranks)
    if any(hidden & ranks_of(fault) for fault in job.faults) or is_unseen(job, hidden):
        spec = replace(spec, healthy=replace(spec.healthy, missing_ranks=()))
        job = simulate(spec, scenarios, seed=seed)
    where = topology(job)
    return known(job, mode, seed, scenario or "healthy"), evidence_of(job, where, has_matrix(mode)), where


def known(job: SimulatedJob, mode: str, seed: int, scenario: str) -> KnownJob:
    """Return what is true of a simulated job."""
    faults = tuple(
        KnownFault(
            kind=one.kind,
            accepted=(one.kind,),
            ranks=tuple(sorted(int(rank) for rank in one.ranks)),
            hosts=tuple(one.hosts),
            links=tuple((int(a), int(b)) for a, b in one.links),
            cost_ms=one.cost_ms_per_step,
            marginal_ms=one.cost_ms_per_step,
        )
        for one in truth(job).faults
    )
    spec = job.spec
    return KnownJob(
        folder=Path(),
        mode=mode,
        seed=seed,
        fault_class=scenario,
        about=f"tp{spec.tp} cp{spec.cp} dp{spec.dp} pp{spec.pp} ep{spec.ep} {spec.dp_mode} {spec.p2p}",
        n_ranks=spec.n_ranks,
        step_ms=job.step_ms,
        cost_ms=sum(one.cost_ms for one in faults),
        faults=faults,
        saving_ms=lambda finding: true_saving_share(finding, job) * job.step_ms,
    )


def job_spec(mode: str, seed: int) -> JobSpec:
    """A layout and what varies in it; hard jobs mix everything that healthy jobs do."""
    dice = random.Random(seed)
    spec = replace(dice.choice(LAYOUTS), steps=dice.choice(STEPS))
    if mode == "plain":
        return spec
    healthy: dict[str, object] = {}
    if spec.pp > 1 and dice.random() < 0.5:
        healthy["stage_work"] = (1.1, *[1.0] * (spec.pp - 2), 1.3)
    if dice.random() < 0.35:
        healthy["sequence_sigma"] = dice.choice((0.1, 0.2))
    has_experts = spec.pp > 1 and dice.random() < 0.25
    if has_experts:
        healthy["expert_sigma"] = dice.choice((0.05, 0.1))
    for name, value, chance in (
        ("silicon_sigma", 0.006, 0.3), ("gc_every", 4, 0.3), ("checkpoint_every", 5, 0.2),
        ("inner_halves", True, 0.25), ("clock_sigma_ms", 50.0, 0.3), ("uneven_counts", 3, 0.2),
        ("missing_records", 0.01, 0.2),
    ):  # fmt: skip
        if dice.random() < chance:
            healthy[name] = value
    if dice.random() < 0.2:
        healthy["missing_ranks"] = tuple(dice.sample(range(spec.n_ranks), 2))
    family = "ar1" if dice.random() < 0.3 else "lognormal"
    dp_mode = dice.choice(("overlap", "zero3")) if dice.random() < 0.2 else "flat"
    return replace(
        spec,
        ep=4 if has_experts else 1,
        dp_mode=dp_mode,  # type: ignore[arg-type]
        wait_fields=dice.choice(("full", "idle", "mixed")),
        healthy=Healthy(**healthy),  # type: ignore[arg-type]
        noise=Noise(family=family),  # type: ignore[arg-type]
    )


def evidence_of(job: SimulatedJob, where: Topology, has_links: bool = True) -> JobEvidence:
    """Parsed tables to evidence, as the engine does it; without what tells of single links if asked."""
    ranks = list(tables(job).values())
    joined = {
        name: pa.concat_tables([getattr(one, name) for one in ranks]).unify_dictionaries()
        for name in ("steps", "collectives", "links", "operators", "packets")
    }
    if not has_links:
        joined["links"] = joined["links"].slice(0, 0)
    numbers = sorted(set(joined["steps"]["step"].to_pylist()))
    parts = [
        reduce_step(Step(number), joined["steps"], joined["collectives"], joined["links"], where)
        for number in numbers
    ]
    return merge_steps(parts, joined["operators"], joined["packets"])


def ranks_of(fault: Fault) -> set[int]:
    """Ranks at which a fault of one rank or link sits."""
    return set(fault.ranks) | {rank for link in fault.links for rank in link}


def true_saving_share(finding: Finding, job: SimulatedJob) -> float:
    """What making a rank or host as its peers truly saves, as share of the step; 0 for all other findings.

    They differ by nature: one device in a hundred computes a few percent longer, one host of a few idles
    half as long again as the others, and a rank pauses in some steps. Some of them cost as much as a fault.
    """
    if finding.kind == "periodic_pause":
        healthy = replace(job.spec.healthy, hiccup_free=tuple(map(int, finding.ranks)))
        spec = replace(job.spec, healthy=healthy)
        return 1.0 - simulate(spec, list(job.faults), seed=job.seed).step_ms / job.step_ms
    if finding.kind not in ("slow_rank", "slow_host") or finding.cause not in ("compute", "dispatch"):
        return 0.0
    row, ranks = finding.evidence[0], tuple(map(int, finding.ranks))
    severity = row.peers_median / row.value
    if finding.cause == "dispatch":  # idle time is added as a share of the step
        severity = 1.0 - (row.value - row.peers_median) / (job.spec.nominal_step_ms * 1e3)
    as_peers = Fault("slow_rank", severity, ranks=ranks, cause=finding.cause)
    return 1.0 - simulate(job.spec, [*job.faults, as_peers], seed=job.seed).step_ms / job.step_ms


def is_unseen(job: SimulatedJob, hidden: set[int]) -> bool:
    """Whether all links that a fault slows are in files that are missing: nobody finds what no file shows."""
    used = truth(job).faults[0].used_links if job.faults else ()
    return bool(used) and {source for source, _ in used} <= hidden
