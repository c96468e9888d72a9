"""A time or a size below 0 is damage in every form of a capture: null and told, whoever wrote it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from cluster_analysis.sources.rank import read_rank
from cluster_analysis.tables.rank_tables import RankTables
from tests.analysis.said import reason
from tests.analysis.sources.builders import (
    LINKS,
    OPS,
    OUTPUT,
    STEP_ROW,
    source_of,
    step_csv,
    write_analysis_db,
    write_capture,
    write_info,
)


def tables_of_damaged_database(tmp_path: Path, damage: str) -> RankTables:
    """Read a rank's analysis.db after `UPDATE damage`."""
    output = tmp_path / "rank0_ascend_pt" / OUTPUT
    output.mkdir(parents=True)
    write_info(output.parent, 0)
    write_analysis_db(output / "analysis.db", {"step50": OPS}, {"step50": LINKS}, {"50": STEP_ROW})
    with sqlite3.connect(output / "analysis.db") as base:
        base.execute(f"UPDATE {damage}")
    base.close()
    return read_rank(source_of(output.parent))


@pytest.mark.parametrize(
    ("file", "positive", "table", "column"),
    [
        ("step_trace_time.csv", "8873.75", "steps", "computing_us"),
        ("communication.json", '"Elapse Time(ms)": 79.08952021875', "collectives", "elapse_us"),
        ("communication.json", '"Transit Size(MB)": 20.0,', "collectives", "hccs_bytes"),
        ("communication_matrix.json", '"Transit Time(ms)": 2.125', "links", "time_us"),
    ],
)
def test_a_value_below_0_in_a_text_is_null_and_told(
    tmp_path: Path, file: str, positive: str, table: str, column: str
) -> None:
    capture = write_capture(tmp_path, 0)
    path = capture / OUTPUT / file
    text = path.read_text()
    assert positive in text
    head, _, number = positive.rpartition(" ")
    path.write_text(text.replace(positive, f"{head} -{number}".strip(), 1))
    tables = read_rank(source_of(capture))
    (problem,) = tables.problems
    assert (problem.file, reason(problem)) == (file, "left out: 1 value below 0")
    assert getattr(tables, table)[column].null_count == 1


@pytest.mark.parametrize(
    ("damage", "table", "column"),
    [
        ("StepTraceTime SET computing = -1", "steps", "computing_us"),
        ("CommAnalyzerTime SET elapse_time = -1 WHERE rowid = 1", "collectives", "elapse_us"),
        ("CommAnalyzerMatrix SET transit_size = -1 WHERE rowid = 1", "links", "size_bytes"),
    ],
)
def test_a_value_below_0_in_a_database_is_null_and_told(
    tmp_path: Path, damage: str, table: str, column: str
) -> None:
    tables = tables_of_damaged_database(tmp_path, damage)
    assert [reason(problem) for problem in tables.problems] == ["left out: 1 value below 0"]
    assert getattr(tables, table)[column].null_count == 1


ZEROS = (0.0,) * len(STEP_ROW)


def test_a_step_of_nothing_but_zeros_was_not_measured_and_is_told(tmp_path: Path) -> None:
    capture = write_capture(tmp_path, 0, steps=step_csv({"50": STEP_ROW, "51": ZEROS}))
    tables = read_rank(source_of(capture))
    assert tables.steps["step"].to_pylist() == [50]
    assert [reason(problem) for problem in tables.problems] == ["left out: 1 row without a time"]


def test_a_step_of_nothing_but_zeros_in_a_database_was_not_measured_either(tmp_path: Path) -> None:
    zeros = ", ".join(
        f"{name} = 0" for name in ("computing", "communication_not_overlapped", "communication", "free")
    )
    tables = tables_of_damaged_database(tmp_path, f"StepTraceTime SET {zeros}")
    assert tables.steps.num_rows == 0
    assert "left out: 1 row without a time" in [reason(problem) for problem in tables.problems]


def test_steps_of_nothing_but_zeros_are_no_step_times(tmp_path: Path) -> None:
    capture = write_capture(tmp_path, 0, steps=step_csv({"50": ZEROS}))
    (problem,) = read_rank(source_of(capture)).problems
    assert problem.why.kind == "no_step_in_it"


def test_differences_may_be_below_0(tmp_path: Path) -> None:
    row = (*STEP_ROW[:4], -1.5, -2.5, 0, -3.5)
    capture = write_capture(tmp_path, 0, steps=step_csv({"50": row}))
    path = capture / OUTPUT / "communication.json"
    document = json.loads(path.read_text())
    for op in document["step50"]["collective"].values():
        op["Communication Time Info"]["Idle Time(ms)"] = -0.5
    path.write_text(json.dumps(document))
    tables = read_rank(source_of(capture))
    assert tables.problems == ()
    assert tables.steps["free_us"].to_pylist() == [-1.5]
    assert -500.0 in tables.collectives["idle_us"].to_pylist()


@pytest.mark.parametrize(
    ("file", "key", "told"),
    [
        ("communication.json", "Elapse Time(ms)", "3 of 3 operators lack their start or length"),
        ("communication.json", "Start Timestamp(us)", "3 of 3 operators lack their start or length"),
        ("communication_matrix.json", "Transit Time(ms)", "3 of 3 links lack their size or time"),
        ("communication_matrix.json", "Transit Size(MB)", "3 of 3 links lack their size or time"),
    ],
)
def test_a_value_that_a_text_does_not_hold_is_told(tmp_path: Path, file: str, key: str, told: str) -> None:
    capture = write_capture(tmp_path, 0)
    path = capture / OUTPUT / file
    path.write_text(path.read_text().replace(key, key.lower()))
    assert told in [reason(problem) for problem in read_rank(source_of(capture)).problems]


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("StepTraceTime SET computing = NULL", "left out: 1 value without a number"),
        ("CommAnalyzerTime SET elapse_time = NULL WHERE rowid = 1", "left out: 1 value without a number"),
        (
            "CommAnalyzerTime SET start_timestamp = NULL WHERE rowid = 1",
            "left out: 1 start time stamp without a number",
        ),
        ("CommAnalyzerMatrix SET transit_time = NULL WHERE rowid = 1", "left out: 1 value without a number"),
    ],
)
def test_a_value_that_a_database_does_not_hold_is_told(tmp_path: Path, damage: str, told: str) -> None:
    tables = tables_of_damaged_database(tmp_path, damage)
    assert [reason(problem) for problem in tables.problems] == [told]


def test_an_empty_step_time_is_told(tmp_path: Path) -> None:
    capture = write_capture(tmp_path, 0, steps=step_csv({"50": ("", *STEP_ROW[1:])}))  # type: ignore[dict-item]
    (problem,) = read_rank(source_of(capture)).problems
    assert reason(problem) == "left out: 1 cell of column Computing without a number"
