"""What a file holds more than once is told apart or left out and told: never added up, never one of them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tests.analysis.said import reason
from tests.analysis.sources.builders import GROUP, LINKS, OPS, STEP_ROW, LinkRow, Op, write_analysis_db
from tests.analysis.sources.hand_made_databases import BEGIN, NS, database_capture, read
from tests.analysis.sources.test_r1 import HEAD
from tests.analysis.sources.test_r1 import read as read_r1


def test_rows_of_several_devices_in_a_database_are_nobodys_and_told(tmp_path: Path) -> None:
    output = database_capture(tmp_path)
    write_analysis_db(
        output / "analysis.db", {"step50": OPS}, {"step50": LINKS}, {"50": STEP_ROW, "51": STEP_ROW}
    )
    with sqlite3.connect(output / "analysis.db") as base:
        base.execute("INSERT INTO StepTraceTime SELECT 5, '50', 7, 7, 7, 7, 7, 7, 7, 7, 7")
    base.close()
    tables = read(output)
    assert tables.steps["step"].to_pylist() == [51]
    assert [reason(problem) for problem in tables.problems] == [
        "left out: 2 rows of steps that it has more than once"
    ]


def test_steps_of_two_sessions_in_one_r1_trace_are_left_out_with_their_operators(tmp_path: Path) -> None:
    head = f"{HEAD},s_0_AllReduce-op3_start_point,s_0_AllReduce-op3_end_point,s_0_AllReduce-op3"
    row = "100,400,300,100,390,0,290,10,110,120,10"
    tables = read_r1(tmp_path, "\n".join([head, *(f"{step},{row}" for step in (1, 2, 1, 3))]) + "\n")
    assert tables.iterations["step"].to_pylist() == [2, 3]
    assert tables.steps["step"].to_pylist() == [2, 3]
    assert tables.collectives["step"].to_pylist() == [2, 3]
    assert "left out: 2 rows of steps that it has more than once" in [reason(one) for one in tables.problems]


def mindspore_capture(root: Path, *ops: Op, links: tuple[LinkRow, ...] = ()) -> Path:
    """A capture without a step column: steps 7 (of 100 µs) and 8, in the database beside it."""
    output = database_capture(root, "rank0_ascend_ms")
    write_analysis_db(
        output / "communication_analyzer.db", {"": ops}, {"": links}, {}, with_step_columns=False
    )
    with sqlite3.connect(output / "ascend_mindspore_profiler_0.db") as base:
        base.execute("CREATE TABLE STEP_TIME (id INTEGER, startNs INTEGER, endNs INTEGER)")
        for number, begin in ((7, 0), (8, 100)):
            begin_ns = BEGIN + begin * NS
            base.execute("INSERT INTO STEP_TIME VALUES (?, ?, ?)", (number, begin_ns, begin_ns + 99 * NS))
    base.close()
    return output


def at(microseconds: int) -> str:
    """A start, as text, so long after the first step began."""
    return f"{(BEGIN + microseconds * NS) / 1000:.3f}"


def test_an_operator_of_one_name_in_two_steps_is_in_both_and_nobody_says_what_each_carried(
    tmp_path: Path,
) -> None:
    name, other = f"AllReduce-op3@{GROUP}", f"AllReduce-op4@{GROUP}"
    ops = (Op(name, at(10), elapse=0.02), Op(name, at(110), elapse=0.03), Op(other, at(120)))
    links = (LinkRow(name, 0, 1, op_name=None), LinkRow(other, 0, 1, op_name=None))
    tables = read(mindspore_capture(tmp_path, *ops, links=links))
    found = [(row["step"], row["op_name"], row["elapse_us"]) for row in tables.collectives.to_pylist()]
    assert found == [
        (7, "AllReduce-op3", 20.0),
        (8, "AllReduce-op3", 30.0),
        (8, "AllReduce-op4", OPS[0].elapse * 1000),
    ]
    assert [value is None for value in tables.collectives["hccs_bytes"].to_pylist()] == [True, True, False]
    assert tables.packets["n_packets"].to_pylist() == [12]
    assert set(tables.links["op_name"].to_pylist()) <= {"AllReduce-op4", None}
    assert "left out: 1 name that several operators share, in what was carried" in [
        reason(problem) for problem in tables.problems
    ]


def test_operators_that_all_began_outside_of_the_steps_are_told(tmp_path: Path) -> None:
    ops = (Op(f"AllReduce-op3@{GROUP}", at(5000)), Op(f"AllReduce-op4@{GROUP}", at(6000)))
    tables = read(mindspore_capture(tmp_path, *ops))
    assert tables.collectives.num_rows == 0
    assert "left out: 2 operators that began in none of the steps of STEP_TIME" in [
        reason(problem) for problem in tables.problems
    ]
