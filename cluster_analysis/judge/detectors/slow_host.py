"""Slow hosts: all ranks of a host are late, compared with ranks of the same role elsewhere.

Hosts are judged before ranks, by the middle of their ranks, so that one bad rank does not condemn its
host and a bad host does not make eight bad ranks. The worst host is taken out before the next is judged:
where two hosts share a stage, a slow one makes half of the other one's peers slow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.measures.deviation import middle_of_hosts
from cluster_analysis.judge.measures.metrics import Metric, late
from cluster_analysis.judge.suspects import Suspect, surest
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.stats import (
    MAD_EFFICIENCY,
    MAD_TO_SIGMA,
    MEDIAN_SE,
    PRIOR_DF,
    median,
    medians_by,
    shrink,
    sigma,
    student_tail,
)
from cluster_analysis.thresholds.common import FEWEST_PEERS, HALFWAY, LEAST_DF, MOSTLY
from cluster_analysis.thresholds.devices import CALM_QUANTILE, HOST_IDLE_SIGMA
from cluster_analysis.thresholds.limits import Thresholds


@dataclass(frozen=True)
class _Judged:
    """One host against its peers: levels in the metric's unit, and the probability that it is healthy."""

    host: int
    inside: IntArray
    level: float
    scale: float
    tail: float
    n_peer_hosts: int


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give hosts that are slow in a local time, the worst first."""
    for metric in case.metrics:
        hosts = host_suspects(case, metric)
        if metric.is_log and case.steady is not None:
            hosts += host_suspects(case, case.steady)
        yield from surest(hosts)


def host_suspects(case: Case, metric: Metric) -> list[Suspect]:
    """Return hosts that are slow in one metric, the worst first.

    One that is improbable by itself is listed and taken out: of two slow hosts of four each hides the other.
    Whether it is improbable over all hosts its p-value tells. One that is slow by itself says nothing of the
    samples of its replica, by which hosts of other stages are compared.
    """
    view, limits = case.view, case.limits
    hosts = np.unique(view.host[view.host >= 0])
    values = case.deviation(metric).host_series
    found: list[Suspect] = []
    out = np.zeros(len(view.ranks), bool)
    while len(found) < len(hosts) - 1:
        level = median(np.where(out[:, None], np.nan, values), 1)
        worth = _worth_judging(view, metric, level, hosts[~np.isin(hosts, view.host[out])])
        judged = [_judge(view, metric, level, host, values) for host in worth]
        slow = [
            one
            for one in judged
            if one is not None
            and one.tail <= limits.false_discovery_rate
            and _is_whole_host(view, metric, level, one)
        ]
        if not slow:
            return found
        worst = max(slow, key=lambda one: (one.level, -one.host))
        one = _suspect(view, metric, values, worst, out)
        one = replace(one, p_value=min(1.0, worst.tail * len(hosts)))
        if len(view.steps) < limits.min_steps_confident:
            one = _doubted(one, metric, limits)
        found.append(one)
        out |= view.host == worst.host
        values = case.deviation(metric, out).host_series
    return found


def _doubted(one: Suspect, metric: Metric, limits: Thresholds) -> Suspect:
    """One or two steps: more than their data may explain, or a multiple of the peers' idle time.

    A late start may be a moment's whatever its length.
    """
    row = one.evidence[0]
    factor = 1.0 + limits.natural_effect if metric.is_log else limits.single_step_idle_factor
    if metric.where != "head" and row.value >= factor * row.peers_median:
        return replace(one, confidence="medium")
    return replace(one, confidence="low", is_alarm=False)


def _worth_judging(view: JobView, metric: Metric, level: FloatArray, hosts: IntArray) -> list[int]:
    """Hosts that lie above the middle of their roles at all; most do not, and need no closer look."""
    above = level - middle_of_hosts(level[:, None], view)[:, 0]
    inside = np.isin(view.host, hosts)
    by_host = medians_by(above[inside], view.host[inside])
    return [int(host) for host in hosts[np.nan_to_num(by_host) >= HALFWAY * metric.effect]]


def _judge(view: JobView, metric: Metric, level: FloatArray, host: int, values: FloatArray) -> _Judged | None:
    """Compare one host; the scale comes from the other hosts among themselves, without this one.

    None where too few of its ranks are known, or where it lies above its peers by less than the least effect.
    """
    here = (view.host == host) & np.isfinite(level)
    others = (view.host != host) & (view.host >= 0) & np.isfinite(level)
    relative = np.full(len(level), np.nan)
    for role in np.unique(view.role[here]):
        peers = others & (view.role == role)
        if peers.any():
            same = (view.role == role) & np.isfinite(level)
            relative[same] = level[same] - float(np.median(level[peers]))
    inside = np.flatnonzero(here & np.isfinite(relative))
    if len(inside) < 2:
        return None
    own = float(np.median(relative[inside]))
    if own < metric.effect:  # of many hosts most end here: the rest looks at all ranks of the job
        return None
    peers = np.flatnonzero(others & np.isfinite(relative))
    peer_hosts = np.unique(view.host[peers])
    spread = _spread_of_hosts(view, metric, relative, peers, inside)
    spread = max(spread, _error_of_median(view, relative, inside, peers))
    scale = float(np.hypot(spread, metric.floor))
    if not metric.is_log:
        # One peer host is a host like this one: its own chance counts too. The chance is a factor, not a sum.
        typical = max(_usual_us(metric.values[peers]), 1e-9)
        if len(peer_hosts) < FEWEST_PEERS:  # one of few may be a quiet one
            typical = max(typical, _usual_us(metric.values[others]))
        factor = own / np.log1p(own / typical) if own > 0 else typical
        prior = max(metric.floor, HOST_IDLE_SIGMA * float(factor) * (1.0 + 1.0 / len(peer_hosts)) ** 0.5)
        scale = float(shrink(np.array(spread), prior, len(peer_hosts) - 1.0))
    df = float(len(peer_hosts) - 1 + PRIOR_DF)
    step_error, step_df = _step_error(view, metric, values, inside, peers)
    if metric.is_log and step_error > HALFWAY * scale:
        df = min(df, step_df)
    scale = max(scale, step_error)
    tail = float(student_tail(np.array([own / scale]), df)[0])
    return _Judged(host, inside, own, scale, tail, len(peer_hosts))


def _usual_us(idle_us: FloatArray) -> float:
    """Idle time (R, S) of a calm step."""
    return float(np.quantile(np.nan_to_num(median(idle_us, 0)), CALM_QUANTILE))


def _error_of_median(view: JobView, relative: FloatArray, inside: IntArray, peers: IntArray) -> float:
    """Standard error of a host's level from how ranks of one host scatter about each other."""
    everybody = np.concatenate([inside, peers])
    hosts, code = np.unique(view.host[everybody], return_inverse=True)
    scatter = float(np.nan_to_num(sigma(relative[everybody] - medians_by(relative[everybody], code)[code])))
    return float(MEDIAN_SE * scatter / np.sqrt(len(inside)) * np.sqrt(1.0 + 1.0 / max(len(hosts) - 1, 1)))


def _step_error(
    view: JobView, metric: Metric, values: FloatArray, inside: IntArray, peers: IntArray
) -> tuple[float, float]:
    """Standard error of a host's level over steps, and its degrees of freedom.

    From how its peer hosts scatter from step to step. What follows samples may differ from theirs by chance
    in a few steps: there the difference's own scatter counts too.
    """
    hosts = medians_by(values[peers], view.host[peers])
    n_hosts, n_steps = hosts.shape
    noise = float(np.nan_to_num(median(sigma(hosts, 1)))) * (1.0 + 1.0 / n_hosts) ** 0.5
    df = MAD_EFFICIENCY * n_hosts * (n_steps - 1)
    difference = median(values[inside], 0) - median(hosts, 0)
    own = float(np.nanstd(difference, ddof=1)) if metric.follows_work and n_steps >= FEWEST_PEERS else 0.0
    if own > noise:
        noise, df = own, n_steps - 1.0
    return float(MEDIAN_SE * noise / np.sqrt(n_steps)), max(LEAST_DF, df)


def _spread_of_hosts(
    view: JobView, metric: Metric, relative: FloatArray, peers: IntArray, inside: IntArray
) -> float:
    """How far other hosts lie apart; by what knows no samples, how far their ranks do."""
    unit = np.arange(len(view.ranks)) if metric.is_log and not metric.follows_work else view.host
    units = np.unique(unit[peers])
    if len(units) < 2:
        return 0.0
    levels = medians_by(relative[peers], unit[peers])
    spread = MAD_TO_SIGMA * float(np.median(np.abs(levels)))
    return float(spread / np.sqrt(len(np.unique(unit[inside]))))


def _is_whole_host(view: JobView, metric: Metric, level: FloatArray, one: _Judged) -> bool:
    """Enough ranks are slow, and not for their experts, whose load is nobody's fault.

    A single slow rank is no slow host, however few others the host has, or were read.
    """
    centre = level[one.inside] - one.level
    least = HALFWAY * (min(metric.effect, one.level) if metric.is_log else one.level)
    slow = level[one.inside] - np.median(centre) >= least
    needed = MOSTLY if metric.is_log else HALFWAY
    return bool(slow.sum() >= max(2, needed * len(slow)) and (view.knows_work or not metric.follows_work))


def _suspect(view: JobView, metric: Metric, values: FloatArray, one: _Judged, out: BoolArray) -> Suspect:
    shared = np.full((len(one.inside), values.shape[1]), np.nan)
    peers = np.zeros(len(view.ranks), bool)
    for number, rank in enumerate(one.inside.tolist()):
        same = (view.role == view.role[rank]) & (view.host != one.host) & ~out
        shared[number] = values[rank] - median(values[same], 0)
        peers |= same
    # The host's own level in all steps, so that the chance of single steps is not claimed as a saving.
    level = max(float(np.median(np.nan_to_num(median(shared, 0)))), 0.0)
    deviation = np.zeros(values.shape)
    deviation[one.inside] = level
    excess = metric.removable(deviation, np.nan_to_num(metric.time_us))
    ids = view.rank_ids(one.inside)
    return late(
        view,
        metric,
        one.inside,
        excess,
        scale=one.scale,
        n_others=int(peers.sum()),
        ranks=ids,
        n_hosts=one.n_peer_hosts,
    )
