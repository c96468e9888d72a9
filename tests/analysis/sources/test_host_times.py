from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from cluster_analysis.sources.db.host_times_db import read_host_times
from cluster_analysis.sources.errors import unheard

_BEGIN = 1_736_410_576_386_409_710
_NAMES = {1: "aten::copy_", 2: "aclrtSynchronizeStream", 3: "launch", 4: "MEMCPY_ASYNC", 5: "AI_CORE"}


def at(us: float) -> int:
    return _BEGIN + round(us * 1000)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A step of 100 µs: kernels at 20-30, 50-60 and 90-95 µs; the host copies, waits, dispatches between."""
    path = tmp_path / "ascend_pytorch_profiler_0.db"
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT)")
        base.executemany("INSERT INTO STRING_IDS VALUES (?, ?)", _NAMES.items())
        base.execute("CREATE TABLE STEP_TIME (id, startNs, endNs)")
        base.execute("INSERT INTO STEP_TIME VALUES (7, ?, ?)", (at(0), at(100)))
        base.execute("CREATE TABLE TASK (startNs, endNs, globalTaskId, taskType)")
        base.execute("CREATE TABLE COMPUTE_TASK_INFO (globalTaskId)")
        for number, (begin, end) in enumerate(((20, 30), (50, 60), (90, 95))):
            base.execute("INSERT INTO TASK VALUES (?, ?, ?, 5)", (at(begin), at(end), number))
            base.execute("INSERT INTO COMPUTE_TASK_INFO VALUES (?)", (number,))
        for begin, end in ((12, 14), (70, 75)):
            base.execute("INSERT INTO TASK VALUES (?, ?, 99, 4)", (at(begin), at(end)))
        base.execute("CREATE TABLE PYTORCH_API (startNs TEXT, endNs TEXT, name)")
        for begin, end in ((5, 15), (6, 14), (65, 66)):
            base.execute("INSERT INTO PYTORCH_API VALUES (?, ?, 1)", (str(at(begin)), str(at(end))))
        base.execute("CREATE TABLE CANN_API (startNs, endNs, name)")
        for begin, end, name in ((28, 40, 2), (35, 45, 3), (62, 64, 3)):
            base.execute("INSERT INTO CANN_API VALUES (?, ?, ?)", (at(begin), at(end), name))
        base.execute("CREATE TABLE GC_RECORD (startNs, endNs)")
        base.execute("INSERT INTO GC_RECORD VALUES (?, ?)", (at(80), at(84)))
    base.close()
    return path


def test_copies_before_the_first_operator_count_once_though_calls_nest(database: Path) -> None:
    found = {(metric, label): value for metric, label, value in read_host_times(database, unheard)}
    assert found["head_copy_us", "host"] == 10.0
    assert found["head_copy_us", "device"] == 2.0


def test_each_moment_of_idle_time_has_one_cause_and_all_add_up(database: Path) -> None:
    found = {
        label: value for metric, label, value in read_host_times(database, unheard) if metric == "idle_us"
    }
    assert found == {"synchronising": 10.0, "collecting": 4.0, "dispatching": 7.0, "elsewhere": 29.0}


def test_a_database_without_calls_of_the_host_says_nothing_of_it(database: Path) -> None:
    with sqlite3.connect(database) as base:
        for table in ("PYTORCH_API", "CANN_API", "GC_RECORD"):
            base.execute(f"DROP TABLE {table}")
    base.close()
    assert read_host_times(database, unheard) == []
