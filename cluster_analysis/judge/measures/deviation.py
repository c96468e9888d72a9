"""How far each rank lies from its peers, step by step, with step, role and data effects removed."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.rhythm import chance_of_rhythm, rhythm_of
from cluster_analysis.numeric.sorting import combined, first_positions
from cluster_analysis.numeric.stats import (
    MEDIAN_SE,
    PRIOR_DF,
    group_medians,
    leave_one_out,
    median,
    medians_by,
    others_medians,
    shrink,
    sigma,
)
from cluster_analysis.numeric.tails import binomial_tail, over_looks, student_tail
from cluster_analysis.thresholds.common import FAR_SIGMAS, FEWEST_PEERS, HALFWAY, LEAST_DF
from cluster_analysis.thresholds.judging import ACCIDENTS, IDLE_SIGMA


class Deviation(Struct, frozen=True):
    """How far units (U,), ranks or hosts, lie above their peers, step by step and at all.

    `series` (U, S) is how far in each step, `level` its middle, and `scale` what a healthy one's level
    scatters by, `step_scale` (U, S) its single steps: where all peers scatter (garbage collection, long
    data), lying above them is no event. `tail` is the probability that a healthy one's level lies as far
    out, NaN with too few peers.
    """

    series: FloatArray
    level: FloatArray
    scale: FloatArray
    step_scale: FloatArray
    n_peers: IntArray
    tail: FloatArray

    def events(self, least: float) -> BoolArray:
        """Steps in which a rank lies far from its peers (R, S): six times their scale, and `least`."""
        return np.asarray(self.series > np.maximum(FAR_SIGMAS * self.step_scale, least))


def least_by_chance(series: FloatArray, events: BoolArray) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Return each rank's largest events (R, S), as many as are least probable by chance.

    Also the size of the smallest of these, and P of as many by chance; 1 without any. So smaller events of
    another origin hide no larger ones. Events that are alike, or come in a rhythm, are less probably
    accidents; but no less than other ranks have that rhythm, as the whole job may (garbage collection).
    """
    rhythms = np.array([rhythm_of(one) for one in events])
    told, size, chance = events.copy(), np.where(events, series, np.inf).min(axis=1), np.ones(len(events))
    for rank in np.flatnonzero(events.any(axis=1)).tolist():
        found: list[tuple[float, float]] = []
        for least in np.unique(series[rank, events[rank]]).tolist():
            own = events[rank] & (series[rank] >= least)
            if own.sum() > 1 or not found:
                by_number = chance_of_as_many(int(own.sum()), series, rank, least)
                others = np.delete(rhythms, rank)
                shared = np.count_nonzero(others == (rhythm_of(own) or -1)) / max(len(others), 1)
                found.append((by_number * max(chance_of_pattern(series[rank], own), shared), least))
        size[rank] = min(found)[1]
        told[rank] &= series[rank] >= size[rank]
        chance[rank] = over_looks([one for one, _ in found], len(found))
    return told, size, chance


def relative_to_peers(values: FloatArray, view: JobView, apart: IntArray | None = None) -> FloatArray:
    """How far values (R, S), logarithms or µs, lie above the middle of their role.

    With `apart` (R,) also without what their replicas' data explain: these units only serve to judge others.
    """
    raw = values - group_medians(values, view.role)
    return raw if apart is None or (view.replica < 0).any() else raw - _data_effect(raw, view.replica, apart)


def longer_than_peers(time_us: FloatArray, view: JobView) -> FloatArray:
    """How much longer ranks take than the middle of their role (R, S), as logarithms; NaN where no time."""
    return relative_to_peers(np.log(np.where(time_us > 0, time_us, np.nan)), view)


def deviation_of(
    series: FloatArray, family: IntArray, least: FloatArray, *, healthy: float,
    min_peers: int = 1, by_mean: bool = False, is_relative: bool = False, is_alone: bool = False,
) -> Deviation:  # fmt: skip
    """Test the middle of each unit's steps (U, S) against the others of its family, without itself.

    Args:
        series: deviations by unit and step.
        family: units that are alike (U,); below 0 none.
        least: the scale that any comparison has (U,): tighter is chance.
        healthy: known scatter of healthy units, however few this job has; 0 if it is not known.
        min_peers: with fewer others there is no test.
        by_mean: no step holds an accident, so that the mean says most.
        is_relative: the series are already what lies above the others.
        is_alone: units have data of their own, so that their own steps say how far they scatter, too.
    """
    own = _mean(series) if by_mean else median(series, 1)
    n_units, n_steps = series.shape
    centre, spread, step_sigma = np.full((3, n_units), np.nan)
    step_scatter, n_peers = np.full(series.shape, np.nan), np.zeros(n_units, np.int32)
    apart = float(np.nan_to_num(sigma(own - group_medians(own, family))))
    n_apart = 0 if is_relative else max(int(np.isfinite(own).sum()) - len(np.unique(family)), 0)
    pooled = np.where(is_relative, 0.0, np.maximum(apart, least))
    if healthy:
        pooled = shrink(pooled, healthy, n_apart)
    for code in np.unique(family[family >= 0]):
        inside = family == code
        n_peers[inside] = int(np.isfinite(own[inside]).sum()) - 1
        centre[inside], spread[inside] = leave_one_out(own[inside])
        # From the peers: a rank that throttles must not widen its own.
        noise = series[inside] - own[inside][:, None]
        of_steps = _mean(noise**2 * n_steps / max(n_steps - 1, 1)) ** 0.5 if by_mean else sigma(noise, 1)
        step_sigma[inside], step_scatter[inside] = median(of_steps), sigma(noise, 0)
    df = np.maximum(n_peers - 1, 1)
    spread = np.where(np.isfinite(spread), spread, pooled)
    scale = shrink(np.hypot(spread, least), np.hypot(pooled, least), df)
    df = df + PRIOR_DF
    if is_alone and n_steps >= FEWEST_PEERS:
        by_itself, is_known = np.full(n_units, np.nan), np.isfinite(series).sum(axis=1) > 1
        by_itself[is_known] = np.nanstd(series[is_known], axis=1, ddof=1)
        decides = (by_itself > step_sigma) & (_error(by_itself, n_steps) > HALFWAY * scale)
        step_sigma = np.fmax(step_sigma, by_itself)
        df = np.where(decides, np.minimum(df, np.maximum(LEAST_DF, n_steps - 1)), df)
    level = own if is_relative else own - centre
    error = _error(step_sigma, n_steps) / (MEDIAN_SE if by_mean else 1.0)
    tail = student_tail(level / np.maximum(scale, error), df)
    tail[n_peers < min_peers] = np.nan
    series = series - (own - level)[:, None]
    step_scale = np.hypot(np.fmax(step_scatter, np.nan_to_num(step_sigma)[:, None]), scale[:, None])
    return Deviation(series, level, scale, step_scale, n_peers, tail)


def _mean(values: FloatArray) -> FloatArray:
    """Mean of each row (N, S); NaN of those without any number."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, values, 0.0).sum(axis=1) / known.sum(axis=1))


def _error(step_sigma: FloatArray, n_steps: int) -> FloatArray:
    """Standard error of the middle of `n_steps` steps."""
    return np.asarray(MEDIAN_SE * np.nan_to_num(step_sigma) / np.sqrt(n_steps))


def _data_effect(raw: FloatArray, replica: IntArray, apart: IntArray) -> FloatArray:
    """Return what all units of a replica share in a step, (R, S): its data were longer.

    For each unit, a rank or a host, that is the middle of the others: a host that holds whole replicas is not
    explained away. It is weighted by how far ranks follow it: with equal data nothing is taken out.
    """
    _, unit = combined(replica, apart)
    by_unit, of_unit = medians_by(raw, unit), replica[first_positions(unit)]
    others = others_medians(by_unit, of_unit)
    return np.asarray(_regression(raw, others[unit]) * np.nan_to_num(others[unit]))


def _regression(raw: FloatArray, effect: FloatArray) -> float:
    """How far ranks follow their replica, between 0 and 1: the slope of the variation from step to step.

    Lasting differences are left out, as slow devices last too.
    """
    if raw.shape[1] >= FEWEST_PEERS:
        raw, effect = raw - median(raw, 1)[:, None], effect - median(effect, 1)[:, None]
    known = np.isfinite(raw) & np.isfinite(effect)
    own, shared = raw[known], effect[known]
    return float(np.clip((own * shared).sum() / max(float((shared**2).sum()), 1e-300), 0.0, 1.0))


def chance_of_as_many(n_own: int, series: FloatArray, rank: int, size: float) -> float:
    """P that a rank has as many steps of a size by chance, given how often others (R, S) have half of it."""
    as_large, known = series >= HALFWAY * size, np.isfinite(series)
    n_large, n_known = (int(one.sum()) - int(one[rank].sum()) for one in (as_large, known))
    return chance_of_events(n_own, series.shape[1], n_large, n_known)


def chance_of_events(n_own: int, n_steps: int, n_large: int, n_known: int) -> float:
    """P of that many events in that many steps by chance, at the rate at which others have them.

    Others had `n_large` in `n_known` steps. Where they are few and had none, it is known how often healthy
    ones have accidents.
    """
    rate = max(n_large / max(n_known, 1), (n_large + 0.5) / (n_known + 0.5 / ACCIDENTS))
    return float(binomial_tail(n_own, n_steps, rate))


def chance_of_pattern(series: FloatArray, events: BoolArray) -> float:
    """P that accidents (S,) are as alike as these, where these are alike, and come in such a rhythm."""
    own = series[events]
    unlike = float(np.ptp(own) / own.mean()) if len(own) > 1 else 1.0
    return (unlike if unlike <= IDLE_SIGMA else 1.0) * chance_of_rhythm(events)


def relative_to_other_hosts(series: FloatArray, view: JobView) -> FloatArray:
    """How far each rank lies above the middle of its role's other hosts (R, S); NaN where there are none.

    Each host counts once, however many of its ranks were read.
    """
    relative = np.full(series.shape, np.nan)
    for role in np.unique(view.role[view.role >= 0]):
        inside = np.flatnonzero((view.role == role) & np.isfinite(series).any(axis=1))
        hosts, code = np.unique(view.host[inside], return_inverse=True)
        if len(hosts) > 1:
            by_host = medians_by(series[inside], code)
            relative[inside] = series[inside] - others_medians(by_host, np.zeros_like(hosts))[code]
    return relative
