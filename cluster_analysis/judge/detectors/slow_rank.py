"""Slow ranks: one rank's local time lies above that of its peers, in all steps, in some, or growing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.detectors.few_steps import confirmed_within_step
from cluster_analysis.judge.measures.deviation import (
    Deviation,
    chance_of_as_many,
    deviations,
    event_tails,
    events_of,
)
from cluster_analysis.judge.measures.metrics import Metric, late
from cluster_analysis.judge.suspects import Suspect, surest
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.stats import benjamini_hochberg, median, theil_sen
from cluster_analysis.thresholds.common import FAR_SIGMAS, HALFWAY, MOSTLY, TWICE
from cluster_analysis.thresholds.limits import Thresholds


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give slow ranks by their peers, and in computing by kernels, which see through uneven work."""
    view, limits = case.view, case.limits
    for metric in case.metrics:
        of_hosts = case.in_slow_hosts(metric, found)
        paused = [one for one in found if one.kind == "periodic_pause" and one.metric == metric.name]
        excluded = of_hosts | case.ranks_of(paused)
        deviation = case.deviation(metric, of_hosts)
        ranks = rank_suspects(view, metric, deviation, limits, excluded)
        if metric.is_log:
            ranks = only_own(view, deviation, ranks)
            if case.steady is not None:
                by_steady = case.deviation(case.steady, of_hosts)
                ranks += _by_kernels(view, case.steady, by_steady, deviation, limits, excluded)
            ranks += _beside_all(case, metric, deviation.n_peers < limits.min_peers, of_hosts, excluded)
            ranks = surest(ranks)
        if len(view.steps) < limits.min_steps_confident:
            ranks = [confirmed_within_step(view, one, limits) for one in ranks]
        yield from ranks


def _by_kernels(
    view: JobView, metric: Metric, deviation: Deviation, computing: Deviation, limits: Thresholds,
    excluded: BoolArray,
) -> Iterator[Suspect]:  # fmt: skip
    """Give ranks that are slow by what their kernels say, in the steps in which they compute longest.

    Kernels are known for all steps together: `computing` has the course over the steps.
    """
    for one in rank_suspects(view, metric, deviation, limits, excluded):
        rank = view.position_of(one.ranks[0])
        level = float(deviation.level[rank])
        series = computing.series[rank]
        shifted = series - np.nan_to_num(series).mean() + level
        course = np.maximum(_lasting(shifted, computing, rank, level, view.peers_of(rank)), 0.0)
        steps = np.flatnonzero(course >= HALFWAY * level)
        excess = np.zeros(computing.series.shape)
        excess[rank] = metric.removable(course, np.nan_to_num(metric.time_us[rank]))
        yield replace(one, excess_us=excess, step_positions=tuple(steps.tolist()))


def only_own(view: JobView, deviation: Deviation, suspects: list[Suspect]) -> list[Suspect]:
    """Keep the devices: if TP/CP peers deviate with a rank it got more work, as may a holder of experts."""
    own = []
    for suspect in suspects:
        rank = view.position_of(suspect.ranks[0])
        tp_cp_peers = np.flatnonzero(view.tp_cp_peers == view.tp_cp_peers[rank])
        tp_cp_peers = tp_cp_peers[(tp_cp_peers != rank) & (view.tp_cp_peers[rank] >= 0)]
        level = deviation.level
        if suspect.pattern != "persistent":  # in the steps in which it is slow
            level = median(deviation.series[:, list(suspect.step_positions or ())], 1)
        alone = level[rank] - float(np.nan_to_num(median(level[tp_cp_peers])))
        if alone >= HALFWAY * level[rank] if len(tp_cp_peers) else view.knows_work:
            own.append(suspect)
    return own


def _beside_all(
    case: Case, computing: Metric, lonely: BoolArray, of_hosts: BoolArray, excluded: BoolArray
) -> Iterator[Suspect]:
    """Give those of the `lonely` ranks (R,), which have too few peers, all of whose kernels are slow.

    What all types have in common knows no stage: any rank of the job is a peer in it.
    """
    metric = case.common if lonely.any() else None
    if metric is None:
        return
    view = replace(case.view, role=np.zeros_like(case.view.role), has_roles=False)
    by_all, by_time = (
        deviations(
            np.where(of_hosts[:, None], np.nan, one.values), view, one.floor, case.limits, use_replicas=False
        )
        for one in (metric, computing)
    )
    yield from _by_kernels(view, metric, by_all, by_time, case.limits, excluded | ~lonely)


def rank_suspects(
    view: JobView, metric: Metric, deviation: Deviation, limits: Thresholds, excluded: BoolArray
) -> list[Suspect]:
    """Return ranks that are slow in one metric; `excluded` ranks (R,) already belong to a slow host."""
    n_steps = len(view.steps)
    series, telling = deviation.series - deviation.centre[:, None], deviation.telling
    # A pause every other step has a high median too; a persistent fault is there in (nearly) all steps.
    with np.errstate(invalid="ignore"):
        slow_steps = ((series > HALFWAY * deviation.level[:, None]) & telling).sum(1) / np.maximum(
            (np.isfinite(series) & telling).sum(1), 1
        )
    significant = benjamini_hochberg(deviation.p_persistent, limits.false_discovery_rate)
    # Of few steps the middle one says as much.
    lasts = (slow_steps > MOSTLY) | (n_steps < limits.min_steps_intermittent)
    persistent = significant & (np.nan_to_num(deviation.level) >= metric.effect) & lasts
    intermittent, events, p_events = _intermittent(view, metric, deviation, series, limits)
    counted = _by_counting(series, telling, np.where(persistent, deviation.level, 0.0), limits)
    p_lasting = np.fmax(deviation.p_persistent, counted)
    slow = persistent | intermittent
    rising = slow & _is_rising(metric, deviation, limits)
    single = _single_events(view, metric, deviation, series, limits) & ~slow[:, None]
    suspected = slow | single.any(axis=1) | excluded
    farthest = _range_of_healthy(view, deviation.series, suspected, lasting=False)
    found = []
    for rank in np.flatnonzero(slow & ~excluded).tolist():
        if persistent[rank]:
            one = _suspect(view, metric, deviation, series, rank)
            told = deviation.series[:, telling[rank]]
            usual = _range_of_healthy(view, told, suspected, lasting=True)[rank]
            if deviation.level[rank] < TWICE * usual and not rising[rank]:
                one = replace(one, is_alarm=False, confidence="medium")
            p = p_lasting[rank]
        else:
            mine = events[rank]
            one = replace(_suspect(view, metric, deviation, series, rank, mine), pattern="intermittent")
            # Counting alone calls two events of five chance in a small job, however large they are.
            p = 0.0 if series[rank][mine].min() >= TWICE * farthest[rank] else p_events[rank]
        p_value = min(1.0, len(view.ranks) * float(np.nan_to_num(p)))
        found.append(replace(one, p_value=p_value, pattern="trend" if rising[rank] else one.pattern))
    for rank in np.flatnonzero(single.any(axis=1) & ~excluded).tolist():
        one = _suspect(view, metric, deviation, series, rank, single[rank])
        # Experts may hold anybody's tokens for a step.
        found.append(replace(one, pattern="transient", confidence="medium", is_alarm=view.knows_work))
    return found


def _single_events(
    view: JobView, metric: Metric, deviation: Deviation, series: FloatArray, limits: Thresholds
) -> BoolArray:
    """Steps (R, S) in which one device computes so much longer than anybody ever does that it is no chance.

    One step says nothing of idle time, which healthy hosts have by accident. Computing has no accidents: it
    is what kernels took. Beyond all other cells of the role, on either side, by as much as an alarm must be.
    """
    events = np.zeros(series.shape, bool)
    if not metric.is_log or series.shape[1] < limits.min_steps_confident:
        return events
    known = np.abs(np.nan_to_num(series))
    for role in np.unique(view.role[view.role >= 0]):
        inside = np.flatnonzero(view.role == role)
        cells = known[inside]
        if cells.size < 2 or len(inside) <= limits.min_peers:
            continue
        at = np.unravel_index(int(np.argmax(cells)), cells.shape)
        rank, step = int(inside[at[0]]), int(at[1])
        others = cells.copy()
        others[at] = 0.0
        far = series[rank, step] >= TWICE * max(float(others.max()), HALFWAY * limits.natural_effect)
        events[rank, step] = far and series[rank, step] >= FAR_SIGMAS * deviation.event_scale[rank, step]
    return events


def _by_counting(series: FloatArray, telling: BoolArray, level: FloatArray, limits: Thresholds) -> FloatArray:
    """P of being slow in as many `telling` steps as each rank is (R,), given how often others are as slow.

    Late starts and idle time have long tails that no normal distribution knows. With one or two steps
    counting says nothing; the gaps within a step decide there.
    """
    p = np.zeros(len(series))
    if series.shape[1] >= limits.min_steps_confident:
        for rank in np.flatnonzero(level > 0).tolist():
            told = series[:, telling[rank]]
            n_slow = int((told[rank] >= HALFWAY * level[rank]).sum())
            p[rank] = chance_of_as_many(n_slow, told, rank, float(level[rank]))
    return p


def _range_of_healthy(
    view: JobView, series: FloatArray, suspected: BoolArray, *, lasting: bool
) -> FloatArray:
    """How far the farthest rank that nobody suspects, of each rank's role (R,), lies from others like it.

    In the middle of all steps (`lasting`) or in any one. On either side: somebody is always the slowest, and
    somebody the fastest.
    """
    farthest = np.zeros(len(series))
    for role in np.unique(view.role[view.role >= 0]):
        healthy = np.where(suspected[:, None], np.nan, series)[view.role == role]
        levels = median(healthy, 1)[:, None]
        distance = np.abs((levels if lasting else healthy) - median(levels))
        farthest[view.role == role] = distance[np.isfinite(distance)].max(initial=0.0)
    return farthest


def _is_rising(metric: Metric, deviation: Deviation, limits: Thresholds) -> BoolArray:
    """Ranks (R,) that fall behind further from step to step, by far more than single steps scatter.

    The rise is most of what they lose in any step: a few long steps late in a capture are none.
    """
    n_steps = deviation.series.shape[1]
    if n_steps < limits.min_steps_intermittent:
        return np.zeros(len(deviation.level), bool)
    rise = theil_sen(deviation.series) * (n_steps - 1)
    far = FAR_SIGMAS * np.nan_to_num(deviation.step_sigma) / np.sqrt(n_steps)
    most = HALFWAY * np.nan_to_num(deviation.series).max(axis=1)
    return np.asarray(np.nan_to_num(rise) > np.maximum(np.maximum(far, metric.effect), most))


def _intermittent(
    view: JobView, metric: Metric, deviation: Deviation, series: FloatArray, limits: Thresholds
) -> tuple[BoolArray, BoolArray, FloatArray]:
    """Ranks that are slow in some steps (R,), these steps (R, S), and P of as many in a healthy rank (R,)."""
    n_steps = series.shape[1]
    least = metric.effect if metric.is_log else TWICE * metric.effect
    events = events_of(series, deviation.event_scale, least)
    tail = event_tails(events, series)
    if n_steps < limits.min_steps_intermittent:
        return np.zeros(len(tail), bool), events, tail
    enough = events.sum(1) >= (limits.min_events if metric.is_log else limits.min_pauses)
    has_peers = deviation.n_peers >= limits.min_peers
    chosen = enough & benjamini_hochberg(np.where(has_peers, tail, np.nan), limits.false_discovery_rate)
    return np.asarray(chosen), events, tail


def _lasting(
    series: FloatArray, deviation: Deviation, rank: int, level: float, peers: IntArray
) -> FloatArray:
    """The level by step (S,): its own course as far as it varies more than peers do, else the same in all.

    Few steps vary much by chance: what varies more than nearly all `peers` (positions) do is its own.
    """
    known = np.where(np.isfinite(series), series, level)
    seen = float(np.mean((known - level) ** 2))
    healthy = deviation.series[peers]
    healthy = healthy[np.isfinite(healthy).any(axis=1)]
    scatter = np.nan_to_num(healthy - median(healthy, 1)[:, None])
    noise = float(np.nan_to_num(deviation.step_sigma[rank])) ** 2
    if len(healthy):
        noise = max(noise, float(np.quantile((scatter**2).mean(axis=1), MOSTLY)))
    own = max(0.0, 1.0 - noise / seen) if seen > 0 and len(series) > 2 else 0.0
    return np.asarray(level + own * (known - level))


def _suspect(
    view: JobView,
    metric: Metric,
    deviation: Deviation,
    series: FloatArray,
    rank: int,
    events: BoolArray | None = None,
) -> Suspect:
    """The suspect of a rank that is late in all steps, or in those of its `events` (S,)."""
    peers = view.peers_of(rank)
    if events is None:
        level = float(deviation.level[rank])
        own = _lasting(series[rank], deviation, rank, level, peers)
        in_steps = own >= HALFWAY * level
    else:
        own, in_steps = np.where(events, series[rank], 0.0), events
    excess = np.zeros(series.shape)
    excess[rank] = metric.removable(own, np.nan_to_num(metric.time_us[rank]))
    role = view.role_name(int(view.role[rank]))
    one = late(
        view,
        metric,
        np.array([rank]),
        excess,
        scale=float(deviation.scale[rank]),
        n_others=len(peers),
        inside=events,
        n_peers=len(peers),
        role=role,
        n_steps=len(view.steps),
    )
    return replace(one, step_positions=tuple(np.flatnonzero(in_steps).tolist()))
