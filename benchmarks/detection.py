"""How well the detection names culprits and costs, on simulated jobs with known faults.

    python -m benchmarks.detection [--seeds report|develop] [--faults N] [--healthy N] [--processes N]

Prints one table for plain and one for hard jobs: this detection beside three rules of the field. `develop`
seeds are for looking at single jobs; `report` seeds are only ever looked at in sum.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from benchmarks.field_rules import RULES, Named
from cluster_analysis.judge.detection import detect
from cluster_analysis.replay.job_evidence import JobEvidence, merge_steps
from cluster_analysis.tables.model import Topology
from cluster_analysis.trace.reduction import reduce_step
from cluster_run.findings import Finding
from cluster_run.ids import Step
from cluster_simulate.api import (
    Fault,
    Healthy,
    JobSpec,
    Noise,
    SimulatedJob,
    parse_scenario,
    simulate,
    tables,
    topology,
    truth,
)
from cluster_simulate.job.truth import TrueFault

FIRST_SEED = {"develop": 1_000, "report": 700_000}
#: Faults from this share of the step on must be alarms; below, a line of information.
MATERIAL_SHARE = 0.01

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


@dataclass(frozen=True)
class Outcome:
    """One job: what our findings and the field's rules made of it."""

    mode: str
    is_healthy: bool
    is_material: bool
    found: bool
    first_is_right: bool
    n_wrong: int
    is_wrong_kind: bool
    noted: bool
    n_alarms: int
    cost_error_share: float | None
    replay_error_share: float | None
    rules: tuple[tuple[bool, bool, int], ...]
    line: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", choices=sorted(FIRST_SEED), default="report")
    parser.add_argument("--faults", type=int, default=108, help="faulty jobs of each mode")
    parser.add_argument("--healthy", type=int, default=60, help="healthy jobs of each mode")
    parser.add_argument("--mode", choices=("plain", "hard", "both"), default="both")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    first = FIRST_SEED[options.seeds]
    work = [
        (mode, first + base + number, number if kind == "fault" else -1)
        for base, mode in ((0, "plain"), (100_000, "hard"))
        if options.mode in (mode, "both")
        for kind, count in (("fault", options.faults), ("healthy", options.healthy))
        for number in range(count)
    ]
    begun = time.monotonic()
    with multiprocessing.Pool(options.processes) as pool:
        outcomes = []
        for outcome in pool.imap_unordered(judge_job, work):
            outcomes.append(outcome)
            if options.seeds == "develop" and outcome.line:
                print(outcome.line, flush=True)
            if sys.stderr.isatty():
                print(f"\r{len(outcomes)} of {len(work)} jobs", end="", file=sys.stderr)
    for mode in dict.fromkeys(mode for mode, _, _ in work):
        print_table(mode, [one for one in outcomes if one.mode == mode])
    print(f"\n{len(work)} jobs in {time.monotonic() - begun:.0f} s, {options.seeds} seeds from {first}")
    return 0


def judge_job(work: tuple[str, int, int]) -> Outcome:
    """Simulate one job, judge it, and hold the answer against the truth."""
    mode, seed, number = work
    spec = job_spec(mode, seed)
    scenarios = [parse_scenario(FAULTS[number % len(FAULTS)])] if number >= 0 else []
    job = simulate(spec, scenarios, seed=seed)
    hidden = set(spec.healthy.missing_ranks)
    if any(hidden & ranks_of(fault) for fault in job.faults) or is_unseen(job, hidden):
        spec = replace(spec, healthy=replace(spec.healthy, missing_ranks=()))
        job = simulate(spec, scenarios, seed=seed)
    where = topology(job)
    evidence = evidence_of(job, where)
    detection = detect(evidence, where)
    named = [rule(evidence, where) for rule in RULES.values()]
    alarms = [one for one in detection.findings if one.is_alarm]
    replay = detection.replay.get("error_share")
    if number < 0:
        wrong = [one for one in alarms if true_saving_share(one, job) < MATERIAL_SHARE]
        line = f"ALARM {mode} {seed} {[one.id for one in alarms]}" if alarms else ""
        rules = tuple((False, False, len(one.ranks)) for one in named)
        return Outcome(
            mode, True, False, False, False, len(wrong), False, False, len(alarms), None, replay, rules, line
        )
    fault = truth(job).faults[0]
    right = [one for one in alarms if is_right(one, fault, job)]
    cost = right[0].cost_ms_per_step if right else None
    wrong = [one for one in alarms if one not in right]
    missed = fault.cost_share >= MATERIAL_SHARE and (not right or bool(wrong))
    return Outcome(
        mode=mode,
        is_healthy=False,
        is_material=fault.cost_share >= MATERIAL_SHARE,
        found=bool(right),
        first_is_right=bool(alarms) and is_right(alarms[0], fault, job),
        n_wrong=len(wrong),
        is_wrong_kind=not right and any(touches(one, fault, job) for one in wrong),
        noted=any(is_right(one, fault, job) for one in detection.findings),
        n_alarms=len(alarms),
        cost_error_share=None if cost is None else abs(cost - fault.cost_ms_per_step) / job.step_ms,
        replay_error_share=replay,
        rules=tuple(_rule_outcome(one, fault, job) for one in named),
        line=f"{'MISSED' if not right else 'EXTRA'} {mode} {seed} {FAULTS[number % len(FAULTS)]} "
        f"{fault.cost_share:.1%} {[(one.id, one.cost_share) for one in detection.findings[:4]]}"
        if missed
        else "",
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


def evidence_of(job: SimulatedJob, where: Topology) -> JobEvidence:
    """Parsed tables to evidence, as the engine does it."""
    ranks = list(tables(job).values())
    joined = {
        name: pa.concat_tables([getattr(one, name) for one in ranks]).unify_dictionaries()
        for name in ("steps", "collectives", "links", "operators", "packets")
    }
    numbers = sorted(set(joined["steps"]["step"].to_pylist()))
    parts = [
        reduce_step(Step(number), joined["steps"], joined["collectives"], joined["links"], where)
        for number in numbers
    ]
    return merge_steps(parts, where, joined["operators"], joined["packets"])


def is_right(finding: Finding, fault: TrueFault, job: SimulatedJob) -> bool:
    """Same kind, same entity. A NIC seen on one link only may be called that link, if that is said."""
    pairs = {frozenset((int(link.src), int(link.dst))) for link in finding.links}
    if fault.kind in ("slow_nic", "slow_host_pair") and finding.kind == "slow_link":
        return not finding.separable and any(set(fault.ranks) & pair for pair in pairs)
    if finding.kind != fault.kind:
        return False
    if fault.kind in ("slow_link", "retransmission"):
        return {frozenset(link) for link in fault.links} <= pairs
    if fault.kind in ("slow_host", "slow_uplink", "slow_host_pair"):
        return set(finding.hosts) == set(fault.hosts)
    return tuple(finding.ranks) == tuple(fault.ranks)


def touches(finding: Finding, fault: TrueFault, job: SimulatedJob) -> bool:
    """Whether a finding is about the right place, whatever it says of it."""
    ranks = {int(rank) for rank in finding.ranks} | {
        int(end) for link in finding.links for end in (link.src, link.dst)
    }
    return bool(ranks & fault_ranks(fault))


def ranks_of(fault: Fault) -> set[int]:
    """Ranks at which a fault of one rank or link sits."""
    return set(fault.ranks) | {rank for link in fault.links for rank in link}


def true_saving_share(finding: Finding, job: SimulatedJob) -> float:
    """What making a device as fast as its peers truly saves, as share of the step; 0 for all other findings.

    Devices differ by nature, one in a hundred by a few percent: some of them cost as much as a fault.
    """
    if (finding.kind, finding.cause) != ("slow_rank", "compute"):
        return 0.0
    row = finding.evidence[0]
    as_peers = Fault(
        "slow_rank", row.peers_median / row.value, ranks=tuple(map(int, finding.ranks)), cause="compute"
    )
    return 1.0 - simulate(job.spec, [*job.faults, as_peers], seed=job.seed).step_ms / job.step_ms


def is_unseen(job: SimulatedJob, hidden: set[int]) -> bool:
    """Whether all links that a fault slows are in files that are missing: nobody finds what no file shows."""
    used = truth(job).faults[0].used_links if job.faults else ()
    return bool(used) and {source for source, _ in used} <= hidden


def fault_ranks(fault: TrueFault) -> set[int]:
    """All ranks that a fault has to do with."""
    return set(fault.ranks) | {rank for link in fault.links for rank in link}


def _rule_outcome(named: Named, fault: TrueFault, job: SimulatedJob) -> tuple[bool, bool, int]:
    """(found, first one right, wrong ones) of a rule; any rank of a host and either end of a link will do."""
    ranks = fault_ranks(fault)
    wrong = [rank for rank in named.ranks if rank not in ranks]
    return (
        any(rank in ranks for rank in named.ranks),
        bool(named.ranks) and named.ranks[0] in ranks,
        len(wrong),
    )


def print_table(mode: str, outcomes: list[Outcome]) -> None:
    """One row a method."""
    material = [one for one in outcomes if one.is_material]
    healthy = [one for one in outcomes if one.is_healthy]
    small = [one for one in outcomes if not one.is_material and not one.is_healthy]
    print(
        f"\n{mode}: {len(material)} faults of 1 % of the step or more, {len(small)} smaller, "
        f"{len(healthy)} healthy jobs"
    )
    print(
        f"{'method':28} {'precision':>9} {'recall':>7} {'F1':>6} {'top-1':>6} "
        f"{'healthy jobs with an alarm':>27}"
    )
    hits = [(one.found, one.first_is_right, one.n_wrong) for one in material]
    _print_row("this detection", hits, sum(one.n_alarms > 0 for one in healthy), len(healthy))
    for number, name in enumerate(RULES):
        named = sum(one.rules[number][2] > 0 for one in healthy)
        _print_row(name, [one.rules[number] for one in material], named, len(healthy))
    errors = sorted(one.cost_error_share for one in material if one.cost_error_share is not None)
    replays = sorted(one.replay_error_share for one in outcomes if one.replay_error_share is not None)
    unwanted = sum(one.n_alarms > 0 for one in healthy)
    false = sum(one.n_wrong > 0 for one in healthy)
    print(
        f"of the {unwanted} alarms on healthy jobs {false} accuse falsely: what the others name is slow by "
        f"nature, and truly costs {MATERIAL_SHARE:.0%} of the step or more"
    )
    wrong_kind = sum(one.is_wrong_kind for one in material)
    print(
        f"wrong kind: {wrong_kind} of {len(material)}; "
        f"noted below 1 %: {sum(one.noted for one in small)} of {len(small)}"
    )
    print(f"cost error, share of the step: median {_at(errors, 0.5):.3%}, 90 % {_at(errors, 0.9):.3%}")
    print(
        f"replay error: median {_at(replays, 0.5):.3%}, 90 % {_at(replays, 0.9):.3%}, "
        f"worst {_at(replays, 1.0):.2%}"
    )


def _print_row(name: str, hits: Iterable[tuple[bool, bool, int]], alarms: int, n_healthy: int) -> None:
    hits = list(hits)
    right, wrong = sum(found for found, _, _ in hits), sum(n for _, _, n in hits)
    recall = right / max(len(hits), 1)
    precision = right / max(right + wrong, 1)
    f1 = 2 * precision * recall / max(precision + recall, 1e-9)
    top = sum(first for _, first, _ in hits) / max(len(hits), 1)
    print(f"{name:28} {precision:9.3f} {recall:7.3f} {f1:6.3f} {top:6.3f} {alarms:15} of {n_healthy}")


def _at(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


if __name__ == "__main__":
    sys.exit(main())
