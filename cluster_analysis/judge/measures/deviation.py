"""How far each rank lies from its peers, step by step, with step, role and data effects removed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.stats import (
    MEDIAN_SE,
    PRIOR_DF,
    binomial_tail,
    group_medians,
    leave_one_out,
    median,
    medians_by,
    others_median,
    shrink,
    sigma,
    student_tail,
)
from cluster_analysis.thresholds.common import FAR_SIGMAS, FEWEST_PEERS, HALFWAY, LEAST_DF
from cluster_analysis.thresholds.limits import Thresholds


@dataclass(frozen=True)
class Deviation:
    """One metric of all ranks against their peers.

    `series` (R, S) is the deviation from the peers of the role after the replica's share was taken
    out; `raw` before that. `host_series` is for comparing hosts: the replica's share comes from other stages
    only, so that a host that holds whole replicas is not explained away, and is taken from the deviation
    from the middle of the role's hosts. `level` (R,) is the
    series' median over steps minus that of the peers, `scale` what a healthy rank's level scatters
    by, `p_persistent` the test of the level. `step_sigma` (R,) is what a healthy rank's single step scatters
    by, `event_scale` (R, S) the same with what its peers show in that very step, and what lasts.
    """

    raw: FloatArray
    host_series: FloatArray
    series: FloatArray
    level: FloatArray
    centre: FloatArray
    scale: FloatArray
    n_peers: IntArray
    step_sigma: FloatArray
    event_scale: FloatArray
    p_persistent: FloatArray

    @property
    def telling(self) -> BoolArray:
        """Steps in which peers scatter by less than each rank's level (R, S); all where that is so in few.

        Where all ranks pause for unlike times, one that is not longer than its peers may be late even so.
        """
        tells = np.asarray(self.event_scale <= HALFWAY * np.nan_to_num(self.level)[:, None])
        return np.asarray(tells | (tells.mean(axis=1) <= HALFWAY)[:, None])


def deviations(
    values: FloatArray, view: JobView, floor: float, limits: Thresholds, *, use_replicas: bool
) -> Deviation:
    """Compare (R, S) values with peers: logarithms for times that scale, µs for times that add."""
    raw = values - group_medians(values, view.role)
    by_hosts = values - middle_of_hosts(values, view)
    if not use_replicas:
        return _tested(raw, view, floor, limits, raw=raw, host_series=by_hosts)
    series = raw - _data_effect(raw, view, elsewhere=False)
    host_series = by_hosts - _data_effect(by_hosts, view, elsewhere=True)
    return _tested(series, view, floor, limits, raw=raw, host_series=host_series)


def middle_of_hosts(values: FloatArray, view: JobView) -> FloatArray:
    """Median over the hosts of each rank's role of what their ranks have in the middle, (R, S).

    Of two hosts the one with more ranks would be the median of all ranks, and never be slow. The median of
    ranks where hosts are not known; NaN for ranks of unknown roles.
    """
    if (view.host < 0).any():
        return group_medians(values, view.role)
    (role_of, _), pair = np.unique(np.stack([view.role, view.host]), axis=1, return_inverse=True)
    of_hosts = medians_by(values, np.ravel(pair))
    result = np.full(values.shape, np.nan)
    for role in np.unique(role_of[role_of >= 0]):
        result[view.role == role] = median(of_hosts[role_of == role], 0)
    return result


def _tested(
    series: FloatArray, view: JobView, floor: float, limits: Thresholds, *,
    raw: FloatArray, host_series: FloatArray,
) -> Deviation:  # fmt: skip
    """Test the level of each rank's series against those of its role."""
    own = median(series, 1)
    n_ranks, n_steps = series.shape
    centre, spread = np.full(n_ranks, np.nan), np.full(n_ranks, np.nan)
    step_sigma = np.full(n_ranks, np.nan)
    scatter = np.full(series.shape, np.nan)
    n_peers = np.zeros(n_ranks, np.int32)
    pooled = float(np.nan_to_num(sigma(own - group_medians(own[:, None], view.role)[:, 0])))
    pooled = max(pooled, floor)
    for role in np.unique(view.role[view.role >= 0]):
        inside = np.flatnonzero(view.role == role)
        n_peers[inside] = int(np.isfinite(own[inside]).sum()) - 1
        centre[inside], spread[inside] = leave_one_out(own[inside])
        noise = series[inside] - own[inside][:, None]
        step_sigma[inside] = median(sigma(noise, 1))
        scatter[inside] = sigma(noise, 0)
    df = np.maximum(n_peers - 1, 1)
    scale = np.hypot(np.nan_to_num(spread, nan=pooled), floor)
    scale = shrink(scale, np.hypot(pooled, floor), df)
    error = MEDIAN_SE * np.nan_to_num(step_sigma) / np.sqrt(n_steps)
    # In a step in which all peers scatter (garbage collection, long data), lying above them is no event.
    event_scale = np.hypot(np.fmax(scatter, np.nan_to_num(step_sigma)[:, None]), scale[:, None])
    level = own - centre
    z = level / np.maximum(scale, error)
    p = np.where(
        n_peers >= limits.min_peers,
        student_tail(z, np.maximum(LEAST_DF, df + PRIOR_DF)),
        np.nan,
    )
    return Deviation(raw, host_series, series, level, centre, scale, n_peers, step_sigma, event_scale, p)


def _data_effect(raw: FloatArray, view: JobView, *, elsewhere: bool) -> FloatArray:
    """Return what all ranks of a replica share in a step, (R, S): its data were longer.

    The share is the median of the replica's ranks in other stages; with one stage it is that of the
    rank's TP/CP peers. `elsewhere`: of its ranks in other stages on other hosts, so that a host that holds
    all of a replica is not explained away. It is weighted by how far ranks follow it (`_regression`): with
    equal data nothing is taken out.
    """
    none = np.zeros(raw.shape)
    if not (view.replica >= 0).all():
        return none
    effect = np.full(raw.shape, np.nan)
    roles = np.unique(view.role)
    for replica in np.unique(view.replica):
        inside = np.flatnonzero(view.replica == replica)
        role_of = view.role[inside]
        for role in np.unique(role_of):
            own, others = inside[role_of == role], inside[role_of != role]
            if elsewhere:
                for host in np.unique(view.host[own]):
                    away = others[(view.host[others] != host) | (view.host[others] < 0)]
                    effect[own[view.host[own] == host]] = median(raw[away], 0)
            elif len(others):
                effect[own] = median(raw[others], 0)
            elif len(own) > 2:
                effect[own] = others_median(raw[own].T).T
    replicas = np.unique(view.replica)
    if not np.isfinite(effect).any() or len(replicas) < (2 if len(roles) > 1 else 3):
        return none
    shared: FloatArray = _regression(raw, effect) * np.nan_to_num(effect)
    return shared


def _regression(raw: FloatArray, effect: FloatArray) -> float:
    """How far ranks follow their replica, between 0 and 1: the slope of what varies from step to step.

    What lasts is left out, as silicon lasts too.
    """
    if raw.shape[1] >= FEWEST_PEERS:
        raw, effect = raw - median(raw, 1)[:, None], effect - median(effect, 1)[:, None]
    known = np.isfinite(raw) & np.isfinite(effect)
    if not known.any():
        return 0.0
    own, shared = raw[known], effect[known]
    total = float((shared**2).sum())
    return float(np.clip((own * shared).sum() / total, 0.0, 1.0)) if total > 0 else 0.0


def events_of(series: FloatArray, scale: FloatArray, least: float) -> BoolArray:
    """Steps in which a rank lies far from its peers (R, S): six times their scale, and `least`."""
    with np.errstate(invalid="ignore"):
        return np.asarray(series > np.maximum(FAR_SIGMAS * scale, least))


def event_tails(events: BoolArray, series: FloatArray) -> FloatArray:
    """P of as many events (R, S) as each rank has, given how often others have any half as large (R,)."""
    p, sizes = np.ones(len(events)), np.where(events, series, 0.0)
    for rank in np.flatnonzero(events.any(axis=1)).tolist():
        size = float(series[rank][events[rank]].min())
        p[rank] = chance_of_as_many(int(events[rank].sum()), sizes, rank, size)
    return p


def chance_of_as_many(n_own: int, series: FloatArray, rank: int, size: float) -> float:
    """P that a rank has so many steps of a size by chance, given how often others (R, S) have half of it."""
    others = np.delete(series, rank, axis=0)
    as_large = float((others >= HALFWAY * size).sum()) + 0.5
    return binomial_tail(n_own, series.shape[1], as_large / max(int(np.isfinite(others).sum()), 1))
