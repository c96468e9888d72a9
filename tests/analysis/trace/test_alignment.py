"""Clocks are laid together by the ends of collectives, as far as chains of them reach."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.trace.alignment import clock_offsets, connected, members_of
from cluster_analysis.trace.calls import Calls, calls_of
from cluster_analysis.trace.matching import match_calls
from cluster_analysis.trace.pairing.coincidences import Sample, explained, votes_of
from cluster_analysis.trace.pairing.slots import BATCH, Family
from tests.analysis.copies import replace
from tests.analysis.jobs import Call, collectives_table

#: A loaded machine is slow and makes no test fail.

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


@given(clocks, st.sampled_from([CHAIN, APART]))
def test_members_of_every_collective_leave_it_together_whatever_their_clocks_say(
    clock_us: list[float], groups: dict[str, tuple[int, ...]]
) -> None:
    calls = calls_in(groups, clock_us)
    operator, _ = match_calls(calls)
    ends = ends_on_one_clock(calls)
    for one in np.unique(operator):
        assert np.ptp(ends[operator == one]) < 0.01


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


def connected_ranks(calls: Calls) -> list[int]:
    return connected(*members_of(calls), len(calls.ranks)).tolist()


def test_messages_connect_no_clocks() -> None:
    pair = [Call(rank, kind, 0.0, 10.0, "p", 1) for rank, kind in enumerate(("send", "receive"))]
    assert connected_ranks(calls_of(collectives_table(pair))) == [0, 1]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12))
def test_ranks_are_connected_just_when_a_path_of_groups_leads_from_one_to_the_other(
    pairs: list[tuple[int, int]],
) -> None:
    groups = {str(n): tuple(sorted(set(pair))) for n, pair in enumerate(pairs)}
    calls = calls_in(groups, [0.0] * 10, rounds=1)
    part = connected_ranks(calls)
    ranks = calls.ranks.tolist()
    reached = {rank: {rank} for rank in ranks}
    for _ in ranks:
        for members in groups.values():
            union = set().union(*(reached[rank] for rank in members))
            for rank in union:
                reached[rank] |= union
    for one, mine in zip(ranks, part, strict=True):
        assert {other for other, its in zip(ranks, part, strict=True) if its == mine} == reached[one]


# Two clocks have one shift, whichever way the messages go.
_N = 12
_EVERY_US = 30_000.0


def test_what_a_batch_takes_to_send_is_no_waiting_that_a_hint_must_explain() -> None:
    begun = np.arange(_N) * _EVERY_US
    awaited = np.arange(_N) < 4  # the others find their message there, and end when they have sent
    taken = np.where(awaited, begun + 9_000.0, begun + 1_700.0)
    start = np.concatenate([np.where(awaited, begun + 7_300.0, begun - 20_000.0), begun])[None]
    end = np.concatenate([start[0, :_N] + 1_700.0, taken])[None]
    family = Family(
        np.arange(2 * _N)[None], np.repeat([0, 1], _N), np.full(2 * _N, BATCH), np.array([[0, 1]])
    )
    sample = Sample(family, start, end, np.array([True]))
    votes = votes_of(sample, np.ones((2 * _N, 2), bool))
    assert explained(sample, votes, (np.arange(_N), _N + np.arange(_N))) > 0.95
