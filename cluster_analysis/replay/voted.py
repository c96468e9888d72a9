"""Messages of all steps: each step is one run of the same program, so that who sent what is voted over steps.

In one step two calls may end together by accident, or one of them may be held up; hardly in most steps. A
step counts as much as the call has lasted in it. A call is known from step to step by its rank, its group,
whether it sends or receives, and its running place.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from cluster_analysis.numeric.arrays import IntArray
from cluster_analysis.numeric.sorting import begins, combined, distinct, places_in_runs
from cluster_analysis.trace.evidence import StepOperators

#: The same call in each step has one number: of every point-to-point instance (M,), -1 where steps differ.
_Slots = IntArray


def with_voted_messages(steps: Sequence[StepOperators]) -> list[StepOperators]:
    """Return the steps with the messages that most steps which know either end agree on.

    A step whose rank makes another number of such calls than in most steps keeps what it has.
    """
    places = [np.flatnonzero(step.instance_is_p2p) for step in steps]
    if len(steps) < 2 or not any(map(len, places)):
        return list(steps)
    slots, n_slots = _slots(steps, places)
    sender = _partners(steps, places, slots, n_slots)
    if not (sender >= 0).any():
        return list(steps)
    return [_paired(step, at, own, sender) for step, at, own in zip(steps, places, slots, strict=True)]


def _slots(steps: Sequence[StepOperators], places: Sequence[IntArray]) -> tuple[list[_Slots], int]:
    """The slot of each point-to-point instance of each step, and how many slots there are."""
    number = {name: n for n, name in enumerate(sorted({name for step in steps for name in step.groups}))}
    rows = []
    for step, at in zip(steps, places, strict=True):
        group = np.array([number[name] for name in step.groups])[
            step.operator_group[step.instance_operator[at]]
        ]
        kind = 2 * step.instance_is_send[at] + step.instance_is_receive[at]
        rows.append((step.ranks[step.instance_rank[at]], group, kind))
    sizes = [len(at) for at in places]
    rank, group, kind = (np.concatenate(column) for column in zip(*rows, strict=True))
    _, queue = combined(rank, group, kind)
    step_of = np.repeat(np.arange(len(steps)), sizes)
    order = np.lexsort((np.arange(len(queue)), queue, step_of))
    first = np.flatnonzero(begins(queue[order]) | begins(step_of[order]))
    count = np.diff(np.r_[first, len(order)])
    place = np.empty(len(order), np.int64)
    place[order] = places_in_runs(begins(queue[order]) | begins(step_of[order]))
    # How often a queue has how many calls: the commonest number is the program's.
    _, alike, times = np.unique(
        np.stack([queue[order[first]], count]), axis=1, return_inverse=True, return_counts=True
    )
    most = np.zeros(int(queue.max()) + 1, np.int64)
    np.maximum.at(most, queue[order[first]], times[np.ravel(alike)])
    is_usual = times[np.ravel(alike)] == most[queue[order[first]]]
    usual = np.empty(len(order), bool)
    usual[order] = np.repeat(is_usual, count)
    _, slot = combined(queue, place)
    slot = np.where(usual, slot, -1)
    return np.split(slot, np.cumsum(sizes)[:-1]), int(slot.max(initial=-1)) + 1


def _partners(
    steps: Sequence[StepOperators], places: Sequence[IntArray], slots: Sequence[_Slots], n_slots: int
) -> IntArray:
    """The slot that sends what each slot receives (slots,); -1 where no majority says it."""
    sources, targets, waited_us = [], [], []
    for step, at, own in zip(steps, places, slots, strict=True):
        slot_of = np.full(step.n_instances, -1)
        slot_of[at] = own
        here = at[step.instance_sender[at] >= 0]
        there = step.instance_sender[here]
        mutual = step.instance_receiver[there] == here
        sources.append(slot_of[there[mutual]])
        targets.append(slot_of[here[mutual]])
        # A long wait has a cause; short calls end together by chance.
        elapse = step.instance_elapse_us
        waited_us.append(np.maximum(elapse[here[mutual]], elapse[there[mutual]]))
    source, target, weight = np.concatenate(sources), np.concatenate(targets), np.concatenate(waited_us)
    known = (source >= 0) & (target >= 0)
    source, target, weight = source[known], target[known], weight[known]
    pair, code = distinct(source.astype(np.int64) * n_slots + target)
    votes = np.bincount(code, weight, len(pair))
    one, other = pair // n_slots, pair % n_slots
    # Votes of the steps for either end.
    of_source, of_target = (np.bincount(end, weight, n_slots) for end in (source, target))
    is_chosen = 2 * votes > np.maximum(of_source[one], of_target[other])
    sender = np.full(n_slots, -1)
    sender[other[is_chosen]] = one[is_chosen]
    return sender


def _paired(step: StepOperators, at: IntArray, slot: _Slots, sender: IntArray) -> StepOperators:
    """The step with its calls paired as was voted; what was not voted on keeps its free partner."""
    instance = np.full(len(sender) + 1, -1)
    known = slot >= 0
    instance[slot[known]] = at[known]
    target = at[known][sender[slot[known]] >= 0]
    source = instance[sender[slot[known]][sender[slot[known]] >= 0]]
    has_both = source >= 0
    source, target = source[has_both], target[has_both]
    if np.array_equal(step.instance_sender[target], source) and np.array_equal(
        step.instance_receiver[source], target
    ):
        return step
    into, out = step.instance_sender.copy(), step.instance_receiver.copy()
    # Calls with one of these as a partner were paired by accident.
    out[into[target][into[target] >= 0]] = -1
    into[out[source][out[source] >= 0]] = -1
    into[target], out[source] = source, target
    transfer = step.operator_transfer_us.copy()
    shortest = np.minimum(step.instance_elapse_us[target], step.instance_elapse_us[source])
    for end in (target, source):
        operator = step.instance_operator[end]
        transfer[operator] = np.minimum(transfer[operator], shortest)
    return replace(step, instance_sender=into, instance_receiver=out, operator_transfer_us=transfer)
