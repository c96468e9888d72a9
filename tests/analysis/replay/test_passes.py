"""A pass over the blocks gives what each operator, asked one after the other, would say."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.replay.order import ReplayOrder
from cluster_analysis.replay.passes import ends_of, entries_of
from tests.analysis.replay.test_replay_order import N_RANKS, UNHURRIED, Event, events, instances_of, ordered


def one_by_one(
    happened: list[Event], order: ReplayOrder, gap: FloatArray, transfer: FloatArray
) -> FloatArray:
    """The end of each operator (O,) by its definition: a call waits for the arrival of its partner."""
    instances, n_operators = instances_of(happened)
    n = len(instances)
    ends: dict[int, float] = {}

    def arrival(one: int) -> float:
        before = int(instances.after[one])
        return (ends[int(instances.operator[before])] if before < n else 0.0) + float(gap[one])

    for operator in order.operators.tolist():
        members = np.flatnonzero(instances.operator == operator).tolist()
        comes = [arrival(one) for one in members]
        for one in members:
            if instances.sender[one] < n:
                comes.append(arrival(int(instances.sender[one])))
            if instances.receiver[one] < n and instances.waits_for_receiver[one]:
                comes.append(arrival(int(instances.receiver[one])))
        ends[operator] = max(comes) + float(transfer[operator])
    return np.array([ends[operator] for operator in range(n_operators)])


@UNHURRIED
@given(events, st.integers(0, 2**16))
def test_a_pass_ends_operators_as_their_definition_says(happened: list[Event], seed: int) -> None:
    _, order = ordered(happened)
    draw = np.random.default_rng(seed)
    gap, transfer = draw.uniform(0, 9, len(order.instances)), draw.uniform(0, 9, len(order.operators))
    entries = entries_of(order)
    end = ends_of(entries, entries.local_us(gap), transfer[order.operators], np.zeros((1, 1, N_RANKS)))
    expected = one_by_one(happened, order, gap, transfer)
    assert np.array_equal(end[order.operator_place], expected)
    # Several scenarios go through a pass together as each would alone.
    both = np.stack([transfer, 2 * transfer], axis=1)[order.operators]
    local = entries.local_us(gap)[:, None]
    together = ends_of(entries, local, both, np.zeros((2, 1, N_RANKS)))
    assert np.array_equal(together[order.operator_place, 0], expected)


@UNHURRIED
@given(events, st.integers(0, 2**16))
def test_local_times_are_formed_anew_where_gaps_are_others(happened: list[Event], seed: int) -> None:
    _, order = ordered(happened)
    draw = np.random.default_rng(seed)
    gap = draw.uniform(0, 9, len(order.instances))
    chosen = np.flatnonzero(draw.random(len(gap)) < draw.random())
    changed = gap.copy()
    changed[chosen] = draw.uniform(0, 9, len(chosen))
    entries = entries_of(order)
    local = entries.local_us(gap)
    at, values = entries.changes(chosen, changed[chosen], gap)
    local[at] = values
    assert np.array_equal(local, entries.local_us(changed))
