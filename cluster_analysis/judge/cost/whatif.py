"""Savings of a job if one suspect, or several, behaved like their peers.

The steps are replayed without what the suspects lose; `placement` says where that sits. Without a replay a
bound stands in: how far the rank's local time exceeds that of the next-latest rank of its role.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from cluster_analysis.judge.cost.ideal import Ideal, evened
from cluster_analysis.judge.cost.one_host import IdleHosts, idle_hosts
from cluster_analysis.judge.cost.placement import repair_of
from cluster_analysis.judge.cost.waiting import Copied, copied_waiting, waits_for
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.stats import median
from cluster_analysis.replay.replay import Graph, Repair
from cluster_analysis.thresholds.common import HALFWAY, TOLERANCE_SHARE
from cluster_analysis.thresholds.judging import GOOD_ERROR, N_IN_TURN, N_LINKS_OF_CHAIN
from cluster_run.findings import Wait
from cluster_run.ids import Rank

#: Scenarios replayed at once; more need more memory and are no faster.
_BATCH = 8


class Saving(Struct, frozen=True):
    """Saving in the mean step from repairing a suspect, alone and with the ones before it. None: not known.

    `after_others_us` is what it adds once the costlier ones are repaired: more than alone where it hides
    behind one of them. For a fault these are the costlier faults: work that is uneven by design stays.
    `bound_us` is an upper bound from local times and transfers alone, where no replay is to be trusted.
    `most_us`: all that a host idles longer, or computes longer if no peer shows in which gaps.
    """

    alone_us: float | None
    cumulative_us: float | None
    after_others_us: float | None = None
    bound_us: float | None = None
    most_us: float | None = None


class Replay(Struct, frozen=True):
    """The unmodified replay of the steps (S,) in which it agrees with what was measured.

    `step_us` (S,) are their times in µs, `is_good` (S,) whether a step is one of them, and
    `error_share` the median error against the measured time over those steps; over all, if hardly any is
    good. `mean_error_share` is how far the mean step of the typical rank is from its measured mean, all steps
    in both. `graph` is what is replayed, and `lead` how early each rank begins each step (S, R).
    """

    graph: Graph
    lead: FloatArray
    step_us: FloatArray
    is_good: BoolArray
    error_share: float
    mean_error_share: float


class WhatIf:
    """Replays scenarios of one job; keeps the unmodified result, `replay`: None where there is none."""

    def __init__(self, view: JobView) -> None:
        self._view = view
        self.replay = _validated(view.graph) if view.graph is not None and view.shows_waiting else None
        # Results by the suspects that are repaired together: some are asked for several times.
        self._known: dict[frozenset[int], tuple[Sequence[Suspect], float]] = {}

    def savings(self, suspects: Sequence[Suspect], *, refuse_above: float) -> list[Saving]:
        """Return the saving of each suspect alone, and one after the other, each time what adds most."""
        bounds = [_bound(self._view, one, suspects) for one in suspects]
        if self.replay is None or self.replay.error_share > refuse_above:
            return [Saving(None, None, bound_us=bound) for bound in bounds]
        found = self._saved(self.replay, [[one] for one in suspects])
        alone = [0.0 if np.isnan(saved) else saved for saved in found]
        cumulative = self._saved_together(self.replay, suspects, alone)
        added = self._after_others(self.replay, suspects, alone)
        most = self._most_of(self.replay, suspects, alone)
        return [
            Saving(None, None, bound_us=bound)
            if np.isnan(found[i]) or not self._has_calls(suspects[i])
            else Saving(found[i], cumulative[i], added[i], bound, most[i])
            for i, bound in enumerate(bounds)
        ]

    def ideal(self, suspects: Sequence[Suspect], savings: Sequence[Saving]) -> Ideal | None:
        """Return the mean step if all ranks were as their peers, stages even, and the network healthy.

        It is no longer than once what makes them unlike is repaired. The loss in the replay is
        subtracted from the measured step, which all reports show.
        """
        replay = self.replay
        if replay is None or replay.error_share > GOOD_ERROR:
            return None
        even = evened(replay.graph, self._view)
        # Stages and the network remain uneven when all peers are alike.
        uneven = [one for one in suspects if one.record.part in ("stages", "communication")]
        repair = repair_of(self._view, even, uneven)
        real = float(replay.step_us[replay.is_good].mean())
        ideal = float(np.asarray(even.replay([repair], replay.lead))[0][replay.is_good].mean())
        is_part = np.array([one.record.part is not None for one in suspects], bool)
        order = np.argsort(saved_us := np.array([one.cumulative_us or 0.0 for one in savings]))
        most = float(np.diff(saved_us[order], prepend=0.0)[is_part[order]].sum())
        measured = self._view.mean_step_us
        ideal = measured - max(0.0, real - ideal, most)
        return Ideal(measured, ideal) if ideal > 0 else None

    def most_of_one_host(self, least_us: float) -> tuple[float, tuple[Rank, ...]]:
        """Return the most that the mean step may lose to one host, however irregularly, and its ranks.

        In a job of one host each rank stands for itself. 0 where that is less than `least_us`, or not known.
        """
        if self.replay is None or self.replay.error_share > GOOD_ERROR:
            return 0.0, ()
        late = self._idle_hosts.late(least_us, N_IN_TURN)
        found = [(us, one.ranks) for us, one in zip(self._most_us(self.replay, late), late, strict=True)]
        return max([(0.0, ()), *(one for one in found if one[0] >= least_us)])

    @cached_property
    def _idle_hosts(self) -> IdleHosts:
        return idle_hosts(self._view)

    def _most_us(self, replay: Replay, hosts: Sequence[Suspect]) -> list[float]:
        """The most that each host may cost: all that it loses, if gaps do not show it or hold waiting."""
        saved_us = np.nan_to_num(self._saved(replay, [[one] for one in hosts])).tolist()
        shows = self._view.inside_share < TOLERANCE_SHARE
        is_known = [shows and one.separable and self._has_calls(one) for one in hosts]
        triples = zip(is_known, saved_us, hosts, strict=True)
        return [us if known else one.most_us(replay.graph) for known, us, one in triples]

    def _has_calls(self, one: Suspect) -> bool:
        """Whether ranks whose calls were read lose half of it: only those are replayed."""
        lost_us = np.zeros(1) if one.excess_us is None else np.nansum(np.abs(one.excess_us), axis=1)
        seen = np.isin(self._view.ranks, () if self._view.graph is None else self._view.graph.ranks)
        return bool((lost_us * seen).sum() >= HALFWAY * lost_us.sum())

    def _most_of(self, replay: Replay, suspects: Sequence[Suspect], alone: list[float]) -> list[float | None]:
        """The most that each may cost: its ranks may wait for a part of the network in copied gaps."""
        of = self._idle_hosts.of
        apart = [None if one.excess_us is None or one.separable else one for one in suspects]
        found = [of(one.ranks) if one.is_late else own for one, own in zip(suspects, apart, strict=True)]
        most_us = iter(self._most_us(replay, [one for one in found if one is not None]))
        most = [None if one is None else next(most_us) for one in found]
        for i, one in enumerate(suspects):
            if one.mended is not None and self.copied is not None:
                own = np.isin(replay.graph.ranks, one.ranks)
                copied_us = float(self.copied.gaps_us[own].max(initial=0.0)) / replay.graph.n_steps
                most[i] = min(one.most_us(replay.graph), alone[i] + copied_us)
        return most

    def placebo_us(self, metric_excess_us: FloatArray, healthy: IntArray) -> float:
        """Return the most that "repairing" ranks nobody suspects, late by (R, S), saves one by one."""
        if self.replay is None or not len(healthy):
            return 0.0
        at, late_us = np.arange(len(metric_excess_us))[:, None], np.maximum(metric_excess_us, 0.0)
        late = [np.where(at == rank, late_us, 0.0) for rank in healthy.tolist()]
        suspects = [Suspect("placebo", "slow_rank", (), cause="compute", excess_us=one) for one in late]
        return max(0.0, float(np.nan_to_num(self._saved(self.replay, [[one] for one in suspects])).max()))

    @cached_property
    def copied(self) -> Copied | None:
        """The waiting that no repair can shorten, as the replay takes it as it was."""
        return None if self.replay is None else copied_waiting(self._view, self.replay.graph)

    def chain(self, suspect: Suspect) -> tuple[Wait, ...]:
        """Return who waits because of a suspect, directly and down the line."""
        if self.replay is None:
            return ()
        graph, groups = self.replay.graph, self._view.topology.groups
        return waits_for(
            graph,
            repair_of(self._view, graph, [suspect]),
            np.flatnonzero(np.isin(graph.ranks, suspect.ranks)),
            lambda name: groups[name].role if name in groups else "unknown",
        )[:N_LINKS_OF_CHAIN]

    def _saved(self, replay: Replay, sets: Sequence[Sequence[Suspect]]) -> list[float]:
        keys = [frozenset(map(id, one)) for one in sets]
        asked = [(key, one) for key, one in zip(keys, sets, strict=True) if key not in self._known]
        busy_us = np.fmax.reduce(self._view.local_us - self._view.free_us, axis=0)
        for begin in range(0, len(asked), _BATCH):
            batch = asked[begin : begin + _BATCH]
            repairs = [repair_of(self._view, replay.graph, one) for _, one in batch]
            by_step = replay.step_us - replay.graph.replay(repairs, replay.lead)
            for row, (key, one) in zip(by_step, batch, strict=True):
                if all(each.excess_us is None for each in one):  # a quick network leaves all work to do
                    np.fmin(row, replay.step_us - busy_us, out=row)
                self._known[key] = one, _mean_saving(row, one, replay.is_good)
        return [self._known[key][1] for key in keys]

    def _after_others(
        self, replay: Replay, suspects: Sequence[Suspect], alone: Sequence[float]
    ) -> list[float]:
        """Saving of each fault once all others are repaired: equal faults hide each other alike.

        Work that is uneven by design stays, and what it hides is no fault's cost.
        """
        added = [0.0] * len(suspects)
        faults = [i for i, one in enumerate(suspects) if one.is_alarm]
        of_faults = [suspects[i] for i in faults], [alone[i] for i in faults]
        chosen = [faults[i] for i in _most_lost(replay.graph, *of_faults)]
        if len(chosen) < 2:
            return added
        every = [suspects[i] for i in chosen]
        without = [[one for one in every if one is not suspects[i]] for i in chosen]
        together, *rest = np.nan_to_num(self._saved(replay, [every, *without])).tolist()
        for i, saved in zip(chosen, rest, strict=True):
            added[i] = max(0.0, together - saved)
        return added

    def _saved_together(self, replay: Replay, suspects: Sequence[Suspect], alone: list[float]) -> list[float]:
        """Savings one after the other, up to each, what adds most first; the rest gets that of all."""
        left, fixed, best = _costliest(suspects, alone), list[Suspect](), 0.0
        every = [one for i, one in enumerate(suspects) if one.is_alarm or i in left]
        if not every:
            return [best] * len(suspects)
        cumulative = dict[int, float]()
        while left:
            gains = np.nan_to_num(self._saved(replay, [[*fixed, suspects[i]] for i in left]))
            pick = left.pop(int(np.argmax(gains)))
            cumulative[pick] = best = max(best, float(gains.max()))
            fixed.append(suspects[pick])
        best = max(best, *np.nan_to_num(self._saved(replay, [every])).tolist())
        return [cumulative.get(i, best) for i in range(len(suspects))]


def _mean_saving(by_step: FloatArray, suspects: Sequence[Suspect], is_good: BoolArray) -> float:
    """Mean over all steps (S,); a step that cannot be replayed saves what its excess does in the others.

    NaN where next to nothing of the excess lies in the others: they cannot tell.
    """
    is_event = any(one.link_factor is not None and one.pattern != "persistent" for one in suspects)
    if is_good.all() or is_event:  # a retransmission is what its own step shows
        return float(by_step.mean())
    lost = [one.lost_us for one in suspects if one.lost_us is not None]
    excess = np.sum(lost, axis=0) if len(lost) == len(suspects) else np.ones(len(by_step))
    known = float(excess[is_good].sum())
    if known > TOLERANCE_SHARE * excess.sum():
        return float(by_step[is_good].sum() / known * excess.mean())
    return float("nan") if excess.any() else 0.0


def _costliest(suspects: Sequence[Suspect], alone: Sequence[float]) -> list[int]:
    """Positions of the suspects that are repaired one after the other, the costliest first.

    Communication that could be covered is no broken part, so it is not among them.
    """
    repairable = [i for i, one in enumerate(suspects) if one.record.is_repairable]
    return sorted(repairable, key=lambda i: (-alone[i], suspects[i].key))[:N_IN_TURN]


def _most_lost(graph: Graph, suspects: Sequence[Suspect], alone: Sequence[float]) -> list[int]:
    """Positions of the faults that are repaired together: the costliest, and those that may cost most.

    Faults that hide each other cost nothing alone.
    """
    most_us = [one.most_us(graph) for one in suspects]
    by_most = sorted(range(len(suspects)), key=lambda i: (-most_us[i], suspects[i].key))
    return sorted({*_costliest(suspects, alone), *by_most[:N_IN_TURN]})


def _validated(graph: Graph) -> Replay | None:
    """Replay the job as it was, and compare every rank's steps with the measured ones.

    Whether the ranks began the first step together is not in the files; the measured first step tells.
    """
    choices = []
    guess: FloatArray | None = None
    for leads in (True, False):
        one = graph if graph.first_step_leads == leads else graph.with_first_step_leads(leads=leads)
        ends = one.rank_ends([Repair()], guess)[0]
        guess = one.leads(ends[None])[0]
        latest = ends.max(axis=1)
        lead = np.vstack([ends[:1] if leads else np.full_like(ends[:1], latest[0]), ends[:-1]])
        with np.errstate(invalid="ignore"):
            # A rank whose files end before a step has no end in it.
            own = ends - (lead - np.r_[latest[0], latest[:-1]][:, None])
            own = np.where(np.isfinite(own), own, np.nan)
            error = np.abs(own / graph.measured_us - 1.0)
            known = np.isfinite(error)
            of_mean = own.sum(axis=0, where=known) / graph.measured_us.sum(axis=0, where=known)
        if np.isfinite(error).any():
            # Records that are lost spoil single steps: one that is off by a third would swamp every cost.
            good = np.nan_to_num(median(error, 1), nan=np.inf) <= GOOD_ERROR
            good = good if good.mean() >= HALFWAY else np.ones_like(good)
            own_error, of_mean_error = float(median(error[good])), float(median(np.abs(of_mean - 1.0)))
            # The mean: that of most ranks is right either way, if only some ended late.
            first = error[0][np.isfinite(error[0])]
            off = float(first.mean()) if len(first) else np.inf
            choices.append((off, Replay(one, guess, latest, good, own_error, of_mean_error)))
    return min(choices, key=lambda choice: choice[0])[1] if choices else None


def _bound(view: JobView, suspect: Suspect, all_suspects: Sequence[Suspect]) -> float | None:
    """Upper bound of the saving, step by step.

    Local time: the lead of the latest suspect over the latest other rank of its role, else of all, that no
    alarm is about, at most the excess. Links: the transfer time that the busiest rank would save.
    """
    if suspect.excess_us is None:
        return None if suspect.link_factor is None or view.graph is None else suspect.most_us(view.graph)
    local = np.nan_to_num(view.local_us)
    members = (suspect.excess_us > 0).any(axis=1)
    alarms = (one for one in all_suspects if one.is_alarm and one.excess_us is not None)
    accused = {rank for one in alarms for rank in one.ranks}
    others = ~members & ~np.isin(view.ranks, list(accused))
    peers = others & np.isin(view.role, view.role[members])
    latest_us = local[peers if peers.any() else others].max(axis=0, initial=0.0)
    lead = local[members].max(axis=0, initial=0.0) - latest_us
    return float(np.mean(np.clip(lead, 0.0, suspect.lost_us)))
