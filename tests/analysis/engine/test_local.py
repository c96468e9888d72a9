"""Work in this process, in threads and in local processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cluster_analysis.engine.choose import SMALL_RUN_BYTES, open_engine
from cluster_analysis.engine.local import ProcessEngine, SerialEngine, ThreadEngine
from cluster_analysis.engine.protocol import N_ATTEMPTS, Engine
from cluster_analysis.options import AnalyseOptions
from cluster_run.errors import UsageError
from tests.analysis.engine import tasks


@pytest.fixture(params=["serial", "threads", "processes"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    made: Engine = {
        "serial": SerialEngine,
        "threads": lambda: ThreadEngine(3),
        "processes": lambda: ProcessEngine(2, tmp_path),
    }[request.param]()
    yield made
    made.close()


def test_outcomes_come_in_the_order_of_the_calls(engine: Engine) -> None:
    outcomes = list(engine.run(tasks.square, [(number,) for number in range(40)]))
    assert [one.value for one in outcomes] == [number * number for number in range(40)]


def test_a_failing_task_costs_only_itself(engine: Engine) -> None:
    outcomes = list(engine.run(tasks.fail_for, [(number, 3) for number in range(6)]))
    assert [one.value for one in outcomes] == [0, 1, 4, None, 16, 25]
    assert outcomes[3].failure.startswith("OSError: stale file handle 3 (fail, line ")


def test_a_task_that_fails_twice_is_tried_a_third_time(engine: Engine, tmp_path: Path) -> None:
    (outcome,) = engine.run(tasks.fail_until, [(str(tmp_path / "calls"), N_ATTEMPTS - 1)])
    assert outcome.value == N_ATTEMPTS


def test_a_task_that_fails_three_times_is_given_up(engine: Engine, tmp_path: Path) -> None:
    (outcome,) = engine.run(tasks.fail_until, [(str(tmp_path / "calls"), 100)])
    assert outcome.failure.startswith("OSError: not yet")
    assert (tmp_path / "calls").stat().st_size == N_ATTEMPTS


def test_large_halves_are_handed_to_later_tasks_in_pieces(engine: Engine) -> None:
    outcomes = list(engine.run_keeping(tasks.small_and_large, [(3,), (5,)]))
    kept = [one.kept for one in outcomes if one.kept is not None]
    assert [one.value for one in outcomes] == [3, 5]
    (outcome,) = engine.run(tasks.total_length, [([one.part(2) for one in kept],)])
    assert outcome.value == 8


def test_tasks_of_a_killed_process_run_again(tmp_path: Path) -> None:
    engine = ProcessEngine(2, tmp_path)
    try:
        calls = [(number, 7, str(tmp_path / "killed")) for number in range(30)]
        outcomes = list(engine.run(tasks.kill_own_process, calls))
    finally:
        engine.close()
    assert (tmp_path / "killed").exists()
    assert [one.value for one in outcomes] == [number * number for number in range(30)]


def test_a_task_that_always_kills_its_process_is_given_up_and_no_other(tmp_path: Path) -> None:
    engine = ProcessEngine(2, tmp_path)
    try:
        outcomes = list(engine.run(tasks.kill_own_process, [(number, 7) for number in range(30)]))
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
        assert [one.value for one in engine.run(tasks.square, [(2,)])] == [4]
        for process in list(engine._pool._processes.values()):  # type: ignore[union-attr]
            process.kill()
        assert [one.value for one in engine.run(tasks.square, [(3,), (4,)])] == [9, 16]
    finally:
        engine.close()


def test_large_arrays_come_back_as_they_were_and_leave_no_file(engine: Engine, tmp_path: Path) -> None:
    (outcome,) = engine.run(tasks.large_arrays, [(100_000,)])
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
        ("auto", SMALL_RUN_BYTES - 1, 8, SerialEngine),
        ("auto", SMALL_RUN_BYTES, 8, ProcessEngine),
        ("auto", SMALL_RUN_BYTES, 1, SerialEngine),
        ("threads", 0, 2, ThreadEngine),
        ("processes", 0, 2, ProcessEngine),
    ],
)
def test_the_scheduler_is_chosen_by_bytes(
    scheduler: str, size_bytes: int, n_workers: int, kind: type, tmp_path: Path
) -> None:
    options = AnalyseOptions(tmp_path, scheduler=scheduler, n_workers=n_workers)
    engine = open_engine(options, size_bytes, tmp_path)
    try:
        assert isinstance(engine, kind)
    finally:
        engine.close()


def test_an_unknown_scheduler_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown scheduler 'spark'"):
        open_engine(AnalyseOptions(tmp_path, scheduler="spark"), 0, tmp_path)
