"""Slow ranks and hosts in one or two steps: slow throughout the step, or for a moment."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.facts import fact


def confirmed(view: JobView, suspect: Suspect, limits: Thresholds) -> Suspect:
    """Return the suspect as far as its steps confirm it: fully from three on.

    Slow in no one place of a step it is an alarm of medium confidence. Where computing has too few places to
    tell, a large difference is one of low confidence: a pause does not lengthen it. All else stays open.
    Late starts happen once a step, so that nothing within a step can confirm them. No pause lies in all ranks
    of a host: it must compute longer than by nature, or be idle a multiple of its peers' time.
    """
    if len(view.steps) >= limits.min_steps_confident:
        return suspect
    row, is_computing = suspect.evidence[0], suspect.cause == "compute"
    excess = row.value / row.peers_median - 1.0 if row.peers_median > 0 else np.inf
    is_multiple = 1.0 + excess >= limits.single_step_idle_factor
    is_long = excess >= limits.natural_effect if is_computing else is_multiple
    rank, in_all = view.position_of(suspect.ranks[0]), np.ones(len(view.steps), bool)
    is_spread = suspect.is_slow_host or not view.in_one_gap(rank, in_all)
    if is_long and is_spread and suspect.where != "head":
        return replace(suspect, confidence="medium")
    said = fact("moment_or_fault", n_steps=len(view.steps))
    doubted = replace(suspect, confidence="low", facts=(*suspect.facts, said))
    is_large = is_computing and excess >= limits.single_step_device_effect
    return doubted if is_large else replace(doubted, pattern="transient", is_alarm=False)
