"""Pauses: idle time in one place of a step, in some steps.

Every rank pauses in some steps (the host's scheduler, an allocator). Where the same rank pauses again and
again, the rank has a cause of its own. Where all ranks pause every few steps, the job has one (garbage
collection, checkpoints).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.numeric.arrays import BoolArray, FloatArray
from cluster_analysis.numeric.rhythm import every_so_many, rhythm_of
from cluster_analysis.numeric.stats import median
from cluster_analysis.thresholds.common import HALFWAY, MOSTLY, TWICE
from cluster_run.facts import Fact, fact
from cluster_run.findings import Evidence


def as_pause(case: Case, one: Suspect, rank: int, lost_us: FloatArray, events: BoolArray) -> Suspect:
    """Return the suspect, which loses `lost_us` (S,), as a rank that pauses in steps of `events` (S,).

    It does if each loss lies in one gap. Late starts are pauses only in a rhythm: slow input makes them, too.
    """
    every = rhythm_of(events)
    # A rank that is late in nearly all steps does not pause.
    is_late = float((lost_us >= HALFWAY * lost_us[events].min()).mean()) > MOSTLY
    if is_late or not (every if one.cause == "input" else case.view.in_one_gap(rank, events)):
        return one
    length_us = float(median(lost_us[events]))
    said = fact("rank_pauses", length_us=length_us, n_steps=len(events))
    if every:
        said = fact("rank_pauses_regularly", length_us=length_us, every_n_steps=every)
    return replace(
        one,
        key=f"periodic_pause-{case.view.ranks[rank]}",
        kind="periodic_pause",
        cause="dispatch",
        facts=(said,),
        where="pauses",
    )


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give the pause that all ranks make in some steps, if there is one."""
    local = next((one for one in case.local_times if not one.is_computing), None)
    n_steps = len(case.view.steps)
    if local is None or n_steps < case.limits.min_steps_intermittent:
        return
    by_step = median(local.time_us, 0)
    usual = float(median(by_step))
    if not np.isfinite(by_step).all():
        return
    is_event = by_step - usual > TWICE * local.effect
    usual = float(median(by_step[~is_event]))  # the median of all may lie between both
    extra = np.where(is_event, by_step - usual, 0.0)
    events, every = np.flatnonzero(is_event), every_so_many(is_event)
    # The first step of a capture begins later on all ranks.
    least_us = case.limits.sure_cost_share * case.view.mean_step_us
    if extra.mean() < least_us or not (len(events) == 1 or every):
        return
    length_us = float(extra[events].mean())
    said = fact("job_pauses_once", length_us=length_us)
    if every:
        said = fact("job_pauses_regularly", length_us=length_us, every_n_steps=every)
    lost_us = np.minimum(np.broadcast_to(extra, local.time_us.shape), np.nan_to_num(local.time_us))
    row = Evidence("idle_us", usual + length_us, usual, local.floor, n_steps - len(events))
    one = _pauses(case, "periodic_pause", lost_us, row, said)
    yield one if every else replace(one, pattern="transient")


def by_turns(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give the pauses of all ranks that no other finding names as one: each may be chance, their sum is not.

    Each rank pauses where it idles far longer than usually, beyond what all ranks do in that step. Steps in
    which the whole job pauses do not count.
    """
    view, limits = case.view, case.limits
    if len(view.steps) < limits.min_steps_confident:
        return
    idle = [one for one in found if one.cause != "compute"]
    all_pause = {at for one in idle if not one.ranks for at in one.positions(len(view.steps))}
    sure = [  # a suspect that comes and goes, and is no rare accident, will be no alarm
        one
        for one in idle
        if one.is_alarm and (one.pattern != "intermittent" or one.p_value <= limits.alarm_p_value)
    ]
    for local in (one for one in case.local_times if not one.is_computing):
        # Where input comes late by turns, it may in most steps of a rank: its peers tell what is usual.
        longer_us = view.paused_us + np.maximum(np.nan_to_num(case.deviation(local).level), 0.0)[:, None]
        longer_us -= np.maximum(np.nan_to_num(median(longer_us, 0)), 0.0)
        is_pause = np.nan_to_num(longer_us) > local.event_effect
        is_pause[case.ranks_of(sure)] = False
        is_pause[:, sorted(all_pause)] = False
        lost_us = np.where(is_pause, longer_us, 0.0)
        if lost_us.max(axis=0, initial=0.0).mean() < local.effect:
            continue
        own, length_us = np.flatnonzero(is_pause.any(axis=1)), float(median(lost_us[is_pause]))
        usual_us = float(median(local.time_us))
        said = fact(
            "ranks_pause_by_turns",
            ranks=view.rank_ids(own), n_pauses=int(is_pause.sum()),
            n_steps=len(view.steps), length_us=length_us,
        )  # fmt: skip
        row = Evidence("idle_us", usual_us + length_us, usual_us, local.floor, len(view.ranks))
        one = _pauses(case, "periodic_pause-by-turns", lost_us, row, said)
        yield replace(one, ranks=view.rank_ids(own), confidence="medium")


def _pauses(case: Case, key: str, lost_us: FloatArray, row: Evidence, said: Fact) -> Suspect:
    """Pauses that are no rank's: information.

    Before a step's first operator lies what is longer there than usual.
    """
    preparing = np.nan_to_num(case.view.preparing_us)
    usual = np.nan_to_num(median(np.where(lost_us > 0, np.nan, preparing), 1)[:, None])
    return Suspect(
        key, "periodic_pause", (row,), tuple(np.flatnonzero((lost_us > 0).any(axis=0)).tolist()),
        cause="dispatch", pattern="intermittent", facts=(said,), where="pauses", is_alarm=False,
        excess_us=lost_us, head_us=np.clip(preparing - usual, 0.0, lost_us),
    )  # fmt: skip
