"""Slow ranks: one rank's local time lies above that of its peers, in all steps, in some, or growing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from msgspec.structs import replace

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.detectors.late import confirmed, late_suspect
from cluster_analysis.judge.detectors.pauses import as_pause
from cluster_analysis.judge.measures.deviation import Deviation, chance_of_as_many, least_by_chance
from cluster_analysis.judge.measures.local_times import LocalTime
from cluster_analysis.judge.suspects import Suspect, most_significant
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.stats import beyond_chance, group_medians, median, most_of_others, theil_sen
from cluster_analysis.numeric.tails import over_looks
from cluster_analysis.thresholds.common import HALFWAY, MOSTLY, TWICE
from cluster_analysis.thresholds.limits import Thresholds


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give slow ranks by their peers, and in computing by kernels, which uneven work does not change.

    Members of a slow host have no findings of their own, unless they pause: it is slow in no step or in each.
    """
    for local in case.local_times:
        in_slow_hosts = case.in_slow_hosts(local, found)
        # A host that may be slow hides no rank.
        sure = [one for one in found if one.is_slow_host and one.p_value <= case.limits.costly_p_value]
        not_named = in_slow_hosts & case.ranks_of(sure)
        # To ranks of other hosts a host that may be slow is a peer, too: without it few are left.
        looks = [(in_slow_hosts, not_named)]
        if in_slow_hosts.any():
            looks.append((np.zeros_like(in_slow_hosts), in_slow_hosts))
        ranks = list[Suspect]()
        for comparison, (excluded, unnamed) in product(case.ways_to_compare(local), looks):
            ranks += rank_suspects(case, comparison, local, excluded, unnamed)
        # Any rank of the job is a peer in what all types of kernels have in common, and in being idle.
        has_peers = case.deviation(local, in_slow_hosts).n_peers >= case.limits.min_peers
        known = has_peers if local.is_computing else has_peers | ~_idle_far_longer(case, local)
        for comparison in case.ways_to_compare(local, of_all=True) if not known.all() else ():
            by_time = replace(local, of_all=True)
            ranks += rank_suspects(case, comparison, by_time, in_slow_hosts, not_named | known)
        yield from (confirmed(case.view, one, case.limits) for one in most_significant(ranks))


def _idle_far_longer(case: Case, local: LocalTime) -> BoolArray:
    """Ranks (R,) that idle several times as long as all others, most of it beyond the others of their role.

    Stages may differ by less, and idle time that all ranks of a stage share comes from its work.
    """
    idle_us = median(local.time_us, 1)
    usual_us = float(median(idle_us))
    is_own = case.deviation(local).level >= HALFWAY * (idle_us - usual_us)
    return np.asarray(is_own & (idle_us >= case.limits.single_step_idle_factor * usual_us))


def rank_suspects(
    case: Case, local: LocalTime, by_time: LocalTime, excluded: BoolArray, not_named: BoolArray
) -> list[Suspect]:
    """Return ranks that are slow in a local time, except `not_named` (R,); `excluded` (R,) have slow hosts.

    Persistent patterns go before intermittent ones, and these before a single event. No count tells a single
    event from an accident. Computing has no accidents, as kernels took that time; idle time has many. Kernels
    are known for all steps together: `by_time` says in which steps the time is lost.
    """
    view, limits = case.view_for(local), case.limits
    deviation, by_step = (case.deviation(one, excluded) for one in (local, by_time))
    level, n_ranks = deviation.level, len(deviation.level)
    has_peers = deviation.n_peers >= limits.min_peers
    lasts = _is_lasting(local, deviation, limits)
    # An event may be in either place: the least probable is told, in one place or in all together.
    places = [(far & (has_peers & ~lasts)[:, None], lost) for far, lost in case.events(local, excluded)]
    looks, series = [least_by_chance(lost, far) for far, lost in places], places[0][1]
    chances, ranks = np.array([one[2] for one in looks]), np.arange(n_ranks)
    events, size = (np.array([one[at] for one in looks])[chances.argmin(axis=0), ranks] for at in (0, 1))
    chance = np.array([over_looks([one], len(looks)) for one in chances.min(axis=0).tolist()])
    n_events = events.sum(axis=1)
    # In a small job counting alone calls two events of five chance, however large they are. For computing
    # their size counts, too: against the slowest and the fastest rank that nobody suspects.
    healthy = np.where((lasts | not_named | (n_events > 1))[:, None], np.nan, series)
    far = np.nan_to_num(np.abs(healthy - group_medians(healthy, view.role))).max(axis=1, keepdims=True)
    beyond = size >= TWICE * most_of_others(far, view.role)[:, 0]
    p_events = np.where(beyond & (not local.has_idle), 0.0, n_ranks * chance)
    often = (n_events > 1) & (p_events <= limits.listed_p_value)
    near = series >= HALFWAY * size[:, None]
    once = (n_events > 0) & ~often & beyond & (size >= limits.natural_effect)
    once &= (near.sum(axis=1) == 1) & (len(view.steps) >= limits.min_steps_confident and not local.has_idle)
    # A device slow in some steps is slow in each that is half as slow, also if its peers scatter there.
    events = np.where((often & local.is_computing)[:, None], near, events)
    rising = _is_rising(local, by_step, limits)
    found = []
    for rank in np.flatnonzero((lasts | often | once) & (~not_named | often)).tolist():
        lost = level if lasts[rank] else median(series[:, events[rank]], 1)
        if local.follows_work and not _is_own(case, lost, rank):
            continue
        peers, p_value = view.peers_of(rank), float(p_events[rank])
        course = _course(level[rank], by_step, rank, peers) if lasts[rank] else series[rank]
        seen, scale = None if lasts[rank] else events[rank], deviation.scale[rank]
        if lasts[rank] and by_step is not deviation and not rising[rank]:
            # Kernels are known for all steps together: in which of them they lose it, unless in most.
            is_slow = course >= by_time.effect
            now_and_then = len(course) >= limits.min_steps_intermittent and is_slow.mean() <= MOSTLY
            seen = is_slow if now_and_then else None
        own, always = np.array([rank]), bool(lasts[rank])
        one = late_suspect(view, local, own, course, seen, scale=scale, n_others=len(peers), lasts=always)
        if lasts[rank]:
            p_value = n_ranks * max(float(deviation.tail[rank]), _by_counting(local, deviation, rank, limits))
            if seen is not None and seen.sum() == 1 and not local.of_all:  # totals of peers tell
                one = replace(one, pattern="transient", confidence="medium", is_alarm=False)
        if once[rank]:  # experts may hold anybody's tokens for a step; longer samples make no kernel slower
            of_device = np.inf if case.by_device is None else case.by_device[rank] * len(view.steps)
            is_told = view.knows_work and not of_device < HALFWAY * size[rank]
            one = replace(one, pattern="transient", confidence="medium", is_alarm=is_told)
        elif often[rank] and not local.is_computing:
            one = as_pause(case, one, rank, series[rank], events[rank])
        if one.record.is_fault and not_named[rank]:
            continue
        if one.record.is_fault and rising[rank] and not once[rank]:
            one = replace(one, pattern="trend")
        found.append(replace(one, p_value=min(1.0, p_value)))
    return found


def _is_own(case: Case, lost: FloatArray, rank: int) -> bool:
    """Whether it is the device: if TP/CP peers lose with a rank, or it calls more kernels, it got more work.

    So may experts' holders. `lost` (R,) is what ranks lose in the steps in which it is slow, or on the whole.
    """
    view = case.view
    same = view.sample == view.sample[rank]
    same[rank] = False
    work = float(np.nan_to_num(median(lost[same])) if same.any() else case.work_by_calls[rank])
    return bool(lost[rank] - work >= HALFWAY * lost[rank] and (same.any() or view.knows_work))


def _is_lasting(local: LocalTime, deviation: Deviation, limits: Thresholds) -> BoolArray:
    """Ranks (R,) whose level is improbable, large enough, and there in nearly all steps: no pauses."""
    series, level = deviation.series, deviation.level
    lasts = (level >= local.effect) & (len(level) * deviation.tail <= limits.listed_p_value)
    n_slow = (series > HALFWAY * level[:, None]).sum(axis=1)
    if series.shape[1] > limits.min_steps_confident:  # of fewer the middle says as much
        lasts &= n_slow > MOSTLY * np.isfinite(series).sum(axis=1)
    return np.asarray(lasts)


def _by_counting(local: LocalTime, deviation: Deviation, rank: int, limits: Thresholds) -> float:
    """P of being slow in as many steps as a rank is, given how often others are as slow.

    Late starts and idle time have long tails that no normal distribution knows. With one or two steps
    counting says nothing; the gaps within a step decide there. Nor does a step in which peers scatter by
    more than half of the level, unless most do: where all pause for unlike times one may be late even so.
    """
    level, tells = float(deviation.level[rank]), deviation.step_scale[rank] <= HALFWAY * deviation.level[rank]
    if not local.has_idle or len(tells) < limits.min_steps_confident:
        return 0.0
    usable = deviation.series[:, tells | (tells.mean() <= HALFWAY)]
    return chance_of_as_many(int((usable[rank] >= HALFWAY * level).sum()), usable, rank, level)


def _is_rising(local: LocalTime, deviation: Deviation, limits: Thresholds) -> BoolArray:
    """Ranks (R,) that fall behind further from step to step.

    The rise is most of what they lose in any step: a few long steps late in a capture are none.
    """
    n_steps = deviation.series.shape[1]
    if n_steps < limits.min_steps_intermittent:
        return np.zeros(len(deviation.level), bool)
    rise = theil_sen(deviation.series) * (n_steps - 1)
    most = HALFWAY * np.nan_to_num(deviation.series).max(axis=1)
    return np.asarray(np.nan_to_num(rise) > np.maximum(local.effect, most))


def _course(level: float, deviation: Deviation, rank: int, peers: IntArray) -> FloatArray:
    """Loss of a rank in each step (S,): its `level`, and its variation if that exceeds the peers'.

    Few steps vary much by chance: what varies more than nearly all `peers` (positions) do is its own.
    """
    varies = np.nan_to_num(deviation.series - deviation.level[:, None])
    seen, healthy = (varies**2).mean(axis=1), peers[np.isfinite(deviation.level[peers])]
    noise = float(np.quantile(seen[healthy], MOSTLY)) if len(healthy) else np.inf
    return np.asarray(np.maximum(level + beyond_chance(float(seen[rank]), noise) * varies[rank], 0.0))
