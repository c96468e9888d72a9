"""Slow hosts: all ranks of a host are late, compared with ranks of the same role elsewhere.

Hosts are judged before ranks, and by the middle of their ranks, so that one bad rank does not condemn
its host and a bad host does not make eight bad ranks.
"""

from __future__ import annotations

import numpy as np

from cluster_analysis.detectors.deviation import Deviation
from cluster_analysis.detectors.metrics import Metric
from cluster_analysis.detectors.suspects import Suspect
from cluster_analysis.detectors.view import JobView
from cluster_analysis.detectors.wording import host_summary, local_next_check
from cluster_analysis.evidence import FloatArray
from cluster_analysis.findings import Evidence
from cluster_analysis.stats import benjamini_hochberg, leave_one_out, median, sigma, student_tail
from cluster_analysis.thresholds import Thresholds

#: Idle time differs between healthy hosts by this share of itself (CPU load, NUMA): no fault below.
HOST_FREE_SIGMA = 0.15
_PRIOR_DF = 6


def host_suspects(view: JobView, metric: Metric, deviation: Deviation, limits: Thresholds) -> list[Suspect]:
    """Return hosts that are slow in one metric."""
    present = np.unique(view.host[view.host >= 0])
    if len(present) < 2:
        return []
    series = np.full((len(view.ranks), len(view.steps)), np.nan)
    for host in present:
        _compare_with_other_hosts(
            view, deviation.series if metric.is_log else metric.values, int(host), series
        )
    by_host = np.stack([median(series[view.host == host], 0) for host in present])
    level = median(by_host, 1)
    centre, spread = leave_one_out(level)
    floor = metric.floor
    if metric.name == "free":
        floor = float(np.hypot(floor, HOST_FREE_SIGMA * np.nan_to_num(np.nanmean(median(metric.values)))))
    step_sigma = float(np.nan_to_num(median(sigma(by_host, 1)))) / np.sqrt(len(view.steps))
    scale = np.maximum(np.hypot(np.nan_to_num(spread), floor), 1.25 * step_sigma)
    excess = level - np.minimum(np.nan_to_num(centre), 0.0 if len(present) == 2 else np.inf)
    tail = student_tail(excess / scale, len(present) - 2 + _PRIOR_DF)
    chosen = benjamini_hochberg(tail, limits.false_discovery_rate)
    own_level = median(series, 1)
    found = []
    for number in np.flatnonzero(chosen & (excess >= metric.effect)):
        inside = np.flatnonzero((view.host == present[number]) & np.isfinite(own_level))
        slow = own_level[inside] - centre[number] >= 0.5 * metric.effect
        if not _is_whole_host(view, metric, inside, slow, limits):
            continue
        found.append(
            _suspect(view, metric, int(present[number]), inside, series, level, centre, scale, number)
        )
    return found


def _compare_with_other_hosts(view: JobView, values: FloatArray, host: int, series: FloatArray) -> None:
    here = view.host == host
    for role in np.unique(view.role[here]):
        own = np.flatnonzero(here & (view.role == role))
        peers = np.flatnonzero(~here & (view.role == role))
        if len(peers):
            series[own] = values[own] - median(values[peers], 0)


def _is_whole_host(
    view: JobView, metric: Metric, inside: np.ndarray[tuple[int], np.dtype[np.int64]],
    slow: np.ndarray[tuple[int], np.dtype[np.bool_]], limits: Thresholds,
) -> bool:  # fmt: skip
    """Enough ranks are slow; for computing also more than one group of mates, or it is their work."""
    if len(inside) < 2:
        return False
    if not metric.is_log:
        return bool(slow.mean() >= limits.host_share)
    groups = np.unique(view.mates[inside][slow])
    several = len(groups) >= 2 or not view.has_experts
    return bool(slow.mean() >= limits.host_share_computing and several)


def _suspect(
    view: JobView, metric: Metric, host: int, inside: np.ndarray[tuple[int], np.dtype[np.int64]],
    series: FloatArray, level: FloatArray, centre: FloatArray, scale: FloatArray, number: int,
) -> Suspect:  # fmt: skip
    deviation = np.zeros(series.shape)
    shared = median(series[inside], 0) - centre[number]
    deviation[inside] = np.maximum(shared, 0.0)[None, :]
    time = np.nan_to_num(metric.time_us)
    excess = metric.removable(deviation, time)
    typical = float(median(metric.time_us[inside]))
    peers = float(
        median(
            metric.time_us[
                ~np.isin(np.arange(len(view.ranks)), inside) & np.isin(view.role, view.role[inside])
            ]
        )
    )
    name = view.hosts[host]
    n_peers = len(level) - 1
    unit = peers if metric.is_log else 1.0
    evidence = Evidence(f"{metric.name}_us", typical, peers, float(scale[number] * unit), n_peers)
    return Suspect(
        key=f"slow_host-{name}",
        kind="slow_host",
        ranks=view.rank_ids(list(np.flatnonzero(view.host == host))),
        hosts=(name,),
        cause=metric.cause,
        pattern="persistent",
        step_positions=tuple(range(len(view.steps))),
        evidence=(evidence,),
        summary=host_summary(metric, name, len(inside), typical, peers, n_peers),
        next_check=local_next_check(metric.cause, f"host {name}"),
        excess_us=excess,
        where=metric.where,
    )
