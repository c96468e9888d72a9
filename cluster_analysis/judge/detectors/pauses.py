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
from cluster_analysis.judge.measures.metrics import Metric, late
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import IntArray
from cluster_analysis.numeric.stats import median
from cluster_analysis.thresholds.common import HALFWAY, MOSTLY, TWICE
from cluster_analysis.thresholds.devices import IDLE_SIGMA
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.facts import fact
from cluster_run.findings import Evidence


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give ranks that pause again and again, and the pause that all ranks make in some steps."""
    for metric in case.metrics:
        if not metric.is_log:
            yield from paused_ranks(case, metric)
        if metric.name == "free":
            yield from job_pauses(case.view, metric, case.limits)


def paused_ranks(case: Case, metric: Metric) -> Iterator[Suspect]:
    """Give ranks that pause again and again; `metric` is idle time, between operators or before them.

    Also ranks of hosts that are slow all the time: those pause in no step or in each. No chance are as many
    pauses, by how often others pause half as long, in such a rhythm, and as alike.
    """
    view, deviation = case.view, case.deviation(metric)
    n_ranks, n_steps = deviation.series.shape
    events = deviation.events(metric.event_effect)
    # Where all pause for unlike times nothing stands out; who is late in nearly all steps pauses in none.
    shortest, chances = deviation.sizes_and_chances(events)
    is_late = (deviation.series >= HALFWAY * shortest[:, None]).mean(axis=1) > MOSTLY
    for rank in np.flatnonzero((events.sum(axis=1) >= 2) & ~is_late).tolist():
        mine = events[rank]
        n_pauses, lengths_us = int(mine.sum()), deviation.series[rank][mine]
        unlike = float(np.ptp(lengths_us) / lengths_us.mean())
        every = _every(np.flatnonzero(mine), n_steps)
        is_rhythm = 0 < 2 * every <= n_steps  # near enough for one more in the profile
        # Late starts come from slow input too; only their rhythm makes them pauses.
        is_often = metric.where != "head" and n_pauses >= case.limits.min_pauses
        is_alike_rhythm = is_rhythm and unlike <= IDLE_SIGMA
        if not (is_alike_rhythm or is_often) or not (metric.where == "head" or view.in_one_gap(rank, mine)):
            continue
        # Looked for in two places: before a step's first operator, and behind it.
        p_value = 2.0 * n_ranks * float(chances[rank]) * (unlike if unlike <= IDLE_SIGMA else 1.0)
        length_us = float(median(lengths_us))
        said = fact("rank_pauses", length_us=length_us, n_steps=n_steps)
        if is_rhythm:
            n_rhythms = [
                len(range(at, n_steps, gap)) for gap in range(2, n_steps // 2 + 1) for at in range(gap)
            ]
            p_value *= n_rhythms.count(n_pauses) / comb(n_steps, n_pauses)
            said = fact("rank_pauses_regularly", length_us=length_us, every_n_steps=every)
        series, scale, n_others = deviation.series[rank], deviation.scale[rank], len(view.peers_of(rank))
        one = late(view, metric, np.array([rank]), series, mine, scale=scale, n_others=n_others)
        yield replace(
            one,
            key=f"periodic_pause-{view.ranks[rank]}",
            kind="periodic_pause",
            cause="dispatch",
            facts=(said,),
            where="head" if metric.where == "head" else "pauses",
            p_value=min(1.0, p_value),
        )


def _every(steps: IntArray, n_steps: int) -> int:
    """How many steps apart events are, at equal distances from the first step on to the last; 0 if not."""
    distances = set(np.diff(steps).tolist())
    every = min(distances, default=0)
    covers = int(steps[0]) < every and int(steps[-1]) + every >= n_steps
    return every if len(distances) == 1 and every >= 2 and covers else 0


def job_pauses(view: JobView, metric: Metric, limits: Thresholds) -> Iterator[Suspect]:
    """Give the pause that all ranks make in some steps, if there is one."""
    n_steps = len(view.steps)
    by_step = median(metric.time_us, 0)
    usual = float(median(by_step))
    if n_steps < limits.min_steps_intermittent or not np.isfinite(by_step).all():
        return
    extra = np.where(by_step - usual > TWICE * metric.effect, by_step - usual, 0.0)
    events = np.flatnonzero(extra)
    every = _every(events, n_steps) if len(events) else 0
    if not (len(events) == 1 or (every and len(events) <= n_steps // 2)):
        return
    length_us, pause_us = float(extra[events].mean()), float(by_step[events].mean())
    said = fact("job_pauses_once", length_us=length_us)
    if every:
        said = fact("job_pauses_regularly", length_us=length_us, every_n_steps=every)
    yield Suspect(
        key="periodic_pause",
        kind="periodic_pause",
        cause="dispatch",
        pattern="intermittent" if every else "transient",
        step_positions=tuple(events.tolist()),
        evidence=(Evidence("free_us", pause_us, usual, metric.floor, n_steps - len(events)),),
        facts=(said,),
        excess_us=np.minimum(np.broadcast_to(extra, metric.time_us.shape), np.nan_to_num(metric.time_us)),
        where="pauses",
        is_alarm=False,
    )
