"""Hosts whose ranks idle far longer than their peers, now one of them and now another.

A processor that is nearly too busy holds up each rank in some steps only. The middle of the host's ranks, and
the middle of a rank's steps, show none of it; no rank pauses oftener than by chance. All together do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.measures.metrics import Metric, late
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.stats import binomial_tail, sigma
from cluster_analysis.thresholds.common import FAR_SIGMAS, FEWEST_PEERS, HALFWAY, MOSTLY
from cluster_run.facts import Fact
from cluster_run.findings import Evidence


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give hosts whose ranks idle far longer than their peers in more steps than by chance, all told.

    Several do, beside those that are late in most steps, and no one of them does most of it. Not hosts that
    are slow beyond doubt by the middle of their ranks.
    """
    view, limits, n_steps = case.view, case.limits, len(case.view.steps)
    told = {one.hosts[0] for one in found if one.kind == "slow_host" and one.p_value <= limits.alarm_p_value}
    hosts = np.unique(view.host[view.host >= 0])
    for metric in case.metrics:
        if metric.name != "free" or n_steps < limits.min_steps_confident or len(hosts) < 2:
            continue
        series = case.deviation(metric).series
        for host in hosts.tolist():
            own = np.flatnonzero(view.host == host)
            # Most hosts have nothing that is large enough, and need no look at how all others scatter.
            if view.hosts[host] in told or (series[own] > metric.effect).any(axis=1).sum() < FEWEST_PEERS:
                continue
            events = _events(metric, series, own)
            if not events[own].any():
                continue
            n_events, least_us = events[own].sum(axis=1), series[own][events[own]].min()
            is_always = (series[own] >= HALFWAY * least_us).mean(axis=1) > MOSTLY
            is_few = ((n_events > 0) & ~is_always).sum() < FEWEST_PEERS
            if is_few or n_events.max() > HALFWAY * n_events.sum():
                continue
            p_value = len(hosts) * _chance(series, events, own)
            if p_value <= limits.listed_p_value:
                yield replace(_suspect(case, metric, own, len(hosts) - 1), p_value=p_value)


def _events(metric: Metric, series: FloatArray, own: IntArray) -> BoolArray:
    """When ranks idle far longer than their peers (R, S), by what those of other hosts scatter.

    A host that is a whole stage would hide behind its own scatter.
    """
    others = np.delete(series, own, axis=0)
    scatter = float(sigma(others[np.isfinite(others)])) if np.isfinite(others).any() else np.inf
    with np.errstate(invalid="ignore"):
        return np.asarray(series > max(metric.effect, FAR_SIGMAS * scatter))


def _chance(series: FloatArray, events: BoolArray, own: IntArray) -> float:
    """P of as many events on a host by chance, by how often ranks of others idle half as long.

    Events of one step count once, as one may hold up several ranks.
    """
    size = float(series[own][events[own]].min())
    others = np.delete(series, own, axis=0)
    known = int(np.isfinite(others).any(axis=0).sum()) * max(1, len(others) // len(own))
    n_large = int((others >= HALFWAY * size).sum())
    return binomial_tail(int(events[own].any(axis=0).sum()), events.shape[1], (n_large + 0.5) / max(known, 1))


def _suspect(case: Case, metric: Metric, own: IntArray, n_hosts: int) -> Suspect:
    """The host, with what each of its ranks idles longer in each step: the mean of it is what is said."""
    view = case.view
    series = case.deviation(metric).series[own]
    idle_us = np.nan_to_num(metric.time_us[own])
    lost_us = np.clip(np.nan_to_num(series), 0.0, idle_us)
    course = lost_us.mean(axis=0)
    others = np.flatnonzero(view.host != view.host[own[0]])
    scale = float(np.median(case.deviation(metric).scale[own]))
    one = late(view, metric, own, course, scale=scale, n_others=len(others), n_hosts=n_hosts)
    excess_us = np.zeros(metric.time_us.shape)
    excess_us[own] = lost_us
    own_us = float(idle_us.mean())
    said = one.facts[0]
    more = tuple((name, float(course.mean()) if name == "more_us" else value) for name, value in said.values)
    evidence = Evidence(one.evidence[0].metric, own_us, own_us - float(course.mean()), scale, len(others))
    return replace(
        one,
        pattern="intermittent",
        confidence="medium",
        where="pauses",
        evidence=(evidence,),
        facts=(Fact(said.kind, more),),
        excess_us=excess_us,
    )
