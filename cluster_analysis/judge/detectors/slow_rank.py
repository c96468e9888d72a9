"""Slow ranks: one rank's local time lies above that of its peers, in all steps, in some, or growing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.detectors.few_steps import confirmed
from cluster_analysis.judge.measures.deviation import Deviation, chance_of_as_many
from cluster_analysis.judge.measures.metrics import Metric, late
from cluster_analysis.judge.suspects import Suspect, surest
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.stats import benjamini_hochberg, beyond_chance, median, theil_sen
from cluster_analysis.thresholds.common import FAR_SIGMAS, HALFWAY, MOSTLY, TWICE
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.findings import Pattern


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
            ranks = [one for one in ranks if _is_own(view, deviation, one)]
            if case.steady is not None:
                by_steady = case.deviation(case.steady, of_hosts)
                ranks += rank_suspects(view, case.steady, by_steady, limits, excluded, by_step=deviation)
            # Any rank of the job is a peer in what all types of kernels have in common.
            lonely = deviation.n_peers < limits.min_peers
            if lonely.any() and case.common is not None:
                by_all, by_time = (
                    case.deviation(one, of_hosts, of_all=True) for one in (case.common, metric)
                )
                others = excluded | ~lonely
                ranks += rank_suspects(
                    case.without_roles, case.common, by_all, limits, others, by_step=by_time
                )
            ranks = surest(ranks)
        yield from (confirmed(view, one, limits) for one in ranks)


def _is_own(view: JobView, deviation: Deviation, suspect: Suspect) -> bool:
    """Whether it is the device: if TP/CP peers deviate with a rank it got more work, as may experts' holders.

    In the steps in which it is slow.
    """
    rank = view.position_of(suspect.ranks[0])
    tp_cp_peers = np.flatnonzero((view.tp_cp_peers == view.tp_cp_peers[rank]) & (view.tp_cp_peers >= 0))
    tp_cp_peers = tp_cp_peers[tp_cp_peers != rank]
    level = deviation.level
    if suspect.pattern != "persistent":
        level = median(deviation.series[:, list(suspect.step_positions or ())], 1)
    alone = level[rank] - float(np.nan_to_num(median(level[tp_cp_peers])))
    return bool(alone >= HALFWAY * level[rank] if len(tp_cp_peers) else view.knows_work)


def rank_suspects(
    view: JobView, metric: Metric, deviation: Deviation, limits: Thresholds, excluded: BoolArray, *,
    by_step: Deviation | None = None,
) -> list[Suspect]:  # fmt: skip
    """Return ranks that are slow in one metric; `excluded` ranks (R,) already belong to a slow host.

    `by_step` has the course over the steps of what is known for all steps together, as kernels are.

    What lasts goes before what comes and goes, and that before a single event, which no counting tells from
    an accident: computing has none, it is what kernels took, and idle time has many.
    """
    series, level = deviation.series, np.nan_to_num(deviation.level)
    lasts = _is_lasting(metric, deviation, limits)
    events = deviation.events(metric.effect if metric.is_log else TWICE * metric.effect)
    size = np.where(events, series, np.inf).min(axis=1)
    p_events = np.ones(len(series))
    for rank in np.flatnonzero(events.any(axis=1)).tolist():
        n_events = int(events[rank].sum())
        p_events[rank] = chance_of_as_many(n_events, series, rank, float(size[rank]))
    has_peers = deviation.n_peers >= limits.min_peers
    often = benjamini_hochberg(np.where(has_peers, p_events, np.nan), limits.false_discovery_rate)
    often &= events.sum(axis=1) >= (2 if metric.is_log else limits.min_pauses)
    slow = lasts | (often & (len(view.steps) >= limits.min_steps_intermittent))
    farthest = _farthest_of_others(view.role, series, slow | excluded)
    beyond = events.any(axis=1) & (size >= TWICE * farthest)
    once = ~slow & beyond & (size >= limits.natural_effect) & has_peers
    once &= (series >= HALFWAY * size[:, None]).sum(axis=1) == 1
    once &= metric.is_log and len(view.steps) >= limits.min_steps_confident
    usual = _farthest_of_others(view.role, deviation.level[:, None], slow | once | excluded)
    rising = _is_rising(metric, deviation, limits)
    found = []
    for rank in np.flatnonzero((slow | once) & ~excluded).tolist():
        one = suspect_of(view, metric, deviation, rank, None if lasts[rank] else events[rank], by_step)
        if lasts[rank]:
            p = max(float(deviation.tail[rank]), _by_counting(deviation, rank, limits))
            if level[rank] < TWICE * usual[rank] and not rising[rank]:
                one = replace(one, is_alarm=False, confidence="medium")
        else:
            # Counting alone calls two events of five chance in a small job, however large they are.
            p = 0.0 if beyond[rank] else p_events[rank]
        if once[rank]:  # experts may hold anybody's tokens for a step
            one = replace(one, pattern="transient", confidence="medium", is_alarm=view.knows_work)
        elif rising[rank]:
            one = replace(one, pattern="trend")
        found.append(replace(one, p_value=min(1.0, len(series) * p)))
    return found


def _is_lasting(metric: Metric, deviation: Deviation, limits: Thresholds) -> BoolArray:
    """Ranks (R,) whose level is improbable, large enough, and there in nearly all steps: no pauses."""
    series, level, telling = deviation.series, deviation.level, deviation.telling
    with np.errstate(invalid="ignore"):
        n_slow = ((series > HALFWAY * level[:, None]) & telling).sum(axis=1)
    is_mostly = n_slow > MOSTLY * (np.isfinite(series) & telling).sum(axis=1)
    if series.shape[1] < limits.min_steps_intermittent:  # of few steps the middle one says as much
        is_mostly[:] = True
    significant = benjamini_hochberg(deviation.tail, limits.false_discovery_rate)
    return np.asarray(significant & (np.nan_to_num(level) >= metric.effect) & is_mostly)


def _by_counting(deviation: Deviation, rank: int, limits: Thresholds) -> float:
    """P of being slow in as many telling steps as a rank is, given how often others are as slow.

    Late starts and idle time have long tails that no normal distribution knows. With one or two steps
    counting says nothing; the gaps within a step decide there.
    """
    told, level = deviation.series[:, deviation.telling[rank]], float(deviation.level[rank])
    if deviation.series.shape[1] < limits.min_steps_confident:
        return 0.0
    return chance_of_as_many(int((told[rank] >= HALFWAY * level).sum()), told, rank, level)


def _farthest_of_others(role: IntArray, values: FloatArray, suspected: BoolArray) -> FloatArray:
    """How far any other rank of each rank's role that nobody suspects lies from their middle (R,).

    In any of the `values` (R, N), on either side: somebody is always the slowest, and somebody the fastest.
    """
    farthest = np.zeros(len(role))
    for one in np.unique(role[role >= 0]):
        inside = np.flatnonzero(role == one)
        healthy = np.where(suspected[inside, None], np.nan, values[inside])
        distance = np.nan_to_num(np.abs(healthy - median(healthy))).max(axis=1)
        order = np.argsort(distance, kind="stable")
        farthest[inside] = distance[order[-1]]
        farthest[inside[order[-1]]] = distance[order[-2]] if len(order) > 1 else 0.0
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


def _course(series: FloatArray, level: float, rank: int, deviation: Deviation, peers: IntArray) -> FloatArray:
    """A rank's level by step (S,): its own `series` as far as it varies more than peers do, else the same.

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
    own = beyond_chance(seen, noise) if len(series) > 2 else 0.0
    return np.asarray(level + own * (known - level))


def suspect_of(
    view: JobView, metric: Metric, deviation: Deviation, rank: int, events: BoolArray | None,
    by_step: Deviation | None = None,
) -> Suspect:  # fmt: skip
    """Return the suspect of a rank that is late in all steps, or in those of its `events` (S,)."""
    peers, series, level = view.peers_of(rank), deviation.series[rank], float(deviation.level[rank])
    if events is not None:
        course, in_steps = np.where(events, series, 0.0), events
    else:
        if by_step is not None:
            series = by_step.series[rank] - np.nan_to_num(by_step.series[rank]).mean() + level
        course = np.maximum(_course(series, level, rank, by_step or deviation, peers), 0.0)
        in_steps = course >= HALFWAY * level
    one = late(
        view,
        metric,
        np.array([rank]),
        course if by_step is None else np.full(len(series), level),
        scale=float(deviation.scale[rank]),
        n_others=len(peers),
        inside=events,
        n_peers=len(peers),
        role=view.role_name(int(view.role[rank])),
        n_steps=len(view.steps),
    )
    excess = np.zeros(metric.time_us.shape)
    excess[rank] = metric.removable(course, np.nan_to_num(metric.time_us[rank]))
    steps = tuple(np.flatnonzero(in_steps).tolist())
    pattern: Pattern = "persistent" if events is None else "intermittent"
    return replace(one, excess_us=excess, step_positions=steps, pattern=pattern)
