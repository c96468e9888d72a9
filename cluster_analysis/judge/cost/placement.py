"""Where in the steps a suspect's excess sits, and so what is different once it is fixed.

A suspect is known to be late by so much in a step; a replay has to know in which of its gaps. They are laid
beside those of ranks that do the same work, and what is longer is taken away; slow links give up the share of
their transfers that is theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import rows_at
from cluster_analysis.numeric.stats import median
from cluster_analysis.replay.replay import Graph, Repair
from cluster_analysis.thresholds.common import TWICE
from cluster_analysis.thresholds.cost import ENOUGH_TP_CP_PEERS, LEAST_WORK

_LOCAL_KINDS = frozenset({"slow_rank", "slow_host", "periodic_pause"})


def repair_of(view: JobView, graph: Graph, suspects: Sequence[Suspect]) -> Repair:
    """Return what is different once these are fixed: gaps without their excess, transfers of healthy links.

    Args:
        view: the job.
        graph: its operators; may lack ranks that have step times only.
        suspects: those that are fixed together.
    """
    excesses = []
    is_hit = np.zeros(len(graph.ranks), bool)
    for one in suspects:
        if one.excess_us is not None:
            excess = rows_at(graph.ranks, view.ranks, _excess_us(view, one, one.excess_us), 0.0)
            # A rank of a late host may lose nothing in any step: its gaps are looked at with the others'.
            late = view.ranks[(one.excess_us > 0).any(axis=1)]
            is_hit |= (excess != 0.0).any(axis=1) | np.isin(graph.ranks, late)
            excesses.append((one, excess))
    instances = graph.instances_of(is_hit)
    gap = graph.gap_us[instances]
    for suspect, excess in excesses:
        gap = gap - _taken(view, graph, suspect, excess, instances, gap)
    transfer = graph.transfer_us
    for one in suspects:
        if one.link_factor is not None:
            transfer = transfer * one.link_factor
    operators = np.flatnonzero(transfer != graph.transfer_us)
    return Repair(instances, np.maximum(gap, 0.0), operators, transfer[operators])


def _taken(
    view: JobView, graph: Graph, suspect: Suspect, excess: FloatArray, instances: IntArray, gap: FloatArray
) -> FloatArray:
    """Where the excess sits: at the places where the suspect's gaps are longer than its peers'.

    Where the calls of peers cannot be laid side by side, in proportion to the gaps; late starts all
    before the first operator.

    Args:
        view: the job.
        graph: its operators.
        suspect: whom to fix.
        excess: µs by rank of the graph and step.
        instances: all instances of ranks that have any, sorted.
        gap: what is left of their gaps.
    """
    weight = _weights(view, graph, suspect, instances)
    cell = graph.cell[instances]
    total = np.bincount(cell, weight, excess.size)[cell]
    taken = np.where(total > 0, excess.ravel()[cell] * weight / np.maximum(total, 1e-9), 0.0)
    taken = np.minimum(taken, gap)
    return taken + _taken_beside(graph, instances, taken, gap, is_head=suspect.where == "head")


def _taken_beside(
    graph: Graph, instances: IntArray, taken: FloatArray, gap: FloatArray, *, is_head: bool
) -> FloatArray:
    """What calls on a second stream are issued earlier by: their share of what the gap around them loses.

    Args:
        graph: the job's operators.
        instances: the instances (N,) that are fixed, sorted.
        taken: what each of their gaps loses.
        gap: how long these are.
        is_head: all that is lost lies before the first call.
    """
    beside = np.zeros(len(instances))
    side = np.flatnonzero(graph.is_side[instances] & (gap > 0))
    if not len(side):
        return beside
    n = len(graph.rank)
    cell = graph.step[instances] * np.int64(len(graph.ranks)) + graph.rank[instances]
    before = np.where(graph.after[instances] < n, graph.after[instances], n + cell)
    main = np.flatnonzero(~graph.is_side[instances])
    order = main[np.argsort(before[main], kind="stable")]
    at = np.searchsorted(before[order], before[side])
    around = order[np.minimum(at, len(order) - 1)] if len(order) else side
    has = (before[around] == before[side]) & ~graph.is_side[instances[around]]
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.ones(len(side)) if is_head else np.minimum(gap[side] / gap[around], 1.0)
    beside[side] = np.where(has, np.minimum(np.nan_to_num(part) * taken[around], gap[side]), 0.0)
    return beside


def _excess_us(view: JobView, suspect: Suspect, level_us: FloatArray) -> FloatArray:
    """What each rank of a suspect loses in each step (R, S); `level_us` is what it loses usually.

    Who launches late is idle beside calls too. A host does so by chance more or less, and before the first
    operator too. Its ranks wait for the latest of them, so that the usual does not tell what they lose
    together. One gap that loses so much more than usual as the host does in a usual step is a pause, and not
    its launching; where all ranks pause, who launches late has nothing launched ahead that would hide it.
    """
    if view.gaps is None or (suspect.cause, suspect.where) != ("dispatch", "spread"):
        return level_us
    preparing = np.nan_to_num(view.preparing_us)
    likely = view.likely_idle_us
    beside = np.nan_to_num(likely - view.idled_us)
    idle = np.nan_to_num(likely) + preparing
    is_hit = np.asarray((level_us > 0).any(axis=1))
    excess = level_us.copy()
    for role in np.unique(view.role[is_hit]):
        of_role = view.role == role
        own, peers = np.flatnonzero(of_role & is_hit), np.flatnonzero(of_role & ~is_hit)
        more = np.maximum(beside[own] - median(beside[peers], 0), 0.0)
        excess[own] += np.where(level_us[own] > 0, more, 0.0)
        lost, _ = view.gaps.laid_beside(own, peers)
        if lost is None or suspect.kind != "slow_host":
            continue
        usual = median(idle[peers], 0)
        # Where records are lost no gap tells, and a pause is the rarer reason.
        pauses = excess[own] < (lost - median(lost, 0)).max(axis=2).T
        pauses &= usual <= TWICE * median(usual)
        measured = np.clip(idle[own] - usual, 0.0, idle[own])
        excess[own] = np.where(pauses, excess[own], measured)
    return excess


def _weights(view: JobView, graph: Graph, suspect: Suspect, instances: IntArray) -> FloatArray:
    """By how much each gap of `instances` (N,) takes part in what the suspect loses in its step.

    Each pause lies in one gap: samples make others longer than the peers' too. Slow computing lengthens a gap
    by a share, in the same places in each step; the mean over steps counts, because the chance of single gaps
    is not the fault's. Idle time scatters with the fault itself.
    """
    if suspect.where == "head":
        return graph.begins[instances].astype(np.float64)
    weight = np.where(graph.is_side[instances], 0.0, graph.gap_us[instances])
    if view.gaps is None or suspect.excess_us is None or suspect.kind not in _LOCAL_KINDS:
        return weight
    is_late = suspect.excess_us > 0
    for suspects, peers in _compared(view, suspect, np.asarray(is_late.any(axis=1))):
        if suspect.where == "pauses":
            longest = view.gaps.longest_beyond_usual(suspects, peers, is_late[suspects])
            longest = longest[longest >= 0]
            in_paused_steps = np.isin(graph.cell[instances], graph.cell[longest])
            weight[in_paused_steps] = np.isin(instances[in_paused_steps], longest)
            continue
        lost, at = view.gaps.laid_beside(suspects, peers)
        if lost is None or at is None:
            continue
        is_told = np.asarray(np.isfinite(lost).all(axis=2))
        if suspect.cause == "compute":
            gap, tells = graph.gap_us[at], is_late.any(axis=0) & np.asarray(is_told.all(axis=1))
            if not tells.any():
                continue
            lost = _rates(lost[tells], gap[tells]) * gap
        weight[np.searchsorted(instances, at[is_told])] = np.maximum(lost[is_told], 0.0)
    return weight


def _compared(view: JobView, suspect: Suspect, is_hit: BoolArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Positions of suspects and of those whose gaps tell where the time is lost.

    A slow device is laid beside its TP/CP peers, who have the same samples and experts; with too few of them,
    and for hosts, beside the ranks of its role.
    """
    for role in np.unique(view.role[is_hit]):
        of_role = view.role == role
        suspects, others = np.flatnonzero(of_role & is_hit), np.flatnonzero(of_role & ~is_hit)
        if suspect.kind == "slow_rank" and len(suspects) == 1 and view.tp_cp_peers[suspects[0]] >= 0:
            tp_cp_peers = others[view.tp_cp_peers[others] == view.tp_cp_peers[suspects[0]]]
            others = tp_cp_peers if len(tp_cp_peers) >= ENOUGH_TP_CP_PEERS else others
        yield suspects, others


def _rates(lost: FloatArray, gap: FloatArray) -> FloatArray:
    """Share of its gap that is lost at each place (places,), from (steps, suspects, places).

    Places without work have the share of all.
    """
    usual = gap.mean(axis=(0, 1))
    works = usual > LEAST_WORK * usual.mean()
    rate = np.full(len(usual), lost.sum() / max(float(gap.sum()), 1e-9))
    if works.any():
        rate[works] = _profile(lost[..., works] / usual[works])
    return rate


def _profile(lost: FloatArray) -> FloatArray:
    """What is lost at each place (places,), by (steps, suspects, places): as far as places really differ.

    Between the mean over steps and the mean of all places as the scatter from step to step allows (empirical
    Bayes): with samples of unequal length the differences of places are chance.
    """
    by_step: FloatArray = lost.mean(axis=1)
    mean: FloatArray = by_step.mean(axis=0)
    n_steps = len(by_step)
    if n_steps < 2:
        return mean
    noise = float(by_step.var(axis=0, ddof=1).mean()) / n_steps
    seen = float(mean.var())
    real = max(0.0, 1.0 - noise / seen) if seen > 0 else 0.0
    profile: FloatArray = mean.mean() + real * (mean - mean.mean())
    return profile
