"""Work in this process, in threads and in local processes."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster_analysis.engine.choose import SMALL_RUN_BYTES, open_engine
from cluster_analysis.engine.graph import task
from cluster_analysis.engine.local import InProcessEngine, ProcessEngine, ThreadEngine
from cluster_analysis.engine.protocol import N_ATTEMPTS, Engine, EngineError, Graph, TaskEnd
from cluster_analysis.options import AnalyseOptions
from cluster_analysis.tables.model import RankSource
from cluster_run.command_line import interruptible
from cluster_run.errors import InterruptedRunError, UsageError
from cluster_run.ids import Rank
from tests.analysis.engine import tasks


@pytest.fixture(params=["serial", "threads", "processes"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    made: Engine = {
        "serial": InProcessEngine,
        "threads": lambda: ThreadEngine(3),
        "processes": lambda: ProcessEngine(2, tmp_path),
    }[request.param]()
    yield made
    made.close()


def run(engine: Engine, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[TaskEnd[Any]]:
    """Run one task a call, none of which needs another."""
    graph: Graph = {("call", number): task(function, *call) for number, call in enumerate(calls)}
    return engine.run(graph, list(graph))


def test_outcomes_come_in_the_order_of_the_keys(engine: Engine) -> None:
    outcomes = run(engine, tasks.square, [(number,) for number in range(40)])
    assert [one.value for one in outcomes] == [number * number for number in range(40)]


def test_tasks_take_the_values_of_others_alone_and_in_lists(engine: Engine) -> None:
    graph: Graph = {
        ("three",): 3,
        ("nine",): task(tasks.square, ("three",)),
        ("sum",): task(tasks.total, [("three",), ("nine",), 1]),
    }
    (outcome,) = engine.run(graph, [("sum",)])
    assert outcome.value == 13


def test_a_signal_is_no_failed_attempt_at_a_task() -> None:
    engine = InProcessEngine()
    calls = [(signal.SIGTERM,), (signal.SIGTERM,)]
    with pytest.raises(InterruptedRunError, match="SIGTERM"), interruptible():
        run(engine, signal.raise_signal, calls)


def test_what_is_not_asked_for_is_not_worked_out(engine: Engine, tmp_path: Path) -> None:
    graph: Graph = {
        ("asked",): task(tasks.square, 2),
        ("other",): task(tasks.fail_until, str(tmp_path / "calls"), 0),
    }
    assert [one.value for one in engine.run(graph, [("asked",)])] == [4]
    assert not (tmp_path / "calls").exists()


def test_each_value_that_is_there_is_told(engine: Engine) -> None:
    told: list[int] = []
    graph: Graph = {("call", number): task(tasks.square, number) for number in range(5)}
    engine.run(graph, list(graph), told.append)
    assert told == [1, 2, 3, 4, 5]


def test_a_failing_task_costs_only_itself(engine: Engine) -> None:
    outcomes = run(engine, tasks.fail_for, [(number, 3) for number in range(6)])
    assert [one.value for one in outcomes] == [0, 1, 4, None, 16, 25]
    assert outcomes[3].failure.startswith("OSError: stale file handle 3 (fail, line ")


def test_a_task_without_the_value_it_needs_says_why_that_failed(engine: Engine) -> None:
    graph: Graph = {("bad",): task(tasks.fail, 3), ("sum",): task(tasks.total, [("bad",), 1])}
    (outcome,) = engine.run(graph, [("sum",)])
    assert outcome.failure.startswith("OSError: stale file handle 3 (fail, line ")


def test_a_task_that_fails_twice_is_tried_a_third_time(engine: Engine, tmp_path: Path) -> None:
    (outcome,) = run(engine, tasks.fail_until, [(str(tmp_path / "calls"), N_ATTEMPTS - 1)])
    assert outcome.value == N_ATTEMPTS


def test_a_task_that_fails_three_times_is_given_up(engine: Engine, tmp_path: Path) -> None:
    (outcome,) = run(engine, tasks.fail_until, [(str(tmp_path / "calls"), 100)])
    assert outcome.failure.startswith("OSError: not yet")
    assert (tmp_path / "calls").stat().st_size == N_ATTEMPTS


def test_large_halves_are_handed_to_later_tasks_in_pieces(engine: Engine) -> None:
    graph: Graph = {("pair", number): task(tasks.small_and_large, number) for number in (3, 5)}
    outcomes = engine.run_keeping(graph, list(graph))
    pairs = [one.value for one in outcomes if one.value is not None]
    assert [small for small, _ in pairs] == [3, 5]
    pieces: Graph = {("piece", number): large.piece(2) for number, (_, large) in enumerate(pairs)}
    (outcome,) = engine.run({**pieces, ("length",): task(tasks.total_length, list(pieces))}, [("length",)])
    assert outcome.value == 8


def test_an_engine_that_rested_works_again(engine: Engine) -> None:
    assert [one.value for one in run(engine, tasks.square, [(2,)])] == [4]
    engine.rest()
    assert [one.value for one in run(engine, tasks.square, [(3,), (4,)])] == [9, 16]


def test_tasks_of_a_killed_process_run_again(tmp_path: Path) -> None:
    engine = ProcessEngine(2, tmp_path)
    try:
        calls = [(number, 7, str(tmp_path / "killed")) for number in range(30)]
        outcomes = run(engine, tasks.kill_own_process, calls)
    finally:
        engine.close()
    assert (tmp_path / "killed").exists()
    assert [one.value for one in outcomes] == [number * number for number in range(30)]


def test_a_task_that_always_kills_its_process_is_given_up_and_no_other(tmp_path: Path) -> None:
    engine = ProcessEngine(2, tmp_path)
    try:
        outcomes = run(engine, tasks.kill_own_process, [(number, 7) for number in range(30)])
    finally:
        engine.close()
    failures = {position: one.failure for position, one in enumerate(outcomes) if one.failure}
    assert failures == {7: "its worker process died 3 times, out of memory perhaps"}
    assert [one.value for one in outcomes if one.value is not None] == [
        number * number for number in range(30) if number != 7
    ]


def test_a_pool_works_again_after_a_process_was_killed_from_outside(tmp_path: Path) -> None:
    engine = ProcessEngine(2, tmp_path)
    try:
        assert [one.value for one in run(engine, tasks.square, [(2,)])] == [4]
        for process in list(engine._pool._processes.values()):  # type: ignore[union-attr]
            process.kill()
        assert [one.value for one in run(engine, tasks.square, [(3,), (4,)])] == [9, 16]
    finally:
        engine.close()


def test_a_value_that_is_lost_between_processes_is_one_clear_error(tmp_path: Path) -> None:
    engine = ProcessEngine(2, tmp_path)
    try:
        with pytest.raises(EngineError, match="could not be handed from process to process"):
            run(engine, tasks.lost_on_the_way, [()])
    finally:
        engine.close()


def test_large_arrays_come_back_as_they_were_and_leave_no_file(engine: Engine, tmp_path: Path) -> None:
    (outcome,) = run(engine, tasks.large_arrays, [(100_000,)])
    assert outcome.value is not None
    numbers, table = outcome.value
    expected, expected_table = tasks.large_arrays(100_000)
    assert np.array_equal(numbers, expected)
    assert table.equals(expected_table)
    numbers[0] = 7  # an own copy, as any value is
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("scheduler", "size_bytes", "n_workers", "kind"),
    [
        ("auto", SMALL_RUN_BYTES - 1, 8, InProcessEngine),
        ("auto", SMALL_RUN_BYTES, 8, ProcessEngine),
        ("auto", SMALL_RUN_BYTES, 1, InProcessEngine),
        ("threads", 0, 2, ThreadEngine),
        ("processes", 0, 2, ProcessEngine),
    ],
)
def test_the_scheduler_is_chosen_by_bytes(
    scheduler: str, size_bytes: int, n_workers: int, kind: type, tmp_path: Path
) -> None:
    options = AnalyseOptions(tmp_path, scheduler=scheduler, n_workers=n_workers)
    source = RankSource(Rank(0), "ascend_pt/text", {}, size_bytes)
    engine = open_engine(options, [source], tmp_path)
    try:
        assert isinstance(engine, kind)
    finally:
        engine.close()


def test_an_unknown_scheduler_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown scheduler 'spark'"):
        open_engine(AnalyseOptions(tmp_path, scheduler="spark"), [], tmp_path)


def test_a_terminal_that_closes_does_not_stop_a_worker_at_any_line(tmp_path: Path) -> None:
    engine = ProcessEngine(2, tmp_path)
    with interruptible():
        (outcome,) = run(engine, tasks.hang_up, [()])
        engine.close()
    assert outcome.value == "goes on"
