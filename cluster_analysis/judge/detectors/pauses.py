"""Pauses: idle time in one place of a step, in some steps.

Every rank pauses now and then (the host's scheduler, an allocator). It is the same rank again and again
that has a cause of its own; and a pause of all ranks every few steps is the job's (garbage collection,
checkpoints).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb

import numpy as np
from msgspec.structs import replace

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.detectors.slow_rank import suspect_of
from cluster_analysis.judge.measures.deviation import Deviation, chance_of_as_many
from cluster_analysis.judge.measures.metrics import Metric
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.stats import median
from cluster_analysis.replay.role_gaps import concentration
from cluster_analysis.thresholds.common import HALFWAY, MOSTLY, TWICE
from cluster_analysis.thresholds.devices import IDLE_SIGMA
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.facts import fact
from cluster_run.findings import Evidence


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give ranks that pause again and again, and the pause that all ranks make in some steps."""
    for metric in case.metrics:
        if not metric.is_log:
            yield from paused_ranks(case.view, metric, case.deviation(metric), case.limits)
        if metric.name == "free":
            yield from job_pauses(case.view, metric, case.limits)


def paused_ranks(
    view: JobView, metric: Metric, deviation: Deviation, limits: Thresholds
) -> Iterator[Suspect]:
    """Give ranks that pause again and again; `metric` is idle time, between operators or before them.

    Also ranks of hosts that are slow all the time: those pause in no step or in each.
    """
    events = deviation.events(TWICE * metric.effect)
    # Where all pause for unlike times nothing stands out; who is late in nearly all steps pauses in none.
    shortest = np.where(events, deviation.series, np.inf).min(axis=1)
    is_late = (deviation.series >= HALFWAY * shortest[:, None]).mean(axis=1) > MOSTLY
    for rank in np.flatnonzero((events.sum(axis=1) >= 2) & ~is_late).tolist():
        mine = events[rank]
        is_regular = _is_rhythm(np.flatnonzero(mine), len(mine))
        is_alike_rhythm = is_regular and _unlikeness(deviation.series[rank][mine]) <= IDLE_SIGMA
        # Late starts come from slow input too; only their rhythm makes them pauses.
        if metric.where == "head":
            is_pause = is_alike_rhythm
        else:
            is_pause = (is_alike_rhythm or mine.sum() >= limits.min_pauses) and _is_pause(view, rank, mine)
        if is_pause:
            yield _suspect(view, metric, deviation, rank, events=mine, is_regular=is_regular)


def _chance(series: FloatArray, rank: int, mine: BoolArray, *, is_regular: bool) -> float:
    """P that any rank has as many accidents in such a rhythm and as alike, at the rate of the others'.

    An accident is half as long as the rank's shortest pause, or longer.
    """
    n_ranks, n_steps = series.shape
    n_mine = int(mine.sum())
    # Looked for in two places: before a step's first operator, and behind it.
    chance = 2.0 * n_ranks * chance_of_as_many(n_mine, series, rank, float(series[rank][mine].min()))
    if is_regular:
        rhythms = (range(begin, n_steps, every) for every in range(2, n_steps) for begin in range(every))
        n_regular = sum(len(one) == n_mine and _is_rhythm(np.array(one), n_steps) for one in rhythms)
        chance *= n_regular / comb(n_steps, n_mine)
    unlike = _unlikeness(series[rank][mine])
    return float(min(1.0, chance * (unlike if unlike <= IDLE_SIGMA else 1.0)))


def _unlikeness(lengths_us: FloatArray) -> float:
    """How far pauses are from one length, as a share of it."""
    return float(np.ptp(lengths_us) / lengths_us.mean())


def _is_pause(view: JobView, rank: int, active: BoolArray) -> bool:
    if view.gaps is None:
        return True
    peers = view.peers_of(rank)
    lost = view.gaps.lost_us(np.array([rank]), peers)
    return lost is None or concentration(lost, active) >= HALFWAY


def _is_rhythm(steps: IntArray, n_steps: int) -> bool:
    """Regular events, near enough for one more in the profile: any two of them have some distance."""
    return _is_regular(steps, n_steps) and 2 * int(np.diff(steps)[0]) <= n_steps


def _is_regular(steps: IntArray, n_steps: int) -> bool:
    """Events at equal distances of two steps or more, from the first step on to the last; one event is."""
    distances = set(np.diff(steps).tolist())
    if not distances:
        return True
    distance = min(distances)
    covers = int(steps[0]) < distance and int(steps[-1]) + distance >= n_steps
    return len(distances) == 1 and distance >= 2 and covers


def _suspect(
    view: JobView, metric: Metric, deviation: Deviation, rank: int, *, events: BoolArray, is_regular: bool
) -> Suspect:
    one = suspect_of(view, metric, deviation, rank, events)
    length_us = float(median(deviation.series[rank][events]))
    excess = one.excess_us
    if metric.where != "head" and excess is not None:
        excess = excess.copy()
        excess[rank] += _before_the_step_us(view, rank, ~events, length_us)
    said = fact("rank_pauses", length_us=length_us, n_steps=len(events))
    if is_regular:
        every_n_steps = int(np.diff(np.flatnonzero(events))[0])
        said = fact("rank_pauses_regularly", length_us=length_us, every_n_steps=every_n_steps)
    return replace(
        one,
        key=f"periodic_pause-{view.ranks[rank]}",
        kind="periodic_pause",
        cause="dispatch",
        facts=(said,),
        excess_us=excess,
        where="head" if metric.where == "head" else "pauses",
        p_value=_chance(deviation.series, rank, events, is_regular=is_regular),
    )


def _before_the_step_us(view: JobView, rank: int, others: BoolArray, length_us: float) -> FloatArray:
    """What a rank pauses before its first operator in some other steps (S,), for as long as it pauses.

    Where all ranks pause there, as for a checkpoint, its own comes on top.
    """
    longer = np.nan_to_num(view.preparing_us[rank] - median(view.preparing_us[view.peers_of(rank)], 0))
    is_alike = np.abs(longer - length_us) <= IDLE_SIGMA * length_us
    return np.where(others & is_alike, longer, 0.0)


def job_pauses(view: JobView, metric: Metric, limits: Thresholds) -> Iterator[Suspect]:
    """Give the pause that all ranks make in some steps, if there is one."""
    n_steps = len(view.steps)
    by_step = median(metric.time_us, 0)
    usual = float(median(by_step))
    if n_steps < limits.min_steps_intermittent or not np.isfinite(by_step).all():
        return
    extra = np.where(by_step - usual > TWICE * metric.effect, by_step - usual, 0.0)
    events = np.flatnonzero(extra)
    if not 0 < len(events) <= n_steps // 2 or not _is_regular(events, n_steps):
        return
    length_us, pause_us = float(extra[events].mean()), float(by_step[events].mean())
    said = fact("job_pauses_once", length_us=length_us)
    if len(events) > 1:
        every_n_steps = int(np.diff(events)[0])
        said = fact("job_pauses_regularly", length_us=length_us, every_n_steps=every_n_steps)
    yield Suspect(
        key="periodic_pause",
        kind="periodic_pause",
        cause="dispatch",
        pattern="intermittent" if len(events) > 1 else "transient",
        step_positions=tuple(events.tolist()),
        evidence=(Evidence("free_us", pause_us, usual, metric.floor, n_steps - len(events)),),
        facts=(said,),
        excess_us=np.minimum(np.broadcast_to(extra, metric.time_us.shape), np.nan_to_num(metric.time_us)),
        where="pauses",
        is_alarm=False,
    )
