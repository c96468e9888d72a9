"""What one or two steps can show of a slow rank or host: whether it is slow all through, or for a moment."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.replay.role_gaps import concentration, longer_share
from cluster_analysis.thresholds.common import HALFWAY, MOSTLY
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.facts import fact


def confirmed(view: JobView, suspect: Suspect, limits: Thresholds) -> Suspect:
    """Return the suspect as far as its steps confirm it: fully from three on.

    Slow at most places of a step it is an alarm of medium confidence. Where computing has too few places to
    tell, a large difference is one of low confidence: a pause does not lengthen it. All else stays open.
    Late starts happen once a step, so that nothing within a step can confirm them. No pause lies in all ranks
    of a host: it must compute longer than by nature, or be idle a multiple of its peers' time.
    """
    if len(view.steps) >= limits.min_steps_confident:
        return suspect
    row, is_computing = suspect.evidence[0], suspect.cause == "compute"
    excess = row.value / row.peers_median - 1.0 if row.peers_median > 0 else np.inf
    is_multiple = 1.0 + excess >= limits.single_step_idle_factor
    if suspect.kind == "slow_host":
        is_sure = excess >= limits.natural_effect if is_computing else is_multiple
    else:
        is_sure = (is_computing or is_multiple) and _is_slow_throughout(view, suspect)
    if is_sure and suspect.where != "head":
        return replace(suspect, confidence="medium")
    doubted = replace(
        suspect, confidence="low", facts=(*suspect.facts, fact("moment_or_fault", n_steps=len(view.steps)))
    )
    if is_computing and excess >= limits.single_step_device_effect:
        return doubted
    return replace(doubted, pattern="transient", is_alarm=False)


def _is_slow_throughout(view: JobView, suspect: Suspect) -> bool:
    """Whether most gaps of a rank are long, by no single one of them."""
    rank = np.searchsorted(view.ranks, suspect.ranks[:1])
    peers = view.peers_of(int(rank[0]))
    lost = None if view.gaps is None else view.gaps.lost_us(rank, peers)
    every_step = np.ones(len(view.steps), bool)
    if view.gaps is None or lost is None or concentration(lost, every_step) > HALFWAY:
        return False
    if suspect.cause == "compute":
        return (view.gaps.slow_share(rank, peers) or 0.0) >= MOSTLY
    # Idle time differs by a third from step to step on every rank: only a multiple of it is news.
    return longer_share(lost, every_step) >= MOSTLY
