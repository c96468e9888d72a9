"""From the evidence of a job to findings: what is slow, why, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from msgspec import Struct

from cluster_analysis.judge.case import build_case
from cluster_analysis.judge.cost.ideal import Ideal, lost_parts
from cluster_analysis.judge.cost.whatif import WhatIf
from cluster_analysis.judge.detectors import (
    pauses,
    slow_host,
    slow_network,
    slow_rank,
    uneven_host,
    whole_job,
    workload,
)
from cluster_analysis.judge.gates import Context, finding_of, less_sure
from cluster_analysis.judge.measures.links import link_summary
from cluster_analysis.judge.open_questions import (
    can_judge,
    few_peers,
    open_questions,
    uncompared_network,
    what_is_missing,
)
from cluster_analysis.judge.reasons import with_counters, with_kernels
from cluster_analysis.judge.suspects import Suspect, hosts_or_their_ranks, with_alike_as_one
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.stats import group_medians, median
from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.tables.model import Topology
from cluster_analysis.thresholds.common import HALFWAY
from cluster_analysis.thresholds.judging import N_CHAINS, N_PEERS_NAMED, N_PLACEBOS
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.facts import Fact, fact
from cluster_run.findings import WARNING_COST_SHARE, Finding, LostPart, Verdict, unless_open
from cluster_run.ids import Rank

#: In their order: each gives the parts that may have lost time, and gets what those before it gave.
DETECTORS = (
    slow_host.detect,
    slow_host.holding_a_stage,
    uneven_host.detect,
    pauses.detect,
    slow_rank.detect,
    pauses.by_turns,
    workload.detect,
    slow_network.detect,
    whole_job.detect,
)


class Detection(Struct, frozen=True):
    """The outcome: findings, alarms first, by cost, what could not be judged, and LINK_SUMMARY.

    `replay` says how far the replay may be trusted: `error_share` (replayed against measured step),
    `mean_error_share` (the same of the mean step), `step_ms` (replayed), `copied_waiting_share` (of all
    waiting, what no repair can shorten), and `placebo_ms` (the most that "repairing" a healthy rank seems to
    save). `step_ms` is the mean step time, None without any step.
    """

    findings: tuple[Finding, ...]
    verdict: Verdict
    notes: tuple[Fact, ...]
    replay: Mapping[str, float]
    step_ms: float | None
    links: pa.Table
    ideal: Ideal | None = None
    lost: tuple[LostPart, ...] = ()


def detect(
    evidence: JobEvidence, topology: Topology, thresholds: Thresholds | None = None, *,
    prior: Mapping[int, float] | None = None,
) -> Detection:  # fmt: skip
    """Judge a job.

    Args:
        evidence: all steps that could be read.
        topology: hosts, groups and stages; roles may be unknown.
        thresholds: None for the documented defaults.
        prior: probability that the device of a rank is slow, from other runs.
    """
    limits = thresholds or Thresholds()
    if not evidence.step_table.num_rows:
        notes = [*evidence.notes, fact("no_step_times")]
        return Detection((), "unknown", tuple(notes), {}, None, link_summary(None))
    case = build_case(evidence, topology, limits)
    view = case.view
    suspects: list[Suspect] = []
    for detector in DETECTORS:
        suspects += detector(case, tuple(suspects))
    suspects = with_alike_as_one(hosts_or_their_ranks(suspects), len(view.hosts))
    what_if = WhatIf(view)
    suspects = with_kernels(case.kernels, view, _worth_costing(suspects, view, limits))
    suspects = with_counters(evidence.counters, view, suspects)
    savings = what_if.savings(suspects, refuse_above=limits.replay_refuse)
    ideal = what_if.ideal(suspects, savings)  # before the next line holds the waiting of all calls
    replay = _replay_quality(view, what_if, suspects)
    step_us = view.mean_step_us
    context = Context(
        view, limits, step_us,
        chance_us=limits.placebo_factor * 1e3 * replay.get("placebo_ms", 0.0),
        error_share=replay.get("error_share", 0.0),
        mean_error_share=replay.get("mean_error_share", 0.0),
        copied_share=replay.get("copied_waiting_share", 0.0),
        holds_the_step=what_if.copied is not None and what_if.copied.holds_the_step,
        prior=prior or {},
    )  # fmt: skip
    findings = [finding_of(one, saving, context) for one, saving in zip(suspects, savings, strict=True)]
    findings = _with_chains(_without_doubles(findings), suspects, what_if)
    findings = _with_peers(_listed(findings, len(view.steps), limits, step_us / 1e3), view)
    findings.sort(key=lambda one: (not one.is_alarm, -(one.cost_ms_per_step or 0.0), one.id))
    notes = [*few_peers(case, suspects), *what_is_missing(view, evidence)]
    if context.mean_error_share > limits.replay_mean_doubt:
        notes.append(fact("replay_off", error_share=context.mean_error_share))
    verdict: Verdict = "degraded" if any(one.is_alarm for one in findings) else "healthy"
    asked = [one for one in findings if not case.is_known_work(one.record.unit)]
    questions = open_questions(view, evidence, asked, limits, context.copied_share)
    if verdict == "healthy":
        questions += uncompared_network(case)
        most_us, ranks = what_if.most_of_one_host(limits.open_cost_share * step_us)
        if ranks:
            questions.append(fact("host_may_cost", ranks=ranks, step_share=most_us / step_us))
        if view.inside_share >= limits.open_cost_share:
            questions.append(fact("waited_inside", step_share=view.inside_share))
    if context.is_far_off:
        questions.append(fact("replay_far_off"))
    step_share = what_if.copied.step_share if what_if.copied else 0.0
    if context.copied_share > HALFWAY or step_share >= limits.open_cost_share:
        questions.append(fact("waiting_copied", share=context.copied_share, step_share=step_share))
    notes += questions
    verdict = unless_open(verdict, notes, lacks=not can_judge(view, limits))
    return Detection(
        tuple(findings), verdict, tuple(dict.fromkeys((*evidence.notes, *notes))), replay,
        step_us / 1e3 if step_us > 0 else None, link_summary(case.links),
        ideal, () if ideal is None else lost_parts(ideal, findings),
    )  # fmt: skip


def _worth_costing(suspects: Sequence[Suspect], view: JobView, limits: Thresholds) -> list[Suspect]:
    """All suspects that may cost what a warning does, and those next to them that may be listed.

    There is no limit to their number: what is dropped here appears in no report.
    """
    bound_us = [one.most_us(view.graph) for one in suspects]
    order = sorted(range(len(suspects)), key=lambda at: (-bound_us[at], suspects[at].key))
    least_us = WARNING_COST_SHARE * view.mean_step_us
    n_costly = sum(not bound < least_us for bound in bound_us)
    return [suspects[at] for at in order[: n_costly + limits.max_info]]


def _replay_quality(view: JobView, what_if: WhatIf, suspects: list[Suspect]) -> dict[str, float]:
    """How far costs may be trusted: the replay's error, and what "repairing" healthy ranks would save."""
    if what_if.replay is None:
        return {}
    suspected = {rank for one in suspects if one.is_alarm for rank in one.ranks}
    healthy = np.flatnonzero([int(rank) not in suspected for rank in view.ranks])
    local = view.computing_us - group_medians(view.computing_us, view.role)
    usual = np.broadcast_to(median(local, 1)[:, None], local.shape)
    chosen = healthy[:: max(1, len(healthy) // N_PLACEBOS)][:N_PLACEBOS]
    return {
        "error_share": round(what_if.replay.error_share, 6),
        "mean_error_share": round(what_if.replay.mean_error_share, 6),
        "step_ms": round(float(what_if.replay.step_us.mean()) / 1e3, 3),
        "copied_waiting_share": round(what_if.copied.share if what_if.copied else 0.0, 4),
        "placebo_ms": round(what_if.placebo_us(np.nan_to_num(usual), chosen) / 1e3, 3),
    }


def _without_doubles(findings: list[Finding]) -> list[Finding]:
    """At most one finding a name: the costlier one of a rank late in two ways, with the evidence of both.

    It is an alarm if one of the two is. If both costs matter, it has the lower confidence of the two.
    """
    best: dict[str, Finding] = {}
    for one in sorted(findings, key=lambda finding: -(finding.cost_ms_per_step or 0.0)):
        first = best.get(one.id)
        if first is None:
            best[one.id] = one
        else:
            severity = first.severity if first.is_alarm else one.severity
            matters = (one.cost_share or 0.0) >= WARNING_COST_SHARE
            confidence = less_sure(first.confidence, one.confidence) if matters else first.confidence
            evidence = (*first.evidence, *one.evidence)
            best[one.id] = replace(first, severity=severity, evidence=evidence, confidence=confidence)
    return list(best.values())


def _with_chains(findings: list[Finding], suspects: list[Suspect], what_if: WhatIf) -> list[Finding]:
    """Add to the costliest alarms who waits for them."""
    by_key = {(one.key, one.cause): one for one in suspects}
    costliest = sorted(findings, key=lambda one: -(one.cost_ms_per_step or 0.0))
    chosen = [one.id for one in costliest if one.is_alarm and one.record.is_fault][:N_CHAINS]
    return [
        replace(one, chain=what_if.chain(by_key[one.id, one.cause])) if one.id in chosen else one
        for one in findings
    ]


def _listed(findings: list[Finding], n_steps: int, limits: Thresholds, step_ms: float) -> list[Finding]:
    """All alarms and workload verdicts, and the costliest few of the rest.

    With one or two steps only costly ones of the rest are listed: many ranks are slow for a moment.
    """
    rest = [one for one in findings if not one.is_alarm and one.record.is_fault]
    rest.sort(key=lambda one: (-(one.cost_ms_per_step or 0.0), one.id))
    unknown = [one.id for one in rest if one.cost_ms_per_step is None]
    least_ms = 0.0 if n_steps >= limits.min_steps_confident else limits.sure_cost_share * step_ms
    kept = [one.id for one in rest if (one.cost_ms_per_step or 0.0) >= least_ms][: limits.max_info]
    dropped = {one.id for one in rest} - {*unknown, *kept}
    # Every job has some pauses: their sum is news once it is costly.
    least_ms = limits.sure_cost_share * step_ms
    sums = [one for one in findings if one.record.part == "pauses" and len(one.ranks) > 1]
    dropped |= {one.id for one in sums if (one.cost_high_ms or 0.0) < least_ms}
    return [one for one in findings if one.id not in dropped]


def _with_peers(findings: Sequence[Finding], view: JobView) -> list[Finding]:
    """Give findings that name ranks or links the nearest peers of the first rank that no alarm names."""
    accused = {rank for one in findings if one.is_alarm for rank in _named(one)}
    return [replace(one, peers=_peers(one, view, accused)) for one in findings]


def _named(finding: Finding) -> tuple[Rank, ...]:
    ends = (end for link in finding.links for end in (link.src, link.dst))
    return finding.ranks or tuple(dict.fromkeys(ends))


def _peers(finding: Finding, view: JobView, accused: set[Rank]) -> tuple[Rank, ...]:
    named = _named(finding)
    if not named or named[0] not in view.ranks:
        return ()
    others = {*view.rank_ids(view.peers_of(view.position_of(named[0])))} - accused - {*named}
    nearest = sorted(others, key=lambda rank: (abs(rank - named[0]), rank))
    return tuple(sorted(nearest[:N_PEERS_NAMED]))
