"""Hold findings against what is true of a job: what is right, wrong, of the wrong kind, and missed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.detection.field_rules import Named as NamedByRule
from benchmarks.models.truth import KnownFault, KnownJob
from cluster_run.findings import WARNING_COST_SHARE, Finding
from cluster_run.kinds import FAULT_KINDS

#: Faults from this share of the step on must be alarms; below, a line of information. An alarm that names
#: what truly costs as much is no false one, whether or not somebody put it there.
MATERIAL_SHARE = 0.01
#: A job that loses this much to a fault must not be called healthy.
DEAR_SHARE = 0.05
#: What the job's own split of its work costs.
UNEVEN_WORK = frozenset({"stage_imbalance", "data_imbalance", "expert_imbalance"})


@dataclass(frozen=True)
class Outcome:
    """One job: what our findings and the field's rules made of it. Counts are of material faults."""

    source: str
    mode: str
    seed: int
    fault_class: str
    is_healthy: bool
    n_material: int
    n_found: int
    first_is_right: bool
    n_wrong: int
    n_wrong_kind: int
    n_small: int
    n_noted: int
    n_alarms: int
    cost_error_shares: tuple[float, ...]
    n_without_cost: int
    replay_error_share: float | None
    is_reassured: bool
    rules: Mapping[str, tuple[int, bool, int]]
    line: str


@dataclass(frozen=True)
class Said:
    """What was said of a job."""

    verdict: str
    findings: tuple[Finding, ...]
    replay_error_share: float | None
    rules: Mapping[str, NamedByRule]


def score(source: str, job: KnownJob, said: Said) -> Outcome:
    """Return how right what was said is."""
    alarms = [one for one in said.findings if one.is_alarm]
    material = [one for one in job.faults if one.cost_ms >= MATERIAL_SHARE * job.step_ms]
    small = [one for one in job.faults if one not in material]
    found = {
        fault: [one for one in said.findings if is_told(one) and is_right(one, fault)] for fault in job.faults
    }
    wrong = [one for one in alarms if is_wrong(one, job)]
    missed = [fault for fault in material if not found[fault]]
    errors = [cost_error_ms(found[fault], fault) for fault in material if is_costed(found[fault], fault)]
    # Uneven work is no part that misbehaves: its cost must be told, and the headline tells it.
    is_blamed = any(one.kind not in UNEVEN_WORK or not found[one] for one in job.faults)
    is_reassured = said.verdict == "healthy" and is_blamed and job.cost_ms >= DEAR_SHARE * job.step_ms
    what = "MISSED" if missed else "WRONG" if wrong else "HEALTHY" if is_reassured else ""
    return Outcome(
        source=source,
        mode=job.mode,
        seed=job.seed,
        fault_class=job.fault_class,
        is_healthy=not job.faults,
        n_material=len(material),
        n_found=len(material) - len(missed),
        first_is_right=any(is_right(alarms[0], one) for one in job.faults) if alarms else not missed,
        n_wrong=len(wrong),
        n_wrong_kind=sum(any(touches(one, fault) for one in wrong) for fault in missed),
        n_small=len(small),
        n_noted=sum(any(is_right(one, fault) for one in said.findings) for fault in small),
        n_alarms=len(alarms),
        cost_error_shares=tuple(one / job.step_ms for one in errors if one is not None),
        n_without_cost=sum(one is None for one in errors),
        replay_error_share=said.replay_error_share,
        is_reassured=is_reassured,
        rules={name: _rule_outcome(one, material) for name, one in said.rules.items()},
        line=_line(what, source, job, said) if what else "",
    )


def is_told(finding: Finding) -> bool:
    """Whether somebody reads it: an alarm, or what a finding about the work itself says costs something.

    Work that is uneven by design is no alarm. So a host that is a whole stage is told where the stage is.
    """
    if finding.is_alarm:
        return True
    return finding.kind not in FAULT_KINDS and (finding.cost_share or 0.0) >= WARNING_COST_SHARE


def is_right(finding: Finding, fault: KnownFault) -> bool:
    """Same kind, same entity. A network card seen on one link may be called that link, if that is said."""
    pairs = {frozenset((int(link.src), int(link.dst))) for link in finding.links}
    if fault.kind in ("slow_nic", "slow_host_pair") and finding.kind == "slow_link":
        return not finding.separable and any(set(fault.ranks) & pair for pair in pairs)
    if finding.kind not in fault.accepted:
        return False
    if fault.links:
        return {frozenset(link) for link in fault.links} <= pairs
    ranks = {int(rank) for rank in finding.ranks}
    if fault.is_of_many:
        return ranks <= set(fault.ranks)
    if fault.kind in ("stalled_groups", "retransmission"):
        named = ranks | {end for pair in pairs for end in pair}
        return bool(named) and named <= set(fault.ranks)
    if fault.hosts and finding.kind in ("slow_host", "slow_uplink", "slow_rack", "slow_host_pair"):
        return any(set(finding.hosts) == set(hosts) for hosts in (fault.hosts, *fault.other_hosts))
    return ranks == set(fault.ranks)


def is_wrong(finding: Finding, job: KnownJob) -> bool:
    """Whether an alarm accuses falsely: another kind in a fault's place, or nothing that truly costs time."""
    if any(is_right(finding, fault) for fault in job.faults):
        return False
    if finding.kind in FAULT_KINDS and any(touches(finding, fault) for fault in job.faults):
        return True
    return job.saving_ms(finding) < MATERIAL_SHARE * job.step_ms


def touches(finding: Finding, fault: KnownFault) -> bool:
    """Whether a finding is about the right place, whatever it says of it."""
    ranks = {int(rank) for rank in finding.ranks}
    ranks |= {int(end) for link in finding.links for end in (link.src, link.dst)}
    return bool(ranks & place(fault))


def place(fault: KnownFault) -> set[int]:
    """Return all ranks that a fault has to do with."""
    return set(fault.ranks) | {rank for link in fault.links for rank in link}


def is_costed(findings: Sequence[Finding], fault: KnownFault) -> bool:
    """Whether findings answer what a fault costs: those about the work say what spreading it evenly saves."""
    return any((one.kind in FAULT_KINDS) == (fault.kind in FAULT_KINDS) for one in findings)


def cost_error_ms(findings: Sequence[Finding], fault: KnownFault) -> float | None:
    """Return how far the costliest right finding is from the truth, None where no cost is quoted.

    Where faults hide each other, what lies between repairing one alone and repairing it last is true.
    """
    costs = [one.cost_ms_per_step for one in findings if one.cost_ms_per_step is not None]
    if not costs:
        return None
    low, high = sorted((fault.cost_ms, fault.marginal_ms))
    return max(0.0, low - max(costs), max(costs) - high)


def _rule_outcome(named: NamedByRule, faults: Sequence[KnownFault]) -> tuple[int, bool, int]:
    """(found, first one right, wrong ones) of a rule; any rank of a host and either end of a link will do."""
    everywhere = set().union(*(place(fault) for fault in faults)) if faults else set()
    return (
        sum(bool(place(fault) & set(named.ranks)) for fault in faults),
        bool(named.ranks) and named.ranks[0] in everywhere,
        sum(rank not in everywhere for rank in named.ranks),
    )


def _line(what: str, source: str, job: KnownJob, said: Said) -> str:
    true = [f"{one.kind} {one.ranks or one.hosts} {one.cost_ms / job.step_ms:.1%}" for one in job.faults]
    told = [
        f"{one.id} {one.severity} {'-' if one.cost_share is None else f'{one.cost_share:.1%}'}"
        for one in said.findings[:5]
    ]
    return (
        f"{what} {source} {job.mode} {job.seed} '{job.fault_class}' [{job.about}] {job.step_ms:.0f} ms a "
        f"step; true: {true}; {said.verdict}: {told}"
    )
