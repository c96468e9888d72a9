"""Hosts whose ranks idle far longer than usual in some steps: all together, or one after the other.

A processor that is nearly too busy holds up each rank in some steps only. The median of the host's ranks, and
the median of a rank's steps, do not show it, and no rank pauses oftener than by chance. All of them together
do. The usual idle time of a stage is subtracted, so that all ranks of the job can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.detectors.late import late_suspect
from cluster_analysis.judge.measures.deviation import chance_of_events, chance_of_pattern
from cluster_analysis.judge.measures.idle import beyond_scatter
from cluster_analysis.judge.measures.local_times import LocalTime
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.stats import group_medians, median, sigma
from cluster_analysis.numeric.tails import over_looks
from cluster_analysis.thresholds.common import CLEAR_SIGMAS, FAR_SIGMAS, FEWEST_PEERS, HALFWAY, MOSTLY
from cluster_analysis.thresholds.judging import HEALTHY_QUANTILE, IDLE_SIGMA
from cluster_run.facts import Fact
from cluster_run.findings import Evidence


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give hosts where several ranks idle far longer than usual, in more steps than by chance.

    No single rank has most of it. Hosts that are slow beyond doubt by the middle of their ranks are left out.
    """
    view, limits = case.view, case.limits
    slow_hosts = {one.hosts[0] for one in found if one.is_alarm and one.p_value <= limits.alarm_p_value}
    hosts = np.unique(view.host[view.host >= 0])
    if len(view.steps) < limits.min_steps_confident or len(hosts) < 2:
        return
    for local in (one for one in case.local_times if not one.is_computing):
        places = [_longer_us(view, one.time_us, local.effect) for one in (local, *local.places)]
        # One of two hosts is half of all ranks: the quick ones are those of the other host.
        quick_us = np.sort(places[0].longer_us, axis=0)[int(HEALTHY_QUANTILE * len(view.ranks))]
        for host in hosts.tolist():
            own = np.flatnonzero(view.host == host)
            # Most hosts have nothing that is large enough, and need no look at how all others scatter.
            large = [(one.longer_us[own] - quick_us > one.least_us).any(axis=1).sum() for one in places]
            if view.hosts[host] in slow_hosts or max(large) < FEWEST_PEERS:
                continue
            # Idle time that most ranks have in a step is the job's, in whichever place it lies.
            of_others_us = median(np.delete(places[0].longer_us, own, axis=0), 0)
            seen = [one.of_host(own, of_others_us) for one in places]
            chances = [one.chance for one in seen if _are_several(one.series, one.events)]
            if not chances:
                continue
            lost_us = np.nansum([beyond_scatter(one.series, one.scatter) for one in seen[1:]], axis=0)
            one = _suspect(case, local, own, lost_us, n_hosts=len(hosts) - 1)
            # Each place is tested, and their sum: one of them may scatter so much that it hides the other.
            p_value = min(1.0, len(hosts) * over_looks(chances, len(places)))
            is_costly = one.most_us(None) >= limits.open_cost_share * view.mean_step_us
            if p_value <= (limits.doubted_p_value if is_costly else limits.listed_p_value):
                yield replace(one, p_value=1.0 if _is_of_replicas(view.replica[own], lost_us) else p_value)


class _OfHost(Struct, frozen=True):
    """How much longer a host's ranks idle than others (K, S), what `others` scatter by, and events."""

    series: FloatArray
    others: FloatArray
    scatter: float
    events: BoolArray

    @property
    def chance(self) -> float:
        """P of that many steps with events by chance, by how often ranks of other hosts idle half as long.

        Events of one step count once, as one may hold up several ranks.
        """
        series, others = self.series, self.others
        known = int(np.isfinite(others).any(axis=0).sum()) * max(1, len(others) // len(series))
        half_us = HALFWAY * float(series[self.events].min())
        of_host, late = median(series, 0), np.asarray(self.events.any(axis=0))
        chance = chance_of_events(int(late.sum()), len(late), int((others >= half_us).sum()), known)
        # If one rank after the other is late, the host shows no pattern.
        return chance * (chance_of_pattern(of_host, late) if (of_host[late] >= half_us).all() else 1.0)


class _Place(Struct, frozen=True):
    """How much longer ranks idle than usually in one place (R, S); from `least_us` on it may be an event."""

    longer_us: FloatArray
    least_us: float

    def of_host(self, own: IntArray, of_others_us: FloatArray) -> _OfHost:
        others = np.delete(self.longer_us, own, axis=0)
        usual_us = np.fmax(median(others, 0), of_others_us)
        series, others = self.longer_us[own] - usual_us, others - usual_us
        scatter = float(sigma(others[np.isfinite(others)])) if np.isfinite(others).any() else np.inf
        events = np.asarray(series > max(self.least_us, FAR_SIGMAS * scatter))
        return _OfHost(series, others, scatter, events)


def _longer_us(view: JobView, time_us: FloatArray, effect_us: float) -> _Place:
    usually_us = median(time_us, 1)
    of_role = group_medians(usually_us, view.role)
    differ_us = CLEAR_SIGMAS * IDLE_SIGMA * float(median(of_role))  # as healthy hosts do, in all steps
    return _Place(time_us - np.fmin(usually_us, of_role)[:, None], max(effect_us, differ_us))


def _are_several(series: FloatArray, events: BoolArray) -> bool:
    """Whether three ranks (R, S) not late in most steps have events, and none has most of them."""
    n_events = events.sum(axis=1)
    is_always = (series >= HALFWAY * series[events].min(initial=np.inf)).mean(axis=1) > MOSTLY
    n_now_and_then = int(((n_events > 0) & ~is_always).sum())
    return n_now_and_then >= FEWEST_PEERS and int(n_events.max()) <= HALFWAY * int(n_events.sum())


def _is_of_replicas(replica: IntArray, lost_us: FloatArray) -> bool:
    """Whether all ranks of a replica (K, S) lose half of its median loss, and no others do: a checkpoint."""
    late = lost_us.sum(axis=1) >= HALFWAY * group_medians(lost_us, replica).sum(axis=1).max()
    is_whole = not np.isin(replica[~late], replica[late]).any()
    return bool(is_whole and not late.all() and len(np.unique(replica[late])) < late.sum())


def _suspect(case: Case, local: LocalTime, own: IntArray, lost_us: FloatArray, *, n_hosts: int) -> Suspect:
    """The host, with what each of its ranks idles longer in each step; the mean of it is reported."""
    view = case.view
    n_others = int((view.host != view.host[own[0]]).sum())
    scale = float(np.median(case.deviation(local).scale[own]))
    one = late_suspect(
        view, local, own, lost_us, scale=scale, n_others=n_others, n_hosts=n_hosts, lasts=False
    )
    own_us, more_us = float(np.nan_to_num(local.time_us[own]).mean()), float(lost_us.mean())
    said = one.facts[0]
    more = tuple((name, more_us if name == "more_us" else value) for name, value in said.values)
    return replace(
        one,
        pattern="intermittent",
        confidence="low",  # its cost may be too low by up to half
        evidence=(Evidence(one.evidence[0].metric, own_us, own_us - more_us, scale, n_others),),
        facts=(Fact(said.kind, more),),
    )
