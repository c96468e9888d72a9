"""The gates between a suspect and an alarm: costly and improbable enough, and beyond what nature does."""

from __future__ import annotations

import math

import numpy as np

from cluster_analysis.judge.cost.whatif import Saving
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.stats import median
from cluster_analysis.thresholds.common import FAR_SIGMAS, TWICE
from cluster_analysis.thresholds.cost import WIDE_INTERVAL
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.facts import fact
from cluster_run.findings import (
    CRITICAL_COST_SHARE,
    WARNING_COST_SHARE,
    Confidence,
    Finding,
    Severity,
    severity_of,
)


def finding_of(
    view: JobView, suspect: Suspect, saving: Saving, limits: Thresholds, *, step_us: float, chance_us: float
) -> Finding:
    """Turn a suspect and what its repair saves into a finding, an alarm if all gates hold.

    Args:
        view: the job.
        suspect: what a detector found.
        saving: what the replay says that its repair saves.
        limits: the gates.
        step_us: the mean step.
        chance_us: what a cost must exceed, as "repairing" healthy ranks seems to save nearly as much.
    """
    is_known = suspect.excess_us is not None or suspect.link_factor is not None
    cost = None if saving.alone_us is None or not is_known else max(saving.alone_us, 0.0)
    facts = list(suspect.facts)
    if cost is None and view.graph is None and saving.bound_us is not None:
        cost = saving.bound_us
        facts.append(fact("cost_is_bound"))
    elif cost is None and is_known and saving.bound_us is not None:
        facts.append(fact("cost_not_replayable"))
    weight = cost if cost is not None else saving.bound_us
    hidden = saving.after_others_us or 0.0
    seen_us = _seen_in_its_steps(view, suspect)
    if seen_us > TWICE * max(cost or 0.0, hidden):
        cost, weight = None, seen_us
        facts.append(fact("cost_not_explained"))
    if weight is not None and hidden >= TWICE * max(weight, 1.0) and hidden >= WARNING_COST_SHARE * step_us:
        weight = hidden
        facts.append(fact("hidden", cost_us=hidden))
    low, high = _interval(cost, saving)
    late = _late_even_so(view, suspect, saving, limits)
    if cost is not None and late >= max(TWICE * (weight or 0.0), limits.sure_cost_share * step_us):
        weight, high = late, max(high or 0.0, late)
        facts.append(fact("late_even_so", cost_us=late))
    if suspect.kind == "exposed_communication" and cost is not None:
        # No peer does without it: what covering it would save is no loss to anything that misbehaves.
        facts.append(fact("could_be_covered", cost_us=cost))
        cost, low = None, None
    severity: Severity = severity_of(None if weight is None else weight / step_us)
    share = None if cost is None or not step_us > 0 else cost / step_us
    # With many ranks somebody is always the unluckiest: an alarm must be improbable over all of them.
    # Accidents are costly too: of what is idled now and then the cost says nothing.
    is_accident = suspect.cause != "compute" and suspect.pattern == "intermittent"
    is_costly = (weight or 0.0) >= limits.sure_cost_share * step_us and not is_accident
    is_sure = suspect.p_value <= (limits.costly_p_value if is_costly else limits.alarm_p_value)
    is_chance = weight is not None and weight < chance_us and suspect.link_factor is None
    # What cannot be replayed may cost nothing: nature is weighed by what is known to be lost.
    known = 0.0 if cost is None and seen_us == 0.0 and view.graph is not None else weight or 0.0
    is_nature = _is_natural(suspect, known / step_us if step_us > 0 else 0.0, len(view.ranks), limits)
    # A moment of a device is news once it is costly.
    is_little = (suspect.kind, suspect.pattern) == ("slow_rank", "transient") and not is_costly
    if not suspect.is_alarm or not is_sure or is_chance or is_nature or is_little:
        severity = "info"
    return Finding(
        id=suspect.key,
        kind=suspect.kind,
        severity=severity,
        ranks=suspect.ranks,
        hosts=suspect.hosts,
        links=suspect.links,
        cause=suspect.cause,
        pattern=suspect.pattern,
        steps=tuple(view.steps[position] for position in suspect.positions(len(view.steps))),
        cost_ms_per_step=None if cost is None else round(cost / 1e3, 3),
        cost_share=None if share is None else round(share, 6),
        cumulative_saving_ms=None if saving.cumulative_us is None else round(saving.cumulative_us / 1e3, 3),
        confidence=_confidence(suspect.confidence, low, high, step_us),
        evidence=suspect.evidence,
        facts=tuple(facts),
        cost_low_ms=None if low is None else round(low / 1e3, 3),
        cost_high_ms=None if high is None else round(high / 1e3, 3),
        separable=suspect.separable,
    )


def _seen_in_its_steps(view: JobView, suspect: Suspect) -> float:
    """µs a step that a retransmission cost as measured: how much longer its ranks' own steps are than others.

    At most what its operator lost. Ranks that were not part of it show the delay a step later, if it came at
    the end of one. Zero for all other kinds, and where every step has one.
    """
    own = median(view.step_us[np.isin(view.ranks, suspect.ranks)], 0)
    is_hit = np.isin(np.arange(len(own)), suspect.positions(len(own)))
    if suspect.kind != "retransmission" or is_hit.all():
        return 0.0
    row = suspect.evidence[0]
    longer = float(own[is_hit].max()) - float(median(own[~is_hit]))
    return max(0.0, float(np.nan_to_num(min(longer, row.value - row.peers_median)))) / len(own)


def _late_even_so(view: JobView, suspect: Suspect, saving: Saving, limits: Thresholds) -> float:
    """µs a step by which a device is later than all that nobody suspects, where nothing excuses that.

    Stages may wait for others. Where all ranks do the same work, or a device is slower than any healthy one,
    it is worth a look whatever the replay says: waiting that is copied replays exactly.
    """
    lasts = suspect.pattern in ("persistent", "intermittent")
    if suspect.cause != "compute" or not lasts or not suspect.evidence:
        return 0.0
    row = suspect.evidence[0]
    excess = row.value / row.peers_median - 1.0 if row.peers_median > 0 else 0.0
    alike = len(set(view.role.tolist())) < 2
    least = limits.natural_effect if alike else limits.single_step_device_effect
    is_host = alike and suspect.kind == "slow_host"
    return (saving.bound_us or 0.0) if is_host or excess >= least else 0.0


def _interval(cost_us: float | None, saving: Saving) -> tuple[float | None, float | None]:
    """Between what a repair saves alone and once all other faults are repaired; else the bound."""
    known = [us for us in (cost_us, saving.after_others_us or None) if us is not None]
    if cost_us is None:
        return None, saving.bound_us
    return min(known), max(known)


def _confidence(told: Confidence, low: float | None, high: float | None, step_us: float) -> Confidence:
    """Less than high where the two ends of the interval lie far apart, and that matters."""
    if told != "high" or low is None or high is None:
        return told
    return "medium" if lie_apart(low, high, step_us) else told


def lie_apart(low: float, high: float, step: float) -> bool:
    """Whether the two ends of what a repair saves lie far apart, and it matters; `step` in their unit."""
    return high > WIDE_INTERVAL * low and high - low >= WARNING_COST_SHARE * step


def _is_natural(suspect: Suspect, cost_share: float, n_ranks: int, limits: Thresholds) -> bool:
    """Whether devices are no slower than silicon is at times: one in a hundred lies a few percent behind.

    So do those of a host, which is held against other hosts. What is critical is worth a look even so.
    """
    if (suspect.cause, suspect.pattern) != ("compute", "persistent") or cost_share >= CRITICAL_COST_SHARE:
        return False
    row = suspect.evidence[0]
    effect = max(limits.natural_effect, limits.natural_tail * math.log(limits.natural_odds * n_ranks))
    excess = row.value - row.peers_median
    is_beyond_this_job = suspect.kind == "slow_host" or excess >= FAR_SIGMAS * row.peers_mad
    is_costly = cost_share >= limits.sure_cost_share
    if is_costly == is_beyond_this_job:  # what is both is no nature, what is neither is
        return not is_costly
    return excess < effect * row.peers_median
