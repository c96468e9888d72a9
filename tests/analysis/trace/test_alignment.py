"""Clocks are laid together by the ends of collectives, as far as chains of them reach."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.trace.alignment import clock_offsets, connected
from cluster_analysis.trace.calls import Calls, calls_of
from cluster_analysis.trace.matching import match_calls
from tests.analysis.copies import replace
from tests.analysis.jobs import Call, collectives_table

#: A loaded machine is slow and makes no test fail.
UNHURRIED = settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])

#: Groups in which each rank but the last shares a collective with the next one.
CHAIN: dict[str, tuple[int, ...]] = {"a": (0, 1), "b": (1, 2), "c": (2, 3), "d": (3, 4)}
APART: dict[str, tuple[int, ...]] = {"a": (0, 1), "b": (2, 3, 4)}
N_RANKS = 5
clocks = st.lists(st.floats(-1e9, 1e9), min_size=N_RANKS, max_size=N_RANKS)


def calls_in(groups: dict[str, tuple[int, ...]], clock_us: list[float], *, rounds: int = 3) -> Calls:
    """Collectives that their members leave together and come to at times of their own."""
    made = []
    for number in range(rounds):
        for place, (group, members) in enumerate(groups.items()):
            left = 10_000.0 * (number + 1) + 1000.0 * place
            made += [
                Call(rank, "allreduce", left - 50.0 * (1 + rank), 50.0 * (1 + rank), group, number)
                for rank in members
            ]
    return calls_of(collectives_table(made, clock_offset_us=dict(enumerate(clock_us))))


def ends_on_one_clock(calls: Calls) -> FloatArray:
    operator, _ = match_calls(calls)
    offset = clock_offsets(calls, operator)
    ends: FloatArray = calls.end_us + offset[calls.rank]
    return ends


@UNHURRIED
@given(clocks, st.sampled_from([CHAIN, APART]))
def test_members_of_every_collective_leave_it_together_whatever_their_clocks_say(
    clock_us: list[float], groups: dict[str, tuple[int, ...]]
) -> None:
    calls = calls_in(groups, clock_us)
    operator, _ = match_calls(calls)
    ends = ends_on_one_clock(calls)
    for one in np.unique(operator):
        assert np.ptp(ends[operator == one]) < 0.01


@UNHURRIED
@given(clocks)
def test_ranks_that_no_chain_connects_keep_their_distance_as_the_clocks_have_it(
    clock_us: list[float],
) -> None:
    calls = calls_in(APART, clock_us)
    ends = ends_on_one_clock(calls)
    written = calls.end_us + calls.origin_us[calls.rank]
    for group in range(len(calls.groups)):
        inside = calls.group == group
        anchor = inside & (calls.rank == calls.rank[inside].min())
        assert np.ptp(ends[anchor] - written[anchor]) < 0.01
    first_of = [calls.rank[calls.group == group].min() for group in range(len(calls.groups))]
    moved = [float((ends - written)[calls.rank == rank][0]) for rank in first_of]
    assert moved[1] - moved[0] == pytest.approx(0.0, abs=0.01)


def test_one_wild_record_moves_no_clock() -> None:
    calls = calls_in(CHAIN, [0.0] * N_RANKS, rounds=5)
    wild = calls.end_us.copy()
    wild[np.flatnonzero(calls.rank == 2)[0]] += 1e6
    operator, _ = match_calls(calls)
    one = replace(calls, end_us=wild)
    assert clock_offsets(one, operator) == pytest.approx(clock_offsets(calls, operator), abs=0.01)


def test_messages_connect_no_clocks() -> None:
    pair = [Call(rank, kind, 0.0, 10.0, "p", 1) for rank, kind in enumerate(("send", "receive"))]
    assert connected(calls_of(collectives_table(pair))).tolist() == [0, 1]


def test_a_chain_of_collectives_connects_all_of_its_ranks_and_no_others() -> None:
    assert connected(calls_in(CHAIN, [0.0] * N_RANKS)).tolist() == [0] * N_RANKS
    assert connected(calls_in(APART, [0.0] * N_RANKS)).tolist() == [0, 0, 2, 2, 2]


@UNHURRIED
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12))
def test_ranks_are_connected_just_when_a_path_of_groups_leads_from_one_to_the_other(
    pairs: list[tuple[int, int]],
) -> None:
    groups = {str(n): tuple(sorted(set(pair))) for n, pair in enumerate(pairs)}
    calls = calls_in(groups, [0.0] * 10, rounds=1)
    part = connected(calls)
    ranks = calls.ranks.tolist()
    reached = {rank: {rank} for rank in ranks}
    for _ in ranks:
        for members in groups.values():
            union = set().union(*(reached[rank] for rank in members))
            for rank in union:
                reached[rank] |= union
    for one, mine in zip(ranks, part.tolist(), strict=True):
        assert {other for other, its in zip(ranks, part.tolist(), strict=True) if its == mine} == reached[one]
