"""From a suspect to a finding: an ordered list of rules, one thing about its cost or chance each.

The first ones say what it costs, those after them whether somebody should act on it, and the last ones how
sure that is. Each is a plain function of the finding so far and of the job; `RULES` is their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import get_args

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cluster_analysis.judge.cost.whatif import Saving
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.stats import median
from cluster_analysis.thresholds.common import HALFWAY, TWICE
from cluster_analysis.thresholds.judging import WIDE_INTERVAL
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.facts import Fact, fact
from cluster_run.findings import WARNING_COST_SHARE, Confidence, Finding, Severity, severity_of

#: From high to low.
_CONFIDENCES: tuple[Confidence, ...] = get_args(Confidence)


class FindingDraft(Struct, frozen=True):
    """A finding, as far as the rules have made it: µs of the mean step, None where that is not known.

    `weight_us` decides how severe it is: mostly the cost, or what else is known to be lost. `seen_us` is what
    its own steps show, where the replay does not.
    """

    suspect: Suspect
    saving: Saving
    facts: tuple[Fact, ...]
    confidence: Confidence
    cost_us: float | None = None
    weight_us: float | None = None
    seen_us: float = 0.0
    low_us: float | None = None
    high_us: float | None = None
    severity: Severity = "info"


class Context(Struct, frozen=True):
    """Properties of the job that rules ask for.

    `chance_us` is what a cost must exceed, as "repairing" healthy ranks seems to save nearly as much. The
    replay is off by `error_share` (of the mean step `mean_error_share`), and copies `copied_share` of all
    waiting; `holds_the_step`: that of some rank which the step waits for.
    `prior` is the probability that the device of a rank is slow, from other runs; empty without a fleet.
    """

    view: JobView
    limits: Thresholds
    step_us: float
    chance_us: float
    error_share: float
    mean_error_share: float
    copied_share: float
    holds_the_step: bool
    prior: Mapping[int, float]

    @property
    def is_far_off(self) -> bool:
        """Whether the replay may hide what was lost."""
        return max(self.error_share, self.mean_error_share) > self.limits.replay_refuse


Rule = Callable[[FindingDraft, Context], FindingDraft]


def finding_of(suspect: Suspect, saving: Saving, context: Context) -> Finding:
    """Turn a suspect and what its repair saves into a finding, an alarm if all rules let it be one."""
    one = FindingDraft(suspect, saving, suspect.facts, suspect.confidence)
    for rule in RULES:
        one = rule(one, context)
    steps = context.view.steps
    share = None if one.cost_us is None or not context.step_us > 0 else one.cost_us / context.step_us
    return Finding(
        id=suspect.key,
        kind=suspect.kind,
        severity=one.severity,
        ranks=suspect.ranks,
        hosts=suspect.hosts,
        links=suspect.links,
        cause=suspect.cause,
        pattern=suspect.pattern,
        steps=tuple(steps[position] for position in suspect.positions(len(steps))),
        cost_ms_per_step=_ms(one.cost_us),
        cost_share=None if share is None else round(share, 6),
        cumulative_saving_ms=_ms(one.saving.cumulative_us),
        confidence=one.confidence,
        evidence=suspect.evidence,
        facts=one.facts,
        cost_low_ms=_ms(one.low_us),
        cost_high_ms=_ms(one.high_us),
        separable=suspect.separable,
    )


def _ms(us: float | None) -> float | None:
    return None if us is None else round(us / 1e3, 3)


def costs_what_its_repair_saves(one: FindingDraft, context: Context) -> FindingDraft:
    """The cost by replay; where nothing can be replayed an upper bound, reported as one."""
    suspect, saving = one.suspect, one.saving
    if suspect.excess_us is None and suspect.link_factor is None:
        return replace(one, weight_us=saving.bound_us)
    if saving.alone_us is not None:
        cost = max(saving.alone_us, 0.0)
        return replace(one, cost_us=cost, weight_us=cost)
    if saving.bound_us is None:
        return one
    if not context.view.shows_waiting:
        cost, said = saving.bound_us, (*one.facts, fact("cost_is_bound"))
        return replace(one, cost_us=cost, weight_us=cost, facts=said)
    return replace(one, weight_us=saving.bound_us, facts=(*one.facts, fact("cost_not_replayable")))


def weighs_what_its_steps_show(one: FindingDraft, context: Context) -> FindingDraft:
    """An event weighs what its ranks' own steps are longer than others, where the replay explains half of it.

    At most what its operator lost. Ranks that were not part of it show the delay a step later, if it came at
    the end of one. Not where every step has one.
    """
    suspect, view = one.suspect, context.view
    own = median(view.step_us[np.isin(view.ranks, suspect.ranks)], 0)
    is_hit = np.isin(np.arange(len(own)), suspect.positions(len(own)))
    if not suspect.record.is_event or is_hit.all():
        return one
    row = suspect.evidence[0]
    longer = float(own[is_hit].max()) - float(own[~is_hit].max())
    seen = max(0.0, float(np.nan_to_num(min(longer, row.value - row.peers_median)))) / len(own)
    one = replace(one, seen_us=seen)
    if not seen > TWICE * max(one.cost_us or 0.0, one.saving.after_others_us or 0.0):
        return one
    return replace(one, cost_us=None, weight_us=seen, facts=(*one.facts, fact("cost_not_explained")))


def weighs_what_others_hide(one: FindingDraft, context: Context) -> FindingDraft:
    """Two equal faults cost nothing alone, so each weighs what it costs once all others are repaired."""
    # Not an event: a single call that a fault hides may be a record that was filled in.
    hidden = 0.0 if one.suspect.record.is_event else one.saving.after_others_us or 0.0
    is_more = one.weight_us is not None and hidden >= TWICE * max(one.weight_us, 1.0)
    if not is_more or not hidden >= WARNING_COST_SHARE * context.step_us:
        return one
    return replace(one, weight_us=hidden, facts=(*one.facts, fact("hidden", cost_us=hidden)))


def lies_between_alone_and_last(one: FindingDraft, context: Context) -> FindingDraft:
    """A cost lies between what its repair saves alone and after all others; else below the bound."""
    if one.cost_us is None:
        return replace(one, high_us=one.saving.bound_us)
    known = [us for us in (one.cost_us, one.saving.after_others_us or None) if us is not None]
    bound = one.saving.bound_us if one.suspect.record.is_event else None
    # A replay in which nearly nobody waits for calls that took far longer may have read their order wrongly.
    if bound is not None and bound > TWICE * max(known):
        known.append(bound)
    return replace(one, low_us=min(known), high_us=max(known))


def weighs_its_lead(one: FindingDraft, context: Context) -> FindingDraft:
    """A device weighs its lead over the latest unsuspected rank, unless something else explains that.

    Stages may wait for others. Where all ranks do the same work, or a device is slower than any healthy one,
    it is worth a look whatever the replay says: waiting that is copied replays exactly. A single step may be
    chance, and only may cost its lead; a trend costs what the replay says.
    """
    suspect, limits = one.suspect, context.limits
    is_other = suspect.cause != "compute" or suspect.pattern == "trend"
    if one.cost_us is None or is_other or not suspect.evidence:
        return one
    alike = len(set(context.view.role.tolist())) < 2
    least = limits.natural_effect if alike else limits.single_step_device_effect
    is_host = alike and suspect.record.subject == "host"
    late = (one.saving.bound_us or 0.0) if is_host or suspect.evidence[0].beyond_share >= least else 0.0
    weight, worth_a_look = one.weight_us or 0.0, limits.sure_cost_share * context.step_us
    if late < max(TWICE * weight, worth_a_look):
        return one
    weight = weight if suspect.pattern == "transient" else max(weight, worth_a_look)
    said = (*one.facts, fact("late_even_so", cost_us=late))
    return replace(one, weight_us=weight, high_us=max(one.high_us or 0.0, late), facts=said)


def is_no_loss_if_it_only_covers_communication(one: FindingDraft, context: Context) -> FindingDraft:
    """Covering communication would save time, but is no repair: the saving is reported, and is no cost."""
    if one.suspect.record.is_repairable or one.cost_us is None:
        return one
    said = (*one.facts, fact("could_be_covered", cost_us=one.cost_us))
    unrepaired = replace(one, cost_us=None, low_us=None, saving=replace(one.saving, cumulative_us=None))
    # A missing rank, or waiting for what no file shows, may decide how long the step is: no bound then.
    lacks_ranks = context.view.expected_ranks > len(context.view.ranks)
    is_bound = not (lacks_ranks or context.holds_the_step)
    return replace(unrepaired, facts=said) if is_bound else replace(unrepaired, high_us=None)


def is_as_severe_as_costly(one: FindingDraft, context: Context) -> FindingDraft:
    """Severity follows from the weight."""
    share = None if one.weight_us is None else one.weight_us / context.step_us
    return replace(one, severity=severity_of(share))


def is_information_by_itself(one: FindingDraft, context: Context) -> FindingDraft:
    """Suspects that are no alarms stay information, and so do cheap events and moments of devices."""
    is_of_device = (one.suspect.cause, one.suspect.pattern) == ("compute", "transient")
    is_moment = is_of_device or one.suspect.record.is_event
    is_little = is_moment and (one.weight_us or 0.0) < context.limits.sure_cost_share * context.step_us
    return replace(one, severity="info") if is_little or not one.suspect.is_alarm else one


def is_no_chance(one: FindingDraft, context: Context) -> FindingDraft:
    """Among many ranks one is always the slowest: an alarm must be improbable over all of them.

    Intermittent idle time must be improbable whatever it costs, as accidents are costly too.
    """
    suspect, limits = one.suspect, context.limits
    is_accident = suspect.cause != "compute" and suspect.pattern == "intermittent"
    if is_accident:
        return one if suspect.p_value <= limits.alarm_p_value else replace(one, severity="info")
    has_no_cost = one.cost_us is None and one.seen_us == 0.0 and context.view.shows_waiting
    share = 0.0 if has_no_cost or not context.step_us > 0 else (one.weight_us or 0.0) / context.step_us
    chance = suspect.p_value + _chance_of_nature(suspect, context.view, limits)
    chance *= _surprise(suspect, context)
    is_rare = chance <= limits.chance_per_cost * max(share, WARNING_COST_SHARE)
    return one if is_rare else replace(one, severity="info")


def _chance_of_nature(suspect: Suspect, view: JobView, limits: Thresholds) -> float:
    """P that one of all healthy devices, or hosts, is as slow: one in a hundred has a long tail."""
    if (suspect.cause, suspect.pattern) != ("compute", "persistent"):
        return 0.0
    excess = suspect.evidence[0].beyond_share
    n_units = len(view.hosts) if suspect.record.subject == "host" else len(view.ranks)
    return min(1.0, n_units * limits.natural_share * math.exp(-excess / limits.natural_tail))


def _surprise(suspect: Suspect, context: Context) -> float:
    """How much rarer it is that this device is slow than that any is: the ratio of their odds; 1 if unknown.

    Less evidence is enough for a device known to be slow; one known to be healthy needs more.
    """
    known = [context.prior[rank] for rank in suspect.ranks if rank in context.prior]
    if suspect.cause != "compute" or not known:
        return 1.0
    own, any_device = float(np.median(known)), context.limits.natural_share
    return any_device / (1 - any_device) * (1 - own) / own


def costs_more_than_healthy_ranks(one: FindingDraft, context: Context) -> FindingDraft:
    """The placebo: a saving that "repairing" healthy ranks seems to give as well is no loss."""
    is_less = one.weight_us is not None and one.weight_us < context.chance_us
    return replace(one, severity="info") if is_less and one.suspect.link_factor is None else one


def may_cost_all_that_its_ranks_lose(one: FindingDraft, context: Context) -> FindingDraft:
    """The upper cost of a late host, also in no pattern, and of one without peers to compare its gaps with.

    Hosts with peers and parts of the network that are no alarm get none: open questions cover all hosts.
    """
    most_us, suspect = one.saving.most_us, one.suspect
    is_asked = one.severity != "info" or not (suspect.separable or suspect.mended)
    if one.high_us is None or most_us is None or not is_asked:
        return one
    return replace(one, high_us=max(one.high_us, most_us))


def is_at_least_this_if_waiting_is_unknown(one: FindingDraft, context: Context) -> FindingDraft:
    """A cost may be higher if a rank waits for something that no file shows: no repair shortens that."""
    if not context.holds_the_step or one.cost_us is None:
        return one
    return _at_most(replace(one, facts=(*one.facts, fact("cost_at_least"))), "low")


def is_as_sure_as_the_replay(one: FindingDraft, context: Context) -> FindingDraft:
    """No cost is sure if its interval is wide, the replay is off, or ranks waited for unknown ones."""
    one = _at_most(one, "medium") if lie_apart(one.low_us, one.high_us, context.step_us) else one
    is_inside = context.view.inside_share >= context.limits.open_cost_share
    if context.is_far_off or context.copied_share > HALFWAY or is_inside:
        one = _at_most(one, "low")
    return _at_most(one, "medium") if context.mean_error_share > context.limits.replay_mean_doubt else one


def _at_most(one: FindingDraft, most: Confidence) -> FindingDraft:
    return replace(one, confidence=less_sure(one.confidence, most)) if one.cost_us is not None else one


def less_sure(first: Confidence, second: Confidence) -> Confidence:
    """The less sure one of two."""
    return max(first, second, key=_CONFIDENCES.index)


def lie_apart(low: float | None, high: float | None, step: float) -> bool:
    """Whether the interval of a saving is known, wide, and that matters; `step` in the unit of both ends."""
    if low is None or high is None:
        return False
    return high > WIDE_INTERVAL * low and high - low >= WARNING_COST_SHARE * step


#: In their order: what it costs, whether somebody should act on it, how sure that is.
RULES: Sequence[Rule] = (
    costs_what_its_repair_saves,
    weighs_what_its_steps_show,
    weighs_what_others_hide,
    lies_between_alone_and_last,
    weighs_its_lead,
    is_no_loss_if_it_only_covers_communication,
    is_as_severe_as_costly,
    is_information_by_itself,
    is_no_chance,
    costs_more_than_healthy_ranks,
    may_cost_all_that_its_ranks_lose,
    is_at_least_this_if_waiting_is_unknown,
    is_as_sure_as_the_replay,
)
