"""Blocks of operators in an order in which everything that one waits for lies before it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.judge.view import build_view
from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.replay.lanes import ENDED, TRANSFER, WORK, Lanes, lanes_tables, span_of
from cluster_analysis.replay.lanes import lanes_of as lanes_of_span
from cluster_analysis.replay.order import Instances, ReplayOrder, replay_order
from cluster_analysis.replay.passes import ends_of, entries_of
from cluster_analysis.replay.replay import Graph, Repair
from tests.analysis.copies import replace
from tests.analysis.jobs import SMALL, Judged, judged

#: A loaded machine is slow and makes no test fail.

N_RANKS = 4
#: One event of a job: the ranks that meet in a collective, or a message from one to the other.
Event = tuple[str, tuple[int, ...]]
events = st.lists(
    st.one_of(
        st.tuples(
            st.just("collective"),
            st.sets(st.integers(0, N_RANKS - 1), min_size=1).map(lambda ranks: tuple(sorted(ranks))),
        ),
        st.tuples(
            st.sampled_from(["eager", "waiting"]), st.permutations(range(N_RANKS)).map(lambda all_: all_[:2])
        ),
    ),
    min_size=1,
    max_size=20,
)


def instances_of(happened: list[Event]) -> tuple[Instances, int]:
    """The instances of events that happened one after the other, and how many operators they are."""
    columns: dict[str, list[int]] = {name: [] for name in ("operator", "rank", "other", "is_send", "waits")}

    def instance(
        operator: int, at: int, *, other: int = -1, is_send: bool = False, waits: bool = False
    ) -> int:
        values = (operator, at, other, int(is_send), int(waits))
        for name, value in zip(columns, values, strict=True):
            columns[name].append(value)
        return len(columns["rank"]) - 1

    n_operators = 0
    for kind, ranks in happened:
        if kind == "collective":
            for member in ranks:
                instance(n_operators, member)
            n_operators += 1
            continue
        send = instance(n_operators, ranks[0], is_send=True, waits=kind == "waiting")
        receive = instance(n_operators + 1, ranks[1], other=send)
        columns["other"][send] = receive
        n_operators += 2
    operator, rank, other = (np.array(columns[name], np.int32) for name in ("operator", "rank", "other"))
    is_send, waits = np.array(columns["is_send"], bool), np.array(columns["waits"], bool)
    n = len(rank)
    after = np.full(n, n, np.int32)
    for one in range(N_RANKS):
        own = np.flatnonzero(rank == one)
        after[own[1:]] = own[:-1]
    return Instances(
        operator=operator,
        by_operator=np.argsort(operator, kind="stable"),
        cell=rank,
        after=after,
        join=np.full(n, n + 1, np.int32),
        sender=np.where(~is_send & (other >= 0), other, n).astype(np.int32),
        receiver=np.where(is_send, other, n).astype(np.int32),
        own_us=np.full(n, np.nan),
        waits_last=np.zeros(n, bool),
        is_p2p=other >= 0,
        waits_for_receiver=waits,
    ), n_operators


def renumbered(instances: Instances, operator: IntArray) -> Instances:
    """The instances with other operators."""
    return replace(instances, operator=operator, by_operator=np.argsort(operator, kind="stable"))


def ordered(happened: list[Event]) -> tuple[Instances, ReplayOrder]:
    instances, n_operators = instances_of(happened)
    return instances, replay_order(instances, n_operators, N_RANKS)


@given(events, st.randoms())
def test_the_numbers_of_instances_do_not_change_what_is_replayed_together(
    happened: list[Event], random: object
) -> None:
    instances, n_operators = instances_of(happened)
    renamed = np.array(random.sample(range(n_operators), n_operators), np.int32)  # type: ignore[attr-defined]
    order = replay_order(instances, n_operators, N_RANKS)
    other = replay_order(renumbered(instances, renamed[instances.operator]), n_operators, N_RANKS)
    assert [(one.n_operators, one.n_members) for one in order.blocks] == [
        (one.n_operators, one.n_members) for one in other.blocks
    ]
    for one in order.blocks:
        inside = slice(one.first, one.first + one.n_operators)
        assert set(renamed[order.operators[inside]].tolist()) == set(other.operators[inside].tolist())


def test_operators_matched_into_a_circle_have_the_last_places_and_no_block() -> None:
    happened: list[Event] = [("collective", (0, 1)), ("collective", (0, 1)), ("collective", (2, 3))]
    instances, n_operators = instances_of(happened)
    # Rank 1 makes the first two the other way round.
    operator = instances.operator.copy()
    operator[[1, 3]] = operator[[3, 1]]
    order = replay_order(renumbered(instances, operator), n_operators, N_RANKS)
    assert [block.n_operators for block in order.blocks] == [1]
    assert order.operators.tolist() == [2, 0, 1]
    assert sorted(order.place[:4].tolist()) == [2, 3, 4, 5]
    assert order.cells.tolist() == [0, 1, 2, 3]


def test_a_rank_that_runs_into_a_circle_has_its_last_instance_before_it_among_its_last() -> None:
    instances, n_operators = instances_of(
        [("collective", (0,)), ("collective", (0, 1)), ("collective", (0, 1))]
    )
    operator = instances.operator.copy()
    operator[[2, 4]] = operator[[4, 2]]
    order = replay_order(renumbered(instances, operator), n_operators, N_RANKS)
    assert order.operator_place[0] in order.last_rows[order.last_begin[0] : order.last_begin[1]]


# A pass over the blocks gives what each operator, asked one after the other, would say.
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


# One step as lanes: cells of what ranks do, and the critical path through them.
def graph_of(job: Judged) -> Graph:
    graph = build_view(job.evidence, job.topology).graph
    assert graph is not None
    return graph


def lanes_of(graph: Graph, step: int) -> Lanes:
    return lanes_of_span(span_of(graph, step), step)


@pytest.fixture(scope="module")
def slow() -> Judged:
    return judged(replace(SMALL, microbatches=4), "slow_rank:1.4@5")


def test_the_critical_path_goes_through_the_whole_step_without_a_hole(slow: Judged) -> None:
    graph = graph_of(slow)
    for step in range(graph.n_steps):
        lanes = lanes_of(graph, step)
        assert lanes.path_begin_us[0] == pytest.approx(0.0, abs=1.0)
        np.testing.assert_allclose(lanes.path_begin_us[1:], lanes.path_end_us[:-1], atol=2.0)
        assert lanes.path_end_us[-1] == pytest.approx(lanes.cell_us * lanes.cells.shape[1])


def test_the_end_of_the_path_is_the_end_of_the_step_as_replayed(slow: Judged) -> None:
    graph = graph_of(slow)
    alone = graph._pass((Repair(),), np.zeros((1, graph.n_steps, len(graph.ranks))))
    ends = np.maximum.reduceat(alone[graph.order.last_rows], graph.order.last_begin)
    by_cell = np.zeros(graph.n_steps * len(graph.ranks))
    by_cell[graph.order.cells] = ends
    for step, end_us in enumerate(by_cell.reshape(graph.n_steps, -1).max(axis=1)):
        assert lanes_of(graph, step).path_end_us[-1] == pytest.approx(end_us)


def test_most_of_the_path_is_the_work_of_the_slow_rank(slow: Judged) -> None:
    lanes = lanes_of(graph_of(slow), 1)
    long_us = lanes.path_end_us - lanes.path_begin_us
    of_rank = {int(rank): long_us[lanes.path_rank == rank].sum() for rank in np.unique(lanes.path_rank)}
    assert max(of_rank, key=lambda rank: of_rank[rank]) == 5
    is_work = (lanes.path_rank == 5) & (lanes.path_kind == WORK)
    assert long_us[is_work].sum() > 0.5 * long_us.sum()


def test_cells_hold_as_much_work_as_there_is_between_calls(slow: Judged) -> None:
    graph = graph_of(slow)
    lanes = lanes_of(graph, 1)
    work_us = (lanes.cells == WORK).sum(axis=1) * lanes.cell_us
    n_calls = np.diff(graph.cell_begin)[len(graph.ranks) : 2 * len(graph.ranks)].max()
    np.testing.assert_allclose(work_us, graph.main_gaps_us[:, 1], atol=lanes.cell_us * n_calls)
    assert set(np.unique(lanes.cells)) <= {ENDED, WORK, 2, TRANSFER}


def test_the_step_is_one_that_shows_the_costliest_alarm(slow: Judged) -> None:
    alarm = next(one for one in slow.detection.findings if one.is_alarm)
    for step in slow.evidence.steps:
        shown = lanes_tables(graph_of(slow), slow.evidence.steps, [replace(alarm, steps=(step,))])
        assert set(shown["lanes"]["step"].to_pylist()) == {step}


def test_nothing_is_drawn_where_nothing_can_be_replayed() -> None:
    tables = lanes_tables(None, (), ())
    assert [one.num_rows for one in tables.values()] == [0, 0, 0]
