from __future__ import annotations

from pathlib import Path

import pytest

from cluster_analysis.tables.rank_tables import RankTables
from cluster_run.ids import Step
from tests.analysis.one_rank import metadata_of, read_rank
from tests.analysis.runs import digests
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
from tests.analysis.sources.hand_made_databases import (
    BEGIN,
    NS,
    analysed,
    changed,
    database_capture,
    profiled,
    profiler_db,
    read,
    rows,
)

PROFILER = "ascend_pytorch_profiler_0.db"


def told_of_profiler(tables: RankTables) -> list[str]:
    """What is told of the profiler's own database."""
    return [reason(problem) for problem in tables.problems if problem.file == PROFILER]


def test_a_database_is_never_changed(tmp_path: Path) -> None:
    output = analysed(tmp_path)
    profiler_db(output / PROFILER)
    before = digests(output)
    output.chmod(0o555)
    try:
        assert read(output).collectives.num_rows == len(OPS)
    finally:
        output.chmod(0o755)
    assert digests(output) == before


def test_columns_are_found_by_name_among_others_that_tools_have_added(tmp_path: Path) -> None:
    output = analysed(tmp_path)
    expected = rows(read(output).collectives)
    changed(
        output / "analysis.db",
        "ALTER TABLE CommAnalyzerTime RENAME TO old",
        "CREATE TABLE CommAnalyzerTime AS SELECT 7 AS added, type, step, idle_time, * FROM old",
        "CREATE TABLE connectionCats (connectionId INT, cat)",
    )
    assert rows(read(output).collectives) == expected


def test_step_times_are_recomputed_from_tasks_where_the_table_is_missing(tmp_path: Path) -> None:
    (step,) = read(profiled(tmp_path)).steps.to_pylist()
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


@pytest.mark.parametrize(
    ("damage", "computing_us", "communication_us", "is_idle_known"),
    [
        ("DELETE FROM COMMUNICATION_OP", 30.0, 0.0, True),
        ("DROP TABLE COMMUNICATION_OP", 30.0, None, False),
        ("DELETE FROM COMPUTE_TASK_INFO", None, 35.0, False),
    ],
)
def test_without_its_table_communication_is_not_known_and_is_no_idle_time(
    tmp_path: Path,
    damage: str,
    computing_us: float | None,
    communication_us: float | None,
    *,
    is_idle_known: bool,
) -> None:
    (step,) = read(profiled(tmp_path, damage)).steps.to_pylist()
    assert (step["computing_us"], step["communication_us"]) == (computing_us, communication_us)
    assert (step["free_us"] is not None) == is_idle_known


def test_mindspore_counts_the_stage_from_communication_only(tmp_path: Path) -> None:
    (step,) = read(profiled(tmp_path, framework="ms")).steps.to_pylist()
    assert (step["stage_us"], step["bubble_us"]) == (35.0, 10.0)


def test_a_database_without_steps_is_one_window_called_step_0(tmp_path: Path) -> None:
    tables = read(profiled(tmp_path, steps=False))
    assert tables.steps["step"].to_pylist() == [0]
    assert tables.steps["preparing_us"].to_pylist() == [None]
    assert tables.collectives["step"].to_pylist() == [0, 0]


def test_operators_without_analysis_db_have_times_and_a_group_but_no_sizes(tmp_path: Path) -> None:
    tables = read(profiled(tmp_path))
    first = tables.collectives.to_pylist()[0]
    assert (first["start_ns"], first["elapse_us"]) == (BEGIN + 35 * NS, 25.0)
    assert first["hccs_bytes"] is None
    assert first["group"].isdecimal()
    assert [problem.file for problem in tables.problems] == ["communication_matrix.json"]


def test_operators_of_mindspore_belong_to_the_step_in_which_they_start(tmp_path: Path) -> None:
    output = profiled(tmp_path, framework="ms")
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
    tables = ("CommAnalyzerTime", "CommAnalyzerBandwidth", "CommAnalyzerMatrix")
    changed(output / "analysis.db", *(f"DROP TABLE {table}" for table in tables))
    found = read(output)
    assert (found.steps.num_rows, found.collectives.num_rows, found.problems) == (1, 0, ())
    assert "Level0" in notes_of(found)[0]


@pytest.mark.parametrize("content", [b"", b"not a database", b"SQLite format 3\0" + b"\xff" * 200])
def test_a_damaged_database_is_one_problem_and_no_traceback(tmp_path: Path, content: bytes) -> None:
    output = database_capture(tmp_path)
    (output / "analysis.db").write_bytes(content)
    tables = read(output)
    assert "analysis.db" in {problem.file for problem in tables.problems}
    assert tables.steps.num_rows == 0


def test_a_database_stands_in_for_a_damaged_text_file_which_is_still_told(tmp_path: Path) -> None:
    capture = write_capture(tmp_path, 0)
    good = rows(read_rank(source_of(capture)).collectives)
    write_analysis_db(capture / OUTPUT / "analysis.db", {"step50": OPS}, {"step50": LINKS}, {"50": STEP_ROW})
    (capture / OUTPUT / "communication.json").write_text('{"step50": {')
    tables = read_rank(source_of(capture))
    assert rows(tables.collectives) == good
    assert [reason(problem) for problem in tables.problems] == ["truncated at byte 12"]


def test_sizes_and_groups_are_read_from_meta_data(tmp_path: Path) -> None:
    output = profiled(
        tmp_path,
        "CREATE TABLE META_DATA (name TEXT, value TEXT)",
        "CREATE TABLE HOST_INFO (hostUid TEXT, hostName TEXT)",
        "INSERT INTO HOST_INFO VALUES ('35', 'node7')",
        "INSERT INTO META_DATA VALUES ('distributed_args', "
        '\'{"tensor_model_parallel_size": 2, "world_size": 4}\')',
        "INSERT INTO META_DATA VALUES ('parallel_group_info', "
        '\'{"10.0.0.1%eth0_60000_0_17": {"group_name": "tp", "global_ranks": [0, 1]}}\')',
    )
    tables = read(output)
    metadata = metadata_of(tables)
    assert (metadata.parallel.tp, metadata.world_size, metadata.host_name) == (2, 4, "node7")
    assert metadata.groups[0].group == tables.collectives["group"][0].as_py()


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
    tables = read(profiled(tmp_path, damage))
    files = {PROFILER, "communication_matrix.json", "step_trace_time.csv"}
    assert {problem.file for problem in tables.problems} <= files
    for column in (tables.steps["computing_us"], tables.collectives["elapse_us"], tables.links["time_us"],
                   tables.operators["total_us"]):  # fmt: skip
        assert all(value is None or abs(value) < 1e6 for value in column.to_pylist())


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE TASK SET startNs = 'soon' WHERE globalTaskId = 1",
        "UPDATE TASK SET endNs = NULL",
        "UPDATE TASK SET endNs = startNs - 1 WHERE globalTaskId = 1",
    ],
)
def test_tasks_without_a_time_are_left_out_and_counted(tmp_path: Path, damage: str) -> None:
    output = profiled(tmp_path)
    n_tasks = changed(output / PROFILER, damage)
    tables = read(output)
    parts = "task" if n_tasks == 1 else "tasks"
    assert told_of_profiler(tables) == [f"left out: {n_tasks} {parts} without a time"]
    assert sum(tables.operators["n_calls"].to_pylist()) == 2 - n_tasks


@pytest.mark.parametrize(
    "damage", ["startNs = 'soon'", "endNs = NULL", "endNs = startNs - 1", "startNs = 1.5"]
)
def test_operators_without_a_time_are_left_out_and_counted_once(tmp_path: Path, damage: str) -> None:
    tables = read(profiled(tmp_path, f"UPDATE COMMUNICATION_OP SET {damage} WHERE opName = 2"))
    assert told_of_profiler(tables) == ["left out: 1 operator without a time"]
    assert tables.collectives["op_type"].to_pylist() == ["allreduce"]
    assert tables.steps["communication_us"].to_pylist() == [25.0]


def test_a_damaged_local_rank_in_a_database_is_null_and_told(tmp_path: Path) -> None:
    damage = "UPDATE CommAnalyzerMatrix SET dst_rank = '99999999' WHERE dst_rank = '1'"
    tables = read(analysed(tmp_path, damage))
    assert sorted(tables.links["dst_local"].to_pylist(), key=str) == [0, None, None]
    assert [reason(problem) for problem in tables.problems] == ["left out: 2 link ends without a rank"]


def test_an_operator_without_a_group_in_a_database_is_in_one_of_its_rank_alone(tmp_path: Path) -> None:
    output = profiled(tmp_path, "UPDATE COMMUNICATION_OP SET groupName = NULL")
    tables = read(output)
    assert set(tables.collectives["group"].to_pylist()) == {"rank:0"}
    assert [one.kind for one in tables.notes] == ["no_groups_named"]
