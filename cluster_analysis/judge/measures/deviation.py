"""How far each rank lies from its peers, step by step, with step, role and data effects removed."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.stats import (
    MEDIAN_SE,
    PRIOR_DF,
    binomial_tail,
    group_medians,
    leave_one_out,
    median,
    others_median,
    shrink,
    sigma,
    student_tail,
)
from cluster_analysis.thresholds.common import FAR_SIGMAS, FEWEST_PEERS, HALFWAY, LEAST_DF
from cluster_analysis.thresholds.limits import Thresholds


class Levels(Struct, frozen=True):
    """What lasts of units (U,), ranks or hosts: how far above their peers, and how probable that is.

    `scale` is what a healthy one's level scatters by, `step_sigma` what its single steps do, `step_scatter`
    (U, S) what its peers show in that very step, and `tail` the probability that a healthy one lies as far
    out, NaN with too few peers.
    """

    level: FloatArray
    scale: FloatArray
    step_sigma: FloatArray
    step_scatter: FloatArray
    n_peers: IntArray
    tail: FloatArray


class Deviation(Levels, frozen=True):
    """One metric of all ranks against their peers.

    `series` (R, S) is how far each rank lies above its peers after the replica's share was taken out; `raw`
    before that. `host_series` is for comparing hosts: the replica's share comes from other hosts only, so
    that a host that holds whole replicas is not explained away.
    """

    raw: FloatArray
    host_series: FloatArray
    series: FloatArray

    @property
    def event_scale(self) -> FloatArray:
        """What a healthy rank's single step scatters by (R, S), and what lasts.

        Where all peers scatter (garbage collection, long data), lying above them is no event.
        """
        scatter = np.fmax(self.step_scatter, np.nan_to_num(self.step_sigma)[:, None])
        return np.asarray(np.hypot(scatter, self.scale[:, None]))

    @property
    def telling(self) -> BoolArray:
        """Steps in which peers scatter by less than each rank's level (R, S); all where that is so in few.

        Where all ranks pause for unlike times, one that is not longer than its peers may be late even so.
        """
        tells = np.asarray(self.event_scale <= HALFWAY * np.nan_to_num(self.level)[:, None])
        return np.asarray(tells | (tells.mean(axis=1) <= HALFWAY)[:, None])

    def events(self, least: float) -> BoolArray:
        """Steps in which a rank lies far from its peers (R, S): six times their scale, and `least`."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.series > np.maximum(FAR_SIGMAS * self.event_scale, least))


def deviations(
    values: FloatArray, view: JobView, floor: float, limits: Thresholds, *, use_replicas: bool
) -> Deviation:
    """Compare (R, S) values with peers: logarithms for times that scale, µs for times that add."""
    raw = values - group_medians(values, view.role)
    series, host_series = raw, raw
    if use_replicas:
        series = raw - _data_effect(raw, view, elsewhere=False)
        host_series = raw - _data_effect(raw, view, elsewhere=True)
    found = levels_of(series, view.role, np.full(len(raw), floor), min_peers=limits.min_peers)
    beside = series - (median(series, 1) - found.level)[:, None]
    return Deviation(**asdict(found), raw=raw, host_series=host_series, series=beside)


def levels_of(
    series: FloatArray, family: IntArray, least: FloatArray, *,
    min_peers: int = 1, is_beside: bool = False, is_alone: bool = False,
) -> Levels:  # fmt: skip
    """Test the middle of each unit's steps (U, S) against the others of its family, without itself.

    Args:
        series: deviations by unit and step.
        family: units that are alike (U,); below 0 none.
        least: the scale that any comparison has (U,): tighter is chance.
        min_peers: with fewer others there is no test.
        is_beside: the series are already what lies above the others.
        is_alone: units have data of their own, so that their own steps say how far they scatter, too.
    """
    own = median(series, 1)
    n_units, n_steps = series.shape
    centre, spread, step_sigma = np.full((3, n_units), np.nan)
    step_scatter, n_peers = np.full(series.shape, np.nan), np.zeros(n_units, np.int32)
    apart = float(np.nan_to_num(sigma(own - group_medians(own[:, None], family)[:, 0])))
    pooled = np.where(is_beside, 0.0, np.maximum(apart, least))
    for code in np.unique(family[family >= 0]):
        inside = family == code
        n_peers[inside] = int(np.isfinite(own[inside]).sum()) - 1
        centre[inside], spread[inside] = leave_one_out(own[inside])
        # From the peers: a rank that throttles must not widen its own.
        noise = series[inside] - own[inside][:, None]
        step_sigma[inside], step_scatter[inside] = median(sigma(noise, 1)), sigma(noise, 0)
    df = np.maximum(n_peers - 1, 1)
    spread = np.where(np.isfinite(spread), spread, pooled)
    scale = shrink(np.hypot(spread, least), np.hypot(pooled, least), df)
    df = df + PRIOR_DF
    if is_alone and n_steps >= FEWEST_PEERS:
        by_itself = np.nanstd(series, axis=1, ddof=1)
        decides = (by_itself > step_sigma) & (_error(by_itself, n_steps) > HALFWAY * scale)
        step_sigma = np.fmax(step_sigma, by_itself)
        df = np.where(decides, np.minimum(df, np.maximum(LEAST_DF, n_steps - 1)), df)
    level = own if is_beside else own - centre
    tail = student_tail(level / np.maximum(scale, _error(step_sigma, n_steps)), df)
    tail[n_peers < min_peers] = np.nan
    return Levels(level, scale, step_sigma, step_scatter, n_peers, tail)


def _error(step_sigma: FloatArray, n_steps: int) -> FloatArray:
    """Standard error of the middle of so many steps."""
    return np.asarray(MEDIAN_SE * np.nan_to_num(step_sigma) / np.sqrt(n_steps))


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


def chance_of_as_many(n_own: int, series: FloatArray, rank: int, size: float) -> float:
    """P that a rank has so many steps of a size by chance, given how often others (R, S) have half of it."""
    as_large, known = series >= HALFWAY * size, np.isfinite(series)
    n_large, n_known = (int(one.sum()) - int(one[rank].sum()) for one in (as_large, known))
    return binomial_tail(n_own, series.shape[1], (n_large + 0.5) / max(n_known, 1))
