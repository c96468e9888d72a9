"""The local times that make a rank late, and what is said of them."""

from __future__ import annotations

import math
from typing import cast

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cluster_analysis.judge.measures.idle import lost_always_us, lost_at_times_us
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.stats import median
from cluster_analysis.thresholds.common import HALFWAY, TWICE
from cluster_analysis.thresholds.devices import HEALTHY_SIGMA
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.facts import FindingFact, Value, fact
from cluster_run.findings import Cause, Evidence
from cluster_run.kinds import FaultKind


class Metric(Struct, frozen=True):
    """One part of a rank's local time. `values` is what is compared: ln of µs, or µs.

    `healthy` is what healthy ranks are known to scatter by; 0 if nothing is. `follows_work`: what a rank was
    given to do may lengthen it, samples or experts' tokens. `has_idle`: idle time is in it, which has
    accidents; computing has none, it is what kernels took. `of_all`: all ranks of the job are peers in it,
    whatever their role. `places`: the parts of a step that it is the sum of, each with its own scatter.
    """

    name: str
    cause: Cause
    values: FloatArray
    time_us: FloatArray
    floor: float
    effect: float
    is_log: bool
    healthy: float = 0.0
    follows_work: bool = False
    has_idle: bool = True
    of_all: bool = False
    places: tuple[Metric, ...] = ()

    @property
    def event_effect(self) -> float:
        """Less is no event in a single step: there idle time has more chance."""
        return self.effect if self.is_log else TWICE * self.effect


def metrics(view: JobView, limits: Thresholds) -> tuple[Metric, ...]:
    """Computing, and idle time, wherever the first operator of a step falls.

    Of computing that of experts, whose load is nobody's fault, is left out where it is known.
    """
    # Files of r1.x count idle time as computing.
    step_us, has_idle = view.mean_step_us, not np.nansum(view.free_us) > 0
    computed_us = view.computing_us if view.dense_us is None else view.dense_us
    log_computing = np.log(np.where(computed_us > 0, computed_us, np.nan))
    is_short = len(view.steps) < limits.min_steps_confident
    floor, effect = limits.floor * step_us, limits.local_effect_share_of_step * step_us
    idle, *places = (
        Metric("idle", "dispatch", time_us, time_us, floor, effect, False)
        for time_us in (view.idle_us, view.preparing_us, view.idled_us)
    )
    return (
        replace(idle, places=tuple(one for one in places if np.isfinite(one.values).any())),
        Metric(
            "computing", "unknown" if has_idle else "compute", log_computing, view.computing_us,
            limits.floor_single if is_short else limits.floor, limits.device_effect, True,
            healthy=HEALTHY_SIGMA, follows_work=True,
            has_idle=has_idle,
        ),
    )  # fmt: skip


def late(
    view: JobView,
    metric: Metric,
    own: IntArray,
    course: FloatArray,
    events: BoolArray | None = None,
    *,
    scale: float,
    n_others: int,
    n_hosts: int = 0,
    lasts: bool = True,
) -> Suspect:
    """Return the suspect of ranks that lose time: a rank, or those of one host.

    Args:
        metric: what is too long.
        own: positions of the ranks.
        course: by how much in each step (S,), or each of them (K, S), in the metric's unit.
        events: steps (S,) in which they are late, and lose anything; None for all.
        scale: what a healthy level scatters by, in the metric's unit.
        n_others: ranks that they were compared with.
        n_hosts: as many other hosts, of a host.
        lasts: whether they are late in nearly all steps.
    """
    inside = np.ones(len(view.steps), bool) if events is None else events
    time_us, place = np.nan_to_num(metric.time_us[own]), metric.name
    excess_us, head_us = np.zeros(metric.time_us.shape), None
    course = np.where(inside, course, 0.0)
    most_us = time_us if metric.is_log else np.nan_to_num(view.likely_idle_us[own])
    excess_us[own] = np.clip(time_us * -np.expm1(-course) if metric.is_log else course, 0.0, most_us)
    if not metric.is_log:
        head_us = np.zeros(excess_us.shape)
        lost_us = lost_always_us if lasts else lost_at_times_us
        head_us[own] = np.minimum(lost_us(view, own, view.preparing_us), excess_us[own])
        place = "preparing" if head_us.sum() >= HALFWAY * excess_us.sum() else "free"
    course = course if course.ndim == 1 else course.mean(axis=0)
    own_us, level = float(median(metric.time_us[own][:, inside])), float(median(course[inside]))
    peers_us = own_us * math.exp(-level) if metric.is_log else max(own_us - level, 0.0)
    more = {"slower_share": math.expm1(level)} if metric.is_log else {"more_us": own_us - peers_us}
    is_host, role = len(own) > 1, view.role_name(int(view.role[own[0]]))
    context: dict[str, Value] = {"n_peers": n_others, "role": role, "n_steps": len(view.steps)}
    if is_host:
        context = {"ranks": view.rank_ids(own), "n_hosts": n_hosts}
    ranks = view.rank_ids(np.flatnonzero(view.host == view.host[own[0]]) if is_host else own)
    hosts = view.hosts_of_ranks(ranks)
    kind: FaultKind = "slow_host" if is_host else "slow_rank"
    fact_kind = cast(FindingFact, f"{'host' if is_host else 'rank'}_{place}")
    spread = float(scale * (peers_us if metric.is_log else 1.0))
    doubt = (fact("computing_or_idle"),) if metric.is_log and metric.has_idle else ()
    return Suspect(
        key=f"{kind}-{hosts[0] if is_host else view.ranks[own[0]]}",
        kind=kind,
        metric=metric.name,
        ranks=ranks,
        hosts=hosts,
        cause="input" if place == "preparing" else metric.cause,
        pattern="persistent" if events is None else "intermittent",
        step_positions=tuple(np.flatnonzero(inside & (course >= HALFWAY * level)).tolist()),
        evidence=(Evidence(f"{metric.name}_us", own_us, peers_us, spread, n_others),),
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
    row, is_computing = suspect.evidence[0], suspect.cause == "compute"
    excess = row.value / row.peers_median - 1.0 if row.peers_median > 0 else np.inf
    is_multiple = 1.0 + excess >= limits.single_step_idle_factor
    is_long = excess >= limits.natural_effect if is_computing else is_multiple
    rank, in_all = view.position_of(suspect.ranks[0]), np.ones(len(view.steps), bool)
    is_spread = suspect.is_slow_host or not view.in_one_gap(rank, in_all)
    if is_long and is_spread and suspect.cause != "input":
        return replace(suspect, confidence="medium")
    said = fact("moment_or_fault", n_steps=len(view.steps))
    doubted = replace(suspect, confidence="low", facts=(*suspect.facts, said))
    is_large = is_computing and excess >= limits.single_step_device_effect
    return doubted if is_large else replace(doubted, pattern="transient", is_alarm=False)
