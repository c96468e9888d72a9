from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import pytest

from cluster_analysis.sources.rank import read_rank
from cluster_run.ids import Step
from tests.analysis.said import notes_of, reason
from tests.analysis.sources.builders import (
    GROUP,
    LINKS,
    OPS,
    OUTPUT,
    STEP_ROW,
    Op,
    source_of,
    write_analysis_db,
    write_capture,
    write_info,
)
from tests.analysis.sources.hand_made_databases import BEGIN, NS, database_capture, profiler_db, read, rows


def test_text_and_database_form_of_one_rank_give_equal_tables(tmp_path: Path) -> None:
    text = read_rank(source_of(write_capture(tmp_path / "text", 0)))
    output = database_capture(tmp_path / "db")
    write_analysis_db(output / "analysis.db", {"step50": OPS}, {"step50": LINKS}, {"50": STEP_ROW})
    database = read(output)
    assert database.problems == text.problems == ()
    for name in ("steps", "collectives", "links", "packets"):
        assert rows(getattr(database, name)) == rows(getattr(text, name)), name


def test_a_database_is_never_changed(tmp_path: Path) -> None:
    output = database_capture(tmp_path)
    write_analysis_db(output / "analysis.db", {"step50": OPS}, {"step50": LINKS}, {"50": STEP_ROW})
    profiler_db(output / "ascend_pytorch_profiler_0.db")
    before = {path.name: hashlib.sha256(path.read_bytes()).digest() for path in output.iterdir()}
    output.chmod(0o555)
    try:
        assert read(output).collectives.num_rows == len(OPS)
    finally:
        output.chmod(0o755)
    assert {path.name: hashlib.sha256(path.read_bytes()).digest() for path in output.iterdir()} == before


def test_columns_are_found_by_name_among_others_that_tools_have_added(tmp_path: Path) -> None:
    output = database_capture(tmp_path)
    write_analysis_db(output / "analysis.db", {"step50": OPS}, {"step50": LINKS}, {"50": STEP_ROW})
    expected = rows(read(output).collectives)
    with sqlite3.connect(output / "analysis.db") as base:
        base.execute("ALTER TABLE CommAnalyzerTime RENAME TO old")
        base.execute("CREATE TABLE CommAnalyzerTime AS SELECT 7 AS added, type, step, idle_time, * FROM old")
        base.execute("CREATE TABLE connectionCats (connectionId INT, cat)")
    base.close()
    assert rows(read(output).collectives) == expected


def test_step_times_are_recomputed_from_tasks_where_the_table_is_missing(tmp_path: Path) -> None:
    output = database_capture(tmp_path)
    profiler_db(output / "ascend_pytorch_profiler_0.db")
    (step,) = read(output).steps.to_pylist()
    assert step == {
        "rank": 0,
        "step": 50,
        "computing_us": 30.0,
        "communication_not_overlapped_us": 30.0,
        "overlapped_us": 5.0,
        "communication_us": 35.0,
        "free_us": 10.0,
        "stage_us": 60.0,
        "bubble_us": 10.0,
        "communication_not_overlapped_exclude_receive_us": 20.0,
        "preparing_us": 10.0,
    }


def test_mindspore_counts_the_stage_from_communication_only(tmp_path: Path) -> None:
    output = database_capture(tmp_path, "rank0_ascend_ms")
    profiler_db(output / "ascend_mindspore_profiler_0.db")
    (step,) = read(output).steps.to_pylist()
    assert (step["stage_us"], step["bubble_us"]) == (35.0, 10.0)


def test_a_database_without_steps_is_one_window_called_step_0(tmp_path: Path) -> None:
    output = database_capture(tmp_path)
    profiler_db(output / "ascend_pytorch_profiler_0.db", steps=False)
    tables = read(output)
    assert tables.steps["step"].to_pylist() == [0]
    assert tables.steps["preparing_us"].to_pylist() == [None]
    assert tables.collectives["step"].to_pylist() == [0, 0]


def test_operators_without_analysis_db_have_times_and_a_group_but_no_sizes(tmp_path: Path) -> None:
    output = database_capture(tmp_path)
    profiler_db(output / "ascend_pytorch_profiler_0.db")
    tables = read(output)
    first = tables.collectives.to_pylist()[0]
    assert (first["start_ns"], first["elapse_us"]) == (BEGIN + 35 * NS, 25.0)
    assert first["hccs_bytes"] is None
    assert first["group"].isdecimal()
    assert [problem.file for problem in tables.problems] == ["communication_matrix.json"]


def test_kernels_are_counted_by_kind(tmp_path: Path) -> None:
    output = database_capture(tmp_path)
    profiler_db(output / "ascend_pytorch_profiler_0.db")
    (kernel,) = read(output).operators.to_pylist()
    assert (kernel["op_type"], kernel["core_type"], kernel["n_calls"]) == ("MatMulV2", "AI_CORE", 2)
    assert (kernel["total_us"], kernel["min_us"], kernel["avg_us"], kernel["max_us"]) == (
        35.0,
        15.0,
        17.5,
        20.0,
    )


def test_kernels_whose_kind_stands_twice_among_the_texts_are_one_kind(tmp_path: Path) -> None:
    output = database_capture(tmp_path)
    profiler_db(output / "ascend_pytorch_profiler_0.db")
    with sqlite3.connect(output / "ascend_pytorch_profiler_0.db") as base:
        base.execute("INSERT INTO STRING_IDS VALUES (9, 'MatMulV2')")
        base.execute("UPDATE COMPUTE_TASK_INFO SET opType = 9 WHERE globalTaskId = 1")
    (kernel,) = read(output).operators.to_pylist()
    assert (kernel["op_type"], kernel["n_calls"], kernel["total_us"]) == ("MatMulV2", 2, 35.0)


def test_operators_of_mindspore_belong_to_the_step_in_which_they_start(tmp_path: Path) -> None:
    output = database_capture(tmp_path, "rank0_ascend_ms")
    profiler_db(output / "ascend_mindspore_profiler_0.db")
    inside = Op(f"hcom_allReduce__210_0_1@{GROUP}", start=f"{(BEGIN + 35 * NS) / 1000:.1f}")
    outside = Op(f"hcom_allReduce__210_9_1@{GROUP}", start=f"{(BEGIN + 900 * NS) / 1000:.1f}")
    write_analysis_db(
        output / "communication_analyzer.db",
        {"": (inside, outside)},
        {"": LINKS},
        {},
        with_step_columns=False,
    )
    tables = read(output)
    assert [(row["op_name"], row["step"]) for row in tables.collectives.to_pylist()] == [
        ("hcom_allReduce__210_0_1", 50)
    ]
    assert tables.packets["step"].to_pylist() == [50]


def test_a_level_0_database_has_steps_and_says_why_nothing_else(tmp_path: Path) -> None:
    output = database_capture(tmp_path)
    write_info(output.parent, 0, level="Level0")
    write_analysis_db(output / "analysis.db", {}, {}, {"50": STEP_ROW})
    with sqlite3.connect(output / "analysis.db") as base:
        for table in ("CommAnalyzerTime", "CommAnalyzerBandwidth", "CommAnalyzerMatrix"):
            base.execute(f"DROP TABLE {table}")
    base.close()
    tables = read(output)
    assert tables.steps.num_rows == 1
    assert tables.collectives.num_rows == 0
    assert tables.problems == ()
    assert "Level0" in notes_of(tables)[0]


@pytest.mark.parametrize("content", [b"", b"not a database", b"SQLite format 3\0" + b"\xff" * 200])
def test_a_damaged_database_is_one_problem_and_no_traceback(tmp_path: Path, content: bytes) -> None:
    output = database_capture(tmp_path)
    (output / "analysis.db").write_bytes(content)
    tables = read(output)
    assert "analysis.db" in {problem.file for problem in tables.problems}
    assert tables.steps.num_rows == 0


def test_text_in_a_number_column_is_null_and_told(tmp_path: Path) -> None:
    output = database_capture(tmp_path)
    write_analysis_db(
        output / "analysis.db", {"step50": OPS}, {"step50": LINKS}, {"50": ("much", *STEP_ROW[1:])}
    )
    tables = read(output)
    assert tables.steps["computing_us"].to_pylist() == [None]
    assert [reason(problem) for problem in tables.problems] == ["left out: 1 value without a number"]


def test_a_database_stands_in_for_a_damaged_text_file_which_is_still_told(tmp_path: Path) -> None:
    capture = write_capture(tmp_path, 0)
    good = rows(read_rank(source_of(capture)).collectives)
    write_analysis_db(capture / OUTPUT / "analysis.db", {"step50": OPS}, {"step50": LINKS}, {"50": STEP_ROW})
    (capture / OUTPUT / "communication.json").write_text('{"step50": {')
    tables = read_rank(source_of(capture))
    assert rows(tables.collectives) == good
    assert [reason(problem) for problem in tables.problems] == ["truncated at byte 12"]


def test_sizes_and_groups_are_read_from_meta_data(tmp_path: Path) -> None:
    output = database_capture(tmp_path)
    profiler_db(output / "ascend_pytorch_profiler_0.db")
    with sqlite3.connect(output / "ascend_pytorch_profiler_0.db") as base:
        base.execute("CREATE TABLE META_DATA (name TEXT, value TEXT)")
        base.execute("CREATE TABLE HOST_INFO (hostUid TEXT, hostName TEXT)")
        base.execute("INSERT INTO HOST_INFO VALUES ('35', 'node7')")
        base.execute(
            "INSERT INTO META_DATA VALUES ('distributed_args', "
            '\'{"tensor_model_parallel_size": 2, "world_size": 4}\')'
        )
        base.execute(
            "INSERT INTO META_DATA VALUES ('parallel_group_info', "
            '\'{"10.0.0.1%eth0_60000_0_17": {"group_name": "tp", "global_ranks": [0, 1]}}\')'
        )
    base.close()
    tables = read(output)
    assert (tables.metadata.parallel.tp, tables.metadata.world_size, tables.metadata.host_name) == (
        2,
        4,
        "node7",
    )
    assert tables.metadata.groups[0].group == tables.collectives["group"][0].as_py()


def test_steps_are_selected_in_databases_too(tmp_path: Path) -> None:
    output = database_capture(tmp_path)
    write_analysis_db(
        output / "analysis.db",
        {"step50": OPS, "step51": OPS},
        {"step50": LINKS, "step51": LINKS},
        {"50": STEP_ROW, "51": STEP_ROW},
    )
    tables = read(output, steps=frozenset({Step(51)}))
    for table in (tables.steps, tables.collectives, tables.links, tables.packets):
        assert set(table["step"].to_pylist()) == {51}


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE TASK SET startNs = 'soon'",
        "UPDATE TASK SET endNs = NULL",
        "UPDATE TASK SET startNs = -9223372036854775808",
        "UPDATE COMMUNICATION_OP SET startNs = 'soon'",
        "UPDATE COMMUNICATION_OP SET endNs = 1e300",
        "UPDATE COMMUNICATION_OP SET opName = NULL, groupName = 'x'",
        "UPDATE STEP_TIME SET id = 'first'",
        "UPDATE STEP_TIME SET startNs = NULL",
        "UPDATE STRING_IDS SET value = x'ff00ff'",
        "UPDATE COMPUTE_TASK_INFO SET opType = 1e99",
        "DELETE FROM STRING_IDS",
    ],
)
def test_values_of_wrong_types_in_a_database_are_no_traceback(tmp_path: Path, damage: str) -> None:
    output = database_capture(tmp_path)
    path = output / "ascend_pytorch_profiler_0.db"
    profiler_db(path)
    with sqlite3.connect(path) as base:
        base.execute(damage)
    base.close()
    tables = read(output)
    assert {problem.file for problem in tables.problems} <= {
        path.name,
        "communication_matrix.json",
        "step_trace_time.csv",
    }
    columns = {
        "steps": "computing_us",
        "collectives": "elapse_us",
        "links": "time_us",
        "operators": "total_us",
    }
    for name, column in columns.items():
        assert all(value is None or abs(value) < 1e6 for value in getattr(tables, name)[column].to_pylist())


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE TASK SET startNs = 'soon' WHERE globalTaskId = 1",
        "UPDATE TASK SET endNs = NULL",
        "UPDATE TASK SET endNs = startNs - 1 WHERE globalTaskId = 1",
    ],
)
def test_tasks_without_a_time_are_left_out_and_counted(tmp_path: Path, damage: str) -> None:
    output = database_capture(tmp_path)
    path = output / "ascend_pytorch_profiler_0.db"
    profiler_db(path)
    with sqlite3.connect(path) as base:
        n_tasks = base.execute(damage).rowcount
    base.close()
    tables = read(output)
    parts = "task" if n_tasks == 1 else "tasks"
    told = [reason(problem) for problem in tables.problems if problem.file == path.name]
    assert told == [f"left out: {n_tasks} {parts} without a time"]
    assert sum(tables.operators["n_calls"].to_pylist()) == 2 - n_tasks


@pytest.mark.parametrize(
    "damage",
    ["startNs = 'soon'", "endNs = NULL", "endNs = startNs - 1", "startNs = 1.5"],
)
def test_operators_without_a_time_are_left_out_and_counted_once(tmp_path: Path, damage: str) -> None:
    output = database_capture(tmp_path)
    path = output / "ascend_pytorch_profiler_0.db"
    profiler_db(path)
    with sqlite3.connect(path) as base:
        base.execute(f"UPDATE COMMUNICATION_OP SET {damage} WHERE opName = 2")
    base.close()
    tables = read(output)
    told = [reason(problem) for problem in tables.problems if problem.file == path.name]
    assert told == ["left out: 1 operator without a time"]
    assert tables.collectives["op_type"].to_pylist() == ["allreduce"]
    assert tables.steps["communication_us"].to_pylist() == [25.0]


def test_a_damaged_local_rank_in_a_database_is_null_and_told(tmp_path: Path) -> None:
    output = database_capture(tmp_path)
    write_analysis_db(output / "analysis.db", {"step50": OPS}, {"step50": LINKS}, {"50": STEP_ROW})
    with sqlite3.connect(output / "analysis.db") as base:
        base.execute("UPDATE CommAnalyzerMatrix SET dst_rank = '99999999' WHERE dst_rank = '1'")
    base.close()
    tables = read(output)
    assert sorted(tables.links["dst_local"].to_pylist(), key=str) == [0, None, None]
    assert [reason(problem) for problem in tables.problems] == ["left out: 2 link ends without a rank"]


def test_an_operator_without_a_group_in_a_database_is_in_none(tmp_path: Path) -> None:
    output = database_capture(tmp_path)
    profiler_db(output / "ascend_pytorch_profiler_0.db")
    with sqlite3.connect(output / "ascend_pytorch_profiler_0.db") as base:
        base.execute("UPDATE COMMUNICATION_OP SET groupName = NULL")
    base.close()
    assert set(read(output).collectives["group"].to_pylist()) == {""}
