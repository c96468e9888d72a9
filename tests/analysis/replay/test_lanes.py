"""One step as lanes: cells of what ranks do, and the critical path through them."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_analysis.judge.view import build_view
from cluster_analysis.replay.lanes import ENDED, TRANSFER, WORK, Lanes, span_of
from cluster_analysis.replay.lanes import lanes_of as lanes_of_span
from cluster_analysis.replay.replay import Graph, Repair
from cluster_analysis.replay.shown_step import lanes_tables
from tests.analysis.copies import replace
from tests.analysis.jobs import SMALL, Judged, judged


def graph_of(job: Judged) -> Graph:
    graph = build_view(job.evidence, job.topology).graph
    assert graph is not None
    return graph


def lanes_of(graph: Graph, step: int) -> Lanes:
    return lanes_of_span(span_of(graph, step), step)


@pytest.fixture(scope="module")
def slow() -> Judged:
    return judged(SMALL, "slow_rank:1.4@5")


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
