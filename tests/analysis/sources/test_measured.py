"""A time or a size below 0 is damage in every form of a capture: null and told, whoever wrote it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_analysis.sources.compiled.reader import CHOICE
from cluster_analysis.sources.rank import read_ranks
from cluster_analysis.tables.model import Selection
from cluster_analysis.tables.rank_tables import RankTables
from cluster_reduce.communication import reduce_communication
from cluster_run.ids import Step
from tests.analysis.one_rank import read_rank
from tests.analysis.said import reason
from tests.analysis.sources.builders import (
    GROUP,
    LINKS,
    OPS,
    OUTPUT,
    STEP_HEADER,
    STEP_ROW,
    LinkRow,
    Op,
    source_of,
    step_csv,
    write_analysis_db,
    write_capture,
)
from tests.analysis.sources.hand_made_databases import BEGIN, NS, analysed, changed, database_capture, read
from tests.analysis.sources.test_r1 import HEAD
from tests.analysis.sources.test_r1 import read as read_r1

LEFT_OUT = "left out: 1 value below 0, or larger than any can be"


def tables_of_damaged_database(tmp_path: Path, damage: str) -> RankTables:
    """Read a rank's analysis.db after `UPDATE damage`."""
    return read(analysed(tmp_path, f"UPDATE {damage}"))


@pytest.mark.parametrize(
    ("file", "positive", "table", "column"),
    [
        ("step_trace_time.csv", "8873.75", "steps", "computing_us"),
        ("communication.json", '"Elapse Time(ms)": 79.08952021875', "collectives", "elapse_us"),
        ("communication.json", '"Transit Size(MB)": 20.0,', "collectives", "hccs_bytes"),
        ("communication_matrix.json", '"Transit Time(ms)": 2.125', "links", "time_us"),
    ],
)
@pytest.mark.parametrize("bad", ["-{}", "9e29"])
def test_a_value_that_cannot_be_in_a_text_is_null_and_told(
    tmp_path: Path, file: str, positive: str, table: str, column: str, bad: str
) -> None:
    capture = write_capture(tmp_path, 0)
    path = capture / OUTPUT / file
    text = path.read_text()
    assert positive in text
    head, _, number = positive.rstrip(",").rpartition(" ")
    path.write_text(text.replace(positive.rstrip(","), f"{head} {bad.format(number)}".strip(), 1))
    tables = read_rank(source_of(capture))
    (problem,) = tables.problems
    assert (problem.file, reason(problem)) == (file, LEFT_OUT)
    assert getattr(tables, table)[column].null_count == 1


@pytest.mark.parametrize(
    ("damage", "table", "column"),
    [
        ("StepTraceTime SET computing = -1", "steps", "computing_us"),
        ("StepTraceTime SET computing = 1e30", "steps", "computing_us"),
        ("CommAnalyzerTime SET elapse_time = -1 WHERE rowid = 1", "collectives", "elapse_us"),
        ("CommAnalyzerMatrix SET transit_size = -1 WHERE rowid = 1", "links", "size_bytes"),
    ],
)
def test_a_value_that_cannot_be_in_a_database_is_null_and_told(
    tmp_path: Path, damage: str, table: str, column: str
) -> None:
    tables = tables_of_damaged_database(tmp_path, damage)
    assert [reason(problem) for problem in tables.problems] == [LEFT_OUT]
    assert getattr(tables, table)[column].null_count == 1


@pytest.mark.parametrize("preparing", [1726054679554437.8, -1726054679554438.8])
def test_preparing_that_is_a_point_in_time_is_no_time(tmp_path: Path, preparing: float) -> None:
    header = f"{STEP_HEADER},Preparing"
    steps = step_csv({"": (*STEP_ROW, preparing)}, header)
    tables = read_rank(source_of(write_capture(tmp_path, 0, steps=steps)))
    assert tables.steps["preparing_us"].to_pylist() == [None]
    tables = tables_of_damaged_database(tmp_path, f"StepTraceTime SET preparing = {preparing}")
    assert tables.steps["preparing_us"].to_pylist() == [None]


@pytest.mark.parametrize(
    ("text", "sql", "told"),
    [
        (('"Transit Time(ms)": 2.125', '"Transit Time(ms)": 0'), "transit_time = 0", "a size and no time"),
        (
            ('"Transit Size(MB)": 37.781504', '"Transit Size(MB)": 0'),
            "transit_size = 0",
            "a size and no time",
        ),
        (('"Transport Type": "HCCS"', '"Transport Type": ""'), "transport_type = ''", "without a transport"),
    ],
)
def test_a_link_with_a_size_alone_or_a_time_alone_or_without_a_transport_is_told(
    tmp_path: Path, text: tuple[str, str], sql: str, told: str
) -> None:
    capture = write_capture(tmp_path / "text", 0)
    path = capture / OUTPUT / "communication_matrix.json"
    path.write_text(path.read_text().replace(*text, 1))
    database = tables_of_damaged_database(tmp_path, f"CommAnalyzerMatrix SET {sql} WHERE rowid = 1")
    for tables in (read_rank(source_of(capture)), database):
        assert [told in reason(one) for one in tables.problems] == [True]
        n_null = 0 if "transport" in told else 1
        assert tables.links["size_bytes"].null_count == tables.links["time_us"].null_count == n_null


@pytest.mark.parametrize("form", ["compiled", "Python", "database"])
def test_an_operator_that_lasts_longer_than_its_parts_together_has_a_damaged_time_and_that_is_told(
    tmp_path: Path, form: str
) -> None:
    if form == "database":
        tables = tables_of_damaged_database(
            tmp_path, "CommAnalyzerTime SET wait_time = 56.25 WHERE rowid = 1"
        )
    else:
        capture = write_capture(tmp_path, 0)
        path = capture / OUTPUT / "communication.json"
        text = path.read_text().replace('"Elapse Time(ms)": 79', '"Elapse Time(ms)": 19', 1)
        path.write_text(text if form == "compiled" else text.replace("{", '{"x": {}, ', 1))
        tables = read_rank(source_of(capture))
    told = [reason(one) for one in tables.problems if "contradicts" in reason(one)]
    assert told == ["left out: 1 duration whose entry contradicts itself"]
    assert tables.collectives["elapse_us"].null_count == 1
    assert tables.collectives["start_ns"].null_count == 0


def test_parts_that_hardly_ever_add_up_mean_something_else_and_cost_no_time(tmp_path: Path) -> None:
    sources = [source_of(write_capture(tmp_path, rank), rank) for rank in (0, 1)]
    path = Path(sources[0].files["communication"])
    path.write_text(re.sub(r'"Idle Time\(ms\)": [0-9.]+', '"Idle Time(ms)": 0.0', path.read_text()))
    assert reduce_communication(path.read_bytes()), "a host sends columns of it"
    for tables in (*map(read_rank, sources), read_ranks(sources, None, with_spans=False)):
        assert not tables.problems
        assert tables.collectives["elapse_us"].null_count == 0


ZEROS = (0.0,) * len(STEP_ROW)


def test_links_of_other_steps_than_the_operators_are_told(tmp_path: Path) -> None:
    tables = tables_of_damaged_database(tmp_path, "CommAnalyzerMatrix SET step = NULL")
    assert [one.kind for one in tables.problems] == ["no_link_in_it"]
    capture = write_capture(tmp_path / "text", 0, links={"step51": LINKS})
    (problem,) = read_rank(source_of(capture)).problems
    assert (problem.kind, problem.file) == ("no_link_in_it", "communication_matrix.json")


def test_a_group_that_carried_nothing_needs_no_link(tmp_path: Path) -> None:
    """As of operators that only wait, or whose tasks are not recorded."""
    silent = Op("hcom_allReduce__612_0_1@5862276093215481612", transit=0.0, packets={})
    capture = write_capture(tmp_path, 0, ops={"step50": (*OPS, silent)}, links={"step50": LINKS})
    assert read_rank(source_of(capture)).problems == ()


@pytest.mark.parametrize("row", [ZEROS, (0, *STEP_ROW[1:])])
def test_a_step_in_which_a_device_computed_nothing_was_not_measured_and_is_told(
    tmp_path: Path, row: tuple[float, ...]
) -> None:
    capture = write_capture(tmp_path, 0, steps=step_csv({"50": STEP_ROW, "51": row}))
    tables = read_rank(source_of(capture))
    assert tables.steps["step"].to_pylist() == [50]
    told = "left out: 1 row in which the device computed nothing"
    assert [reason(problem) for problem in tables.problems] == [told]


@pytest.mark.parametrize("column", [1, 2, 3])
@pytest.mark.parametrize("in_database", [True, False])
def test_a_step_whose_communication_is_not_the_sum_of_its_parts_is_left_out_and_told(
    tmp_path: Path, column: int, *, in_database: bool
) -> None:
    """Profilers take one part from the other two, so one of the cells is damaged."""
    row = [*STEP_ROW]
    row[column] += 2_000.0
    if in_database:
        tables = read(analysed(tmp_path, row=tuple(row)))
    else:
        tables = read_rank(source_of(write_capture(tmp_path, 0, steps=step_csv({"50": STEP_ROW, "51": row}))))
    assert tables.steps["step"].to_pylist() == ([] if in_database else [50])
    assert "left out: 1 step whose entry contradicts itself" in [
        reason(problem) for problem in tables.problems
    ]


def test_a_step_in_which_nothing_was_computed_in_a_database_was_not_measured_either(tmp_path: Path) -> None:
    tables = tables_of_damaged_database(tmp_path, "StepTraceTime SET computing = 0")
    assert tables.steps.num_rows == 0
    told = "left out: 1 row in which the device computed nothing"
    assert told in [reason(problem) for problem in tables.problems]


def test_steps_of_nothing_but_zeros_are_no_step_times(tmp_path: Path) -> None:
    capture = write_capture(tmp_path, 0, steps=step_csv({"50": ZEROS}))
    (problem,) = read_rank(source_of(capture)).problems
    assert problem.why.kind == "no_step_in_it"


def test_differences_may_be_below_0(tmp_path: Path) -> None:
    row = (*STEP_ROW[:4], -1.5, -2.5, sum(STEP_ROW[:2]) + 1.0, -3.5)
    capture = write_capture(tmp_path, 0, steps=step_csv({"50": row}))
    path = capture / OUTPUT / "communication.json"
    document = json.loads(path.read_text())
    for op in document["step50"]["collective"].values():
        op["Communication Time Info"].update({"Idle Time(ms)": -0.5, "Elapse Time(ms)": 5.375})
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
        ("StepTraceTime SET computing = 'much'", "left out: 1 value without a number"),
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


# A whole file of the right form that lacks what the rank's other files speak of is told.
NO_OPERATOR = "no operator of step 50, which communicated for 106 ms"


def reasons(tables: RankTables) -> list[tuple[str, str]]:
    return [(problem.file, reason(problem)) for problem in tables.problems]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"step50": {}}',
        '{"step50": {"p2p": {}, "collective": {}}}',
        '{"step50": {"p2p": {}, "collective": {"hcom_allReduce__1_0_0@1": {}}}}',
        '{"step49": {"p2p": {}, "collective": {}}, "Total Op Info": {}}',
    ],
)
def test_a_communication_file_without_operators_is_told_where_the_step_communicated(
    tmp_path: Path, text: str
) -> None:
    capture = write_capture(tmp_path, 0)
    (capture / OUTPUT / "communication.json").write_text(text)
    assert reasons(read_rank(source_of(capture))) == [("communication.json", NO_OPERATOR)]


def test_one_step_without_operators_among_others_is_told(tmp_path: Path) -> None:
    steps = step_csv({"49": STEP_ROW, "50": STEP_ROW, "51": STEP_ROW})
    ops, links = {"step49": OPS, "step51": OPS}, {"step49": LINKS, "step51": LINKS}
    capture = write_capture(tmp_path, 0, steps=steps, ops=ops, links=links)
    tables = read_rank(source_of(capture))
    assert reasons(tables) == [("communication.json", NO_OPERATOR)]
    selected = read_rank(source_of(capture), Selection(steps=frozenset({Step(51)})))
    assert reasons(selected) == [], "the other steps were not asked for"


def test_a_step_that_did_not_communicate_needs_no_operator(tmp_path: Path) -> None:
    silent = (8873.75, 0, 0, 0, 25744.05, 34617.8, 0, 0)
    capture = write_capture(
        tmp_path, 0, steps=step_csv({"49": silent, "50": STEP_ROW}), ops={"step50": OPS, "step49": ()}
    )
    assert reasons(read_rank(source_of(capture))) == []


def test_a_database_without_operators_is_told_where_the_step_communicated(tmp_path: Path) -> None:
    output = database_capture(tmp_path)
    write_analysis_db(output / "analysis.db", {}, {"step50": LINKS}, {"50": STEP_ROW})
    assert reasons(read_rank(source_of(output.parent))) == [("analysis.db", NO_OPERATOR)]


def test_a_matrix_without_links_is_told_where_the_rank_communicated(tmp_path: Path) -> None:
    capture = write_capture(tmp_path, 0)
    (capture / OUTPUT / "communication_matrix.json").write_text("{}")
    assert reasons(read_rank(source_of(capture))) == [
        (
            "communication_matrix.json",
            "it holds no link of 1 of 1 group that carried something, each step counted",
        )
    ]


# What a file holds more than once is told apart or left out and told: never added up, never one of them.
def test_rows_of_several_devices_in_a_database_are_nobodys_and_told(tmp_path: Path) -> None:
    output = database_capture(tmp_path)
    write_analysis_db(
        output / "analysis.db", {"step50": OPS}, {"step50": LINKS}, {"50": STEP_ROW, "51": STEP_ROW}
    )
    changed(output / "analysis.db", "INSERT INTO StepTraceTime SELECT 5, '50', 7, 3, 4, 7, 7, 16, 1, 2, 7")
    tables = read(output)
    assert tables.steps["step"].to_pylist() == [51]
    assert [reason(problem) for problem in tables.problems] == [
        "it has 2 rows of one step, from several devices or windows that cannot be told apart"
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
    begins_ns = ((7, BEGIN), (8, BEGIN + 100 * NS))
    changed(
        output / "ascend_mindspore_profiler_0.db",
        "CREATE TABLE STEP_TIME (id INTEGER, startNs INTEGER, endNs INTEGER)",
        *(f"INSERT INTO STEP_TIME VALUES ({step}, {begin}, {begin + 99 * NS})" for step, begin in begins_ns),
    )
    return output


def at(microseconds: int) -> str:
    """A start, as text, so long after the first step began."""
    return f"{(BEGIN + microseconds * NS) / 1000:.3f}"


@pytest.mark.parametrize("column", ["hccl_op_name", "group_name"])
@pytest.mark.parametrize("table", ["CommAnalyzerBandwidth", "CommAnalyzerMatrix"])
def test_names_of_operators_that_mindspore_has_in_one_table_only_are_told(
    tmp_path: Path, table: str, column: str
) -> None:
    ops = [Op(f"hcom_allReduce__210_{number}_1@{GROUP}", start=at(10 + number)) for number in range(4)]
    links = tuple(LinkRow(one.name, 0, 1, op_name=None) for one in ops)
    output = mindspore_capture(tmp_path, *ops, links=links)
    whole = read(output)
    changed(output / "communication_analyzer.db", f"UPDATE {table} SET {column} = 'x' WHERE rowid % 4 = 1")
    told = [reason(one) for one in read(output).problems if one not in whole.problems]
    assert len(told) == 1
    assert "that no operator of the same database has" in told[0]


def test_a_transport_without_a_name_is_none_of_those_that_have_one(tmp_path: Path) -> None:
    op = Op(f"hcom_allReduce__210_0_1@{GROUP}", start=at(10))
    output = mindspore_capture(
        tmp_path, op, links=tuple(LinkRow(op.name, 0, n, op_name=None) for n in (1, 2))
    )
    changed(
        output / "communication_analyzer.db",
        "UPDATE CommAnalyzerMatrix SET transport_type = NULL WHERE rowid = 1",
    )
    links = read(output).links.to_pylist()
    assert {(row["dst_local"], row["transport"]) for row in links} == {(1, None), (2, "HCCS")}


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


@pytest.mark.parametrize("form", ["text", "database"])
@pytest.mark.parametrize(("column", "name"), [(0, "computing"), (4, "free")])
def test_a_step_with_a_time_that_is_shorter_than_what_lies_within_is_left_out_and_told(
    tmp_path: Path, form: str, column: int, name: str
) -> None:
    """What computing covers lies within computing, and the stage within the device's time."""
    row = [*STEP_ROW]
    row[column] = 1.0
    if form == "text":
        steps = step_csv({"50": STEP_ROW, "51": row})
        tables = read_rank(source_of(write_capture(tmp_path, 0, steps=steps)))
    else:
        tables = tables_of_damaged_database(tmp_path, f"StepTraceTime SET {name} = 1.0 WHERE rowid = 1")
    assert "left out: 1 step whose entry contradicts itself" in [reason(one) for one in tables.problems]
    assert 1.0 not in tables.steps[f"{name}_us"].to_pylist()


def stage_of_communication(row: Sequence[float]) -> tuple[float, ...]:
    """A step of MindSpore: its stage lasts from the first communication to the last."""
    return (*row[:5], row[5] - 2_000.0, *row[6:])


@pytest.mark.parametrize(("writer", "n_steps"), [("ascend_ms", 2), ("ascend_pt", 1)])
def test_a_stage_that_is_shorter_than_the_devices_time_contradicts_it_in_files_of_torch_npu_alone(
    tmp_path: Path, writer: str, n_steps: int
) -> None:
    steps = step_csv({"50": STEP_ROW, "51": stage_of_communication(STEP_ROW)})
    capture = write_capture(
        tmp_path, 0, steps=steps, suffix=writer,
        ops=dict.fromkeys(("step50", "step51"), OPS), links=dict.fromkeys(("step50", "step51"), LINKS),
    )  # fmt: skip
    tables = read_rank(source_of(capture))
    assert tables.steps.num_rows == n_steps
    assert len(tables.problems) == 2 - n_steps


#: A change of `Transit …` of links in a text, and the same in a database.
UNLIKE_LINKS = {
    "another size": ('"Transit Size(MB)": ', "transit_size = transit_size * 10"),
    "another time": ('"Transit Time(ms)": ', "transit_time = transit_time * 10"),
}


@pytest.mark.parametrize("form", ["compiled", "Python", "database"])
@pytest.mark.parametrize("change", UNLIKE_LINKS)
def test_links_that_carried_something_else_than_operators_are_told_and_neither_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, form: str
) -> None:
    text, sql = UNLIKE_LINKS[change]
    if form == "database":
        tables = tables_of_damaged_database(tmp_path, f"CommAnalyzerMatrix SET {sql}")
    else:
        capture = write_capture(tmp_path, 0)
        path = capture / OUTPUT / "communication_matrix.json"
        scaled = re.compile(f"(?<={re.escape(text)})[0-9.]+")
        path.write_text(scaled.sub(lambda number: repr(float(number[0]) * 10), path.read_text()))
        if form == "Python":
            monkeypatch.setenv(CHOICE, "python")
        tables = read_rank(source_of(capture))
    (problem,) = tables.problems
    assert (problem.kind, problem.advice) == ("links_differ", "parse_again")
    for column in (tables.links["size_bytes"], tables.links["time_us"], tables.collectives["hccs_bytes"]):
        assert column.null_count == len(column)
    assert tables.collectives["elapse_us"].null_count == 0


def test_links_of_few_groups_that_are_unlike_their_operators_cost_nothing(tmp_path: Path) -> None:
    """In a job on GPUs whose messages were written in the form of torch_npu one group of four was."""
    steps = [f"step{number}" for number in (50, 51, 52)]
    unlike = (replace(LINKS[-1], size=1.0),)
    links = {step: unlike if step == "step50" else LINKS for step in steps}
    rows = step_csv({step.removeprefix("step"): STEP_ROW for step in steps})
    capture = write_capture(tmp_path, 0, ops=dict.fromkeys(steps, OPS), links=links, steps=rows)
    tables = read_rank(source_of(capture))
    assert tables.problems == ()
    assert tables.links["size_bytes"].null_count == 0


def test_links_that_stay_on_the_device_carried_nothing(tmp_path: Path) -> None:
    capture = write_capture(tmp_path, 0)
    path = capture / OUTPUT / "communication_matrix.json"
    path.write_text(path.read_text().replace('"HCCS"', '"LOCAL"'))
    assert [one.kind for one in read_rank(source_of(capture)).problems] == ["links_differ"]


KERNELS = "OP Type,Core Type,Count,Total Time(us)\nMatMulV3,AI_CORE,3,{}\nAdd,AI_VECTOR_CORE,1,{}\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            KERNELS.format(1e5, 2),
            "left out: 2 rows of kernels that took more than ten times what the steps computed: "
            "one file has another unit, or is of another run",
        ),
        (
            KERNELS.format(5e3, 2) + "MatMulV3,AI_CORE,3,4e3\n",
            "left out: 2 rows of kinds of kernels that it has more than once",
        ),
    ],
)
def test_kernels_that_the_steps_contradict_or_that_are_there_twice_are_nobodys_and_told(
    tmp_path: Path, text: str, told: str
) -> None:
    capture = write_capture(tmp_path, 0)
    (capture / OUTPUT / "op_statistic.csv").write_text(text)
    tables = read_rank(source_of(capture))
    assert [(one.file, reason(one)) for one in tables.problems] == [("op_statistic.csv", told)]
    assert tables.operators.num_rows < 2
