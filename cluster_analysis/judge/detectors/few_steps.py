"""What one or two steps can show of a slow rank: whether it is slow all through a step, or for a moment."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.replay.role_gaps import concentration, longer_share
from cluster_analysis.thresholds.common import HALFWAY, MOSTLY
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.facts import fact


def confirmed_within_step(view: JobView, suspect: Suspect, limits: Thresholds) -> Suspect:
    """Return the suspect as far as one or two steps confirm it.

    Slow at most places of a step it is an alarm of medium confidence. Where computing has too few places to
    tell, a large difference is one of low confidence: a pause does not lengthen it. All else stays open.
    Late starts happen once a step, so that nothing within a step can confirm them.
    """
    doubt = (*suspect.facts, fact("moment_or_fault", n_steps=len(view.steps)))
    if suspect.where == "spread" and _is_slow_throughout(view, suspect, limits):
        return replace(suspect, confidence="medium")
    row = suspect.evidence[0]
    excess = row.value - row.peers_median
    if suspect.cause == "compute" and excess >= limits.single_step_device_effect * row.peers_median:
        return replace(suspect, confidence="low", facts=doubt)
    return replace(suspect, pattern="transient", confidence="low", is_alarm=False, facts=doubt)


def _is_slow_throughout(view: JobView, suspect: Suspect, limits: Thresholds) -> bool:
    rank = np.searchsorted(view.ranks, suspect.ranks[:1])
    peers = view.peers_of(int(rank[0]))
    lost = None if view.gaps is None else view.gaps.lost_us(rank, peers)
    every_step = np.ones(len(view.steps), bool)
    if view.gaps is None or lost is None or concentration(lost, every_step) > HALFWAY:
        return False
    if suspect.cause == "compute":
        return (view.gaps.slow_share(rank, peers) or 0.0) >= MOSTLY
    # Idle time differs by a third from step to step on every rank: only a multiple of it is news.
    row = suspect.evidence[0]
    is_multiple = row.value >= limits.single_step_idle_factor * row.peers_median
    return is_multiple and longer_share(lost, every_step) >= MOSTLY
