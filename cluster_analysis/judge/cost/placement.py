"""Where in the steps a suspect loses its time, and so what changes once it is fixed.

A detector says how late a suspect is in a step; a replay has to know in which of its gaps. The gaps are
compared with those of ranks that do the same work, and what is longer is taken away. Of the transfers on slow
links, the share that these links cause is taken away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import rows_at
from cluster_analysis.numeric.stats import beyond_chance, median, sigma
from cluster_analysis.replay.replay import Graph, Repair
from cluster_analysis.thresholds.common import CLEAR_SIGMAS, HALFWAY
from cluster_analysis.thresholds.judging import CHANCE_SHARE, ENOUGH_TP_CP_PEERS, LEAST_WORK
from cluster_run.kinds import Part

#: Least divisor: shorter than any time.
_LEAST_US = 1e-9
#: Kinds whose work is uneven from place to place.
_OF_WORK: tuple[Part, ...] = ("samples", "experts")


def repair_of(view: JobView, graph: Graph, suspects: Sequence[Suspect]) -> Repair:
    """Return what changes once these are fixed: gaps without their excess, transfers of healthy links.

    Args:
        view: the job.
        graph: its operators; may lack ranks that have step times only.
        suspects: those that are fixed together.
    """
    excesses = []
    parts = {one.record.part for one in suspects if view.gaps is not None}
    uneven = [part for part in _OF_WORK if part in parts]
    is_hit = np.full(len(graph.ranks), bool(uneven))
    for one in suspects:
        if one.excess_us is not None and one.record.part not in uneven:
            own = one.excess_us + _followed_us(view, one, one.excess_us)
            excess = rows_at(graph.ranks, view.ranks, own, 0.0)
            own_hit = (excess != 0.0).any(axis=1) | bool(uneven)  # even work leaves any gaps below 0
            is_hit |= own_hit
            excesses.append((one, excess, graph.instances_of(own_hit)))
    instances = graph.instances_of(is_hit)
    gap = graph.gap_us[instances]
    for part in uneven:
        assert view.gaps is not None
        more = view.gaps.of_work_us(view.role, view.sample, view.paused_us, lasts=part == "experts")
        if view.is_of_experts.any():
            more = np.where(view.is_of_experts == (part == "experts"), more, 0.0)
        more = more[instances]
        around = _taken_on_side_stream(graph, instances, np.nan_to_num(more), gap, is_head=False)
        gap = gap - np.where(np.isfinite(more), more, around)
    for suspect, excess, of_suspect in excesses:
        at = np.searchsorted(instances, of_suspect)
        gap[at] -= _taken(view, graph, suspect, excess, of_suspect, gap[at])
    gap = np.maximum(gap, 0.0)
    changed = gap != graph.gap_us[instances]
    transfer = graph.transfer_us
    mended = [one.mended for one in suspects if one.mended is not None]
    if len(mended) > 1:
        transfer = transfer * mended[0].transfers.remaining(mended)
    for one in suspects:
        if one.link_factor is not None and (one.mended is None or len(mended) < 2):
            transfer = transfer * one.link_factor
    operators = np.flatnonzero(transfer != graph.transfer_us)
    return Repair(instances[changed], gap[changed], operators, transfer[operators])


def _taken(
    view: JobView, graph: Graph, suspect: Suspect, excess: FloatArray, instances: IntArray, gap: FloatArray
) -> FloatArray:
    """Take the excess at the places where the suspect's gaps are longer than its peers'.

    If the calls of peers cannot be laid side by side, it is taken in proportion to the gaps. How much of it
    lies before a step's first operator is known. `excess` is in µs by rank of the graph and step, `gap` what
    is left of the gaps of all `instances`, sorted, of ranks that lose any.
    """
    cell = graph.cell[instances]
    # Nothing is computed before a step's first operator.
    idle_us = suspect.head_us if suspect.is_late or suspect.head_us is not None else view.preparing_us
    before_us = np.zeros(excess.shape)
    if idle_us is not None:
        before_us = rows_at(graph.ranks, view.ranks, np.nan_to_num(idle_us), 0.0)
    before = np.minimum(before_us.ravel()[cell] * graph.begins[instances], gap)
    head = np.zeros(len(instances))
    if suspect.head_us is not None:
        head, excess = before, excess - before_us
    in_proportion = np.where(graph.is_side[instances], 0.0, gap - before)
    is_inside = suspect.where == "pauses" and view.waited_inside_us is not None
    weight = _weights(view, graph, suspect, excess, instances, in_proportion, head)
    weight = np.where((np.bincount(cell, weight, excess.size)[cell] > 0) | is_inside, weight, in_proportion)
    total = np.bincount(cell, weight, excess.size)[cell]
    total = np.maximum(total, excess.ravel()[cell] * is_inside)  # no gap loses more than it is longer
    taken = np.where(total > 0, excess.ravel()[cell] * weight / np.maximum(total, _LEAST_US), 0.0)
    taken = np.minimum(taken, gap - head)
    on_side = _taken_on_side_stream(graph, instances, head, gap, is_head=True)
    return head + taken + on_side + _taken_on_side_stream(graph, instances, taken, gap, is_head=False)


def _taken_on_side_stream(
    graph: Graph, instances: IntArray, taken: FloatArray, gap: FloatArray, *, is_head: bool
) -> FloatArray:
    """How much earlier calls on a second stream are issued: their share of the loss of the gap around them.

    Of sorted instances (N,) `taken` is what each gap loses, with `is_head` all before the first call.
    """
    on_side = np.zeros(len(instances))
    side, around = _around(graph, instances)
    of_around = np.minimum(gap[side], gap[around]) / np.maximum(gap[around], _LEAST_US)
    part = np.ones(len(side)) if is_head else np.maximum(of_around, 0.0)
    on_side[side] = np.minimum(part * taken[around], gap[side])
    return on_side


def _followed_us(view: JobView, suspect: Suspect, excess: FloatArray) -> FloatArray:
    """How much less others (R, S) wait inside kernels once these lose nothing: at most what they waited.

    Each pause holds up all that wait together. Other waiting is not known by step: ranks that wait hardly
    longer than these show the usual waiting, which these will have themselves. If only one rank is late, and
    all wait for it, a part of the waits that differ from call to call is chance.
    """
    followed = np.zeros(excess.shape)
    if view.waited_inside_us is None:
        return followed
    if suspect.where == "pauses":
        for one in range(int(view.together.max()) + 1):
            team = view.together == one
            alone = excess[team] - excess[team].min(axis=0)  # if all pause, nobody is held up
            followed[team] = alone.sum(axis=0) - alone
        return followed
    for role in np.unique(view.role):
        own = view.role == role
        is_late, team = excess[own].any(axis=1, keepdims=True), view.together[own, None]
        # Late ranks that only wait for each other hold up themselves: the other ranks show the usual.
        alone = ~np.isin(team, team[~is_late]) & (np.bincount(team[:, 0])[team] > 1) & ~is_late.all()
        most = median(excess[own][alone[:, 0]], 0) if alone.any() else excess[own].max(axis=0).clip(0.0)
        waited, lost_us = np.nansum(view.waited_inside_us[own], axis=1, keepdims=True), float(most.sum())
        if lost_us > 0.0:
            near = waited <= waited[is_late].min() + HALFWAY * lost_us
            usual = np.median(waited[~is_late if alone.any() else near])
            by_step = median((view.computing_us + view.waited_inside_us)[own], 0)
            if is_late.sum() == near.sum() == 1 and (by_step - by_step.min()).sum() < HALFWAY * lost_us:
                chance_us = np.minimum(view.unnamed_us[own, None], waited - usual)
                usual += CHANCE_SHARE * np.median(chance_us[~is_late])
            share = np.clip((waited - usual) / lost_us, -1.0, 1.0)
            followed[own] = np.where(alone | ~is_late, share.clip(0) * most, share.clip(max=0) * excess[own])
    return followed


def _weights(
    view: JobView, graph: Graph, suspect: Suspect, excess: FloatArray, instances: IntArray,
    in_proportion: FloatArray, head: FloatArray,
) -> FloatArray:  # fmt: skip
    """By how much each gap of `instances` (N,) takes part in what the suspect loses in its step.

    Each pause lies in one gap: samples make others longer than the peers' too. Slow computing lengthens a gap
    by a share, in the same places in each step; the mean over steps counts, because the chance of single gaps
    is not the fault's. Idle time scatters with the fault itself, and so does computing that halts at times
    (memory that corrects errors): no share and no peer's chance explain most of what its gaps lose.
    """
    weight = in_proportion.copy()
    is_of_ranks = suspect.record.part in ("slow_devices", "pauses")
    if view.gaps is None or suspect.excess_us is None or not is_of_ranks:
        return weight
    if view.waited_inside_us is not None:  # the peers' gaps hold what they waited for the suspect
        lost_us = rows_at(view.ranks, graph.ranks, excess, 0.0)
        is_pause = suspect.where == "pauses"  # others have the same longer gaps
        return view.gaps.longer_by_pauses(view.role, lost_us)[instances] if is_pause else weight
    is_late = suspect.excess_us > 0
    for suspects, peers in _compared(view, suspect, np.asarray(is_late.any(axis=1))):
        if suspect.where == "pauses":
            longest = view.gaps.longest_beyond_usual(suspects, peers, is_late[suspects])
            longest = longest[longest >= 0]
            in_paused_steps = np.isin(graph.cell[instances], graph.cell[longest])
            weight[in_paused_steps] = np.isin(instances[in_paused_steps], longest)
            continue
        for steps, own, others, at in view.gaps.beside_peers(suspects, peers):
            usual = median(others, 1)[:, None]
            lost = own - usual
            is_known = np.asarray(np.isfinite(lost).all(axis=2))
            if suspect.cause == "compute":
                gap, tells = graph.gap_us[at], is_late[:, steps].any(axis=0) & is_known.all(axis=1)
                if not tells.any():
                    continue
                usually = _rates(lost[tells], gap[tells]) * gap
                lost_by = (lost, lost - usually, others - usual)
                whole, unlike, chance = (np.nansum(one[tells] ** 2, axis=(0, 2)) for one in lost_by)
                halts = (unlike - chance.max() > HALFWAY * whole) & (suspect.record.subject == "rank")
                lost = np.where(halts[:, None], lost, usually)
            else:
                lost = lost - np.where(at >= 0, head[np.searchsorted(instances, np.maximum(at, 0))], 0.0)
                # Samples hide it in single gaps: then the loss of their place over all rows counts, if clear.
                clear_us = CLEAR_SIGMAS * sigma((others - usual).reshape(-1, others.shape[2]), 0)
                rows = lost.reshape(-1, lost.shape[2])
                usually = np.nan_to_num(median(rows, 0))
                usually[usually <= clear_us / np.sqrt(len(rows))] = 0.0
                lost = np.where(lost > clear_us, lost, usually)
            weight[np.searchsorted(instances, at[is_known])] = np.maximum(lost[is_known], 0.0)
        rest = excess - np.bincount(graph.cell[instances], weight, excess.size).reshape(excess.shape)
        weight += _lost_on_side_stream(view, graph, (suspects, peers), instances, (weight, rest))
    return weight


def _lost_on_side_stream(
    view: JobView, graph: Graph, compared: tuple[IntArray, IntArray], instances: IntArray,
    in_main: tuple[FloatArray, FloatArray],
) -> FloatArray:  # fmt: skip
    """Loss (N,) before calls of a second stream alone, which the main stream's gaps do not show.

    `in_main` is what these lose (N,), and what ranks lose beyond that (R, S): no more is lost elsewhere.
    """
    weight, rest_us = in_main
    on_side = np.zeros(len(instances))
    assert view.gaps is not None
    n, nobody = len(compared[0]), compared[0][:0]
    for _, gaps, _, at in view.gaps.of_side.beside_peers(np.concatenate(compared), nobody):
        since = view.gaps.place[graph.after[at]]
        for number in range(n):  # a call that was issued behind another one tells nothing
            alike = (since[:, n:] == since[:, number, None]) & (at[:, n:] >= 0)
            lost = gaps[:, number] - median(np.where(alike, gaps[:, n:], np.nan), 1)
            is_known = np.isfinite(lost) & (at[:, number] >= 0)
            on_side[np.searchsorted(instances, at[:, number][is_known])] = lost[is_known]
    side, around = _around(graph, instances)
    on_side[side] -= weight[around]
    on_side = np.maximum(on_side, 0.0)
    cell = graph.cell[instances]
    total = np.bincount(cell, on_side, rest_us.size)
    share = np.clip(rest_us.ravel() / np.maximum(total, _LEAST_US), 0.0, 1.0)
    return np.asarray(on_side * share[cell])


def _around(graph: Graph, instances: IntArray) -> tuple[IntArray, IntArray]:
    """Side calls (K,) among `instances`, and the main calls that count from where they do."""
    around = graph.around[instances]
    side = np.flatnonzero(around < len(graph.rank))
    return side, np.searchsorted(instances, around[side])


def _compared(view: JobView, suspect: Suspect, is_hit: BoolArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Positions of suspects and of those whose gaps tell where the time is lost.

    A slow device is compared with its TP/CP peers, who have the same samples and experts. With too few of
    them it is compared with the ranks of its role, and so are hosts.
    """
    for role in np.unique(view.role[is_hit]):
        of_role = view.role == role
        suspects, others = np.flatnonzero(of_role & is_hit), np.flatnonzero(of_role & ~is_hit)
        if suspect.record.subject == "rank" and len(suspects) == 1:
            tp_cp_peers = others[view.sample[others] == view.sample[suspects[0]]]
            others = tp_cp_peers if len(tp_cp_peers) >= ENOUGH_TP_CP_PEERS else others
        yield suspects, others


def _rates(lost: FloatArray, gap: FloatArray) -> FloatArray:
    """Share of its gap that is lost at each place (places,), from (steps, suspects, places).

    Places without work have the share of all.
    """
    usual = gap.mean(axis=(0, 1))
    works = usual > LEAST_WORK * usual.mean()
    rate = np.full(len(usual), lost.sum() / max(float(gap.sum()), _LEAST_US))
    if works.any():
        rate[works] = _profile_of(lost[..., works] / usual[works])
    return rate


def _profile_of(lost: FloatArray) -> FloatArray:
    """Loss at each place (places,), from (steps, suspects, places): as far as places really differ.

    Between the mean over steps and the mean of all places as the scatter from step to step allows (empirical
    Bayes): with samples of unequal length the differences of places are chance.
    """
    by_step: FloatArray = lost.mean(axis=1)
    mean: FloatArray = by_step.mean(axis=0)
    if len(by_step) < 2:
        return mean
    noise = float(by_step.var(axis=0, ddof=1).mean()) / len(by_step)
    real = beyond_chance(float(mean.var()), noise)
    return np.asarray(mean.mean() + real * (mean - mean.mean()))
