"""What is said of ranks that lose time by themselves: the suspect, and how far its steps confirm it."""

from __future__ import annotations

import math

import numpy as np
from msgspec.structs import replace

from cluster_analysis.judge.measures.idle import lost_always_us, lost_at_times_us
from cluster_analysis.judge.measures.local_times import LocalTime
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.stats import median
from cluster_analysis.thresholds.common import HALFWAY
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.facts import Value, fact
from cluster_run.findings import Evidence
from cluster_run.kinds import FaultKind


def late_suspect(
    view: JobView, local: LocalTime, own: IntArray, course: FloatArray, events: BoolArray | None = None, *,
    scale: float, n_others: int, n_hosts: int = 0, lasts: bool = True,
) -> Suspect:  # fmt: skip
    """Return the suspect of ranks that lose time: a rank, or those of one host.

    Args:
        local: what is too long.
        own: positions of the ranks.
        course: by how much in each step (S,), or each of them (K, S), in the unit of `local.values`.
        events: steps (S,) in which they are late, and lose anything; None for all.
        scale: what a healthy level scatters by, in the unit of `local.values`.
        n_others: ranks that they were compared with.
        n_hosts: as many other hosts, of a host.
        lasts: whether they are late in nearly all steps.
    """
    inside = np.ones(len(view.steps), bool) if events is None else events
    time_us, place = np.nan_to_num(local.time_us[own]), local.name
    excess_us, head_us = np.zeros(local.time_us.shape), None
    course = np.where(inside, course, 0.0)
    most_us = time_us if local.is_computing else np.nan_to_num(view.likely_idle_us[own])
    excess_us[own] = np.clip(time_us * -np.expm1(-course) if local.is_computing else course, 0.0, most_us)
    if not local.is_computing:
        head_us = np.zeros(excess_us.shape)
        lost_us = lost_always_us if lasts else lost_at_times_us
        head_us[own] = np.minimum(lost_us(view, own, view.preparing_us), excess_us[own])
        place = "preparing" if head_us.sum() >= HALFWAY * excess_us.sum() else "free"
    course = course if course.ndim == 1 else course.mean(axis=0)
    own_us, level = float(median(local.time_us[own][:, inside])), float(median(course[inside]))
    peers_us = own_us * math.exp(-level) if local.is_computing else max(own_us - level, 0.0)
    more = {"slower_share": math.expm1(level)} if local.is_computing else {"more_us": own_us - peers_us}
    is_host, role = len(own) > 1, view.role_name(int(view.role[own[0]]))
    context: dict[str, Value] = {"n_peers": n_others, "role": role, "n_steps": len(view.steps)}
    if is_host:
        context = {"ranks": view.rank_ids(own), "n_hosts": n_hosts}
    ranks = view.rank_ids(np.flatnonzero(view.host == view.host[own[0]]) if is_host else own)
    hosts = view.hosts_of_ranks(ranks)
    kind: FaultKind = "slow_host" if is_host else "slow_rank"
    fact_kind = f"{'host' if is_host else 'rank'}_{place}"
    spread = float(scale * (peers_us if local.is_computing else 1.0))
    doubt = (fact("computing_or_idle"),) if local.is_computing and local.has_idle else ()
    return Suspect(
        key=f"{kind}-{hosts[0] if is_host else view.ranks[own[0]]}",
        kind=kind,
        metric=local.name,
        ranks=ranks,
        hosts=hosts,
        cause="input" if place == "preparing" else local.cause,
        pattern="persistent" if events is None else "intermittent",
        step_positions=tuple(np.flatnonzero(inside & (course >= HALFWAY * level)).tolist()),
        evidence=(Evidence(f"{local.name}_us", own_us, peers_us, spread, n_others),),
        facts=(fact(fact_kind, **more, **context), *doubt),
        excess_us=excess_us,
        head_us=head_us,
    )


def confirmed(view: JobView, suspect: Suspect, limits: Thresholds) -> Suspect:
    """Return the suspect as far as its steps confirm it: fully from three on.

    Slow in no one place of a step it is an alarm of medium confidence. Where computing has too few places to
    tell, a large difference is one of low confidence: a pause does not lengthen it. All else stays open.
    Late starts happen once a step, so that nothing within a step can confirm them. No pause lies in all ranks
    of a host: it must compute longer than by nature, or be idle a multiple of its peers' time.
    """
    if len(view.steps) >= limits.min_steps_confident:
        return suspect
    excess, is_computing = suspect.evidence[0].beyond_share, suspect.cause == "compute"
    is_long = excess >= (limits.natural_effect if is_computing else limits.single_step_idle_factor - 1.0)
    rank, in_all = view.position_of(suspect.ranks[0]), np.ones(len(view.steps), bool)
    is_spread = suspect.is_slow_host or not view.in_one_gap(rank, in_all)
    if is_long and is_spread and suspect.cause != "input":
        return replace(suspect, confidence="medium")
    said = fact("moment_or_fault", n_steps=len(view.steps))
    doubted = replace(suspect, confidence="low", facts=(*suspect.facts, said))
    is_large = is_computing and excess >= limits.single_step_device_effect
    return doubted if is_large else replace(doubted, pattern="transient", is_alarm=False)
