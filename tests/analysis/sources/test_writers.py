"""What the sources of the profilers can write, held against the capture as it was."""

from __future__ import annotations

import itertools
import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster_analysis.api import Run, analyse
from cluster_analysis.discovery.discover import discover
from tests.analysis.one_rank import read_rank
from tests.analysis.runs import captures, simulated
from tests.analysis.sources.builders import OUTPUT, write_capture, write_info
from tests.analysis.sources.hand_made_databases import changed
from tests.analysis.sources.twins import assert_twins

FOUR_RANKS = {"tp": 2, "pp": 1, "dp": 2, "steps": 3, "microbatches": 2}
COMMUNICATION = "communication.json"
START = re.compile(r'(?<="Start Timestamp\(us\)": )[0-9.]+')


def said_of(run: Path) -> Run:
    return analyse(run, scheduler="threads")


def call_operators(run: Path, change: Callable[[str], str]) -> None:
    for path in run.rglob(COMMUNICATION):
        document = json.loads(path.read_text())
        for levels in document.values():
            for name, operators in levels.items():
                levels[name] = {change(key): one for key, one in operators.items()}
        path.write_text(json.dumps(document))


@pytest.mark.parametrize("group", ["", "@", "@N/A"])
def test_operators_that_name_no_group_are_matched_over_no_ranks_and_told(tmp_path: Path, group: str) -> None:
    run = simulated(tmp_path / "run", **FOUR_RANKS)
    call_operators(run, lambda key: re.sub("@.*", group, key))
    result = said_of(run)
    assert result.verdict == "unknown"
    (note,) = (one for one in result.document.notes if one.kind == "no_groups_named")
    assert dict(note.values) == {"ranks": (0, 1, 2, 3)}
    assert set(result.collectives["n_ranks"]) == {1}


@pytest.mark.parametrize(
    ("operator", "verdict"), [("allReduce__971", "healthy"), ("reduceScatter", "unknown")]
)
def test_operators_of_no_group_leave_the_verdict_open_where_they_take_much_of_the_step(
    tmp_path: Path, operator: str, verdict: str
) -> None:
    run = simulated(tmp_path / "run", tp=2, pp=1, dp=4, steps=3, microbatches=2)
    call_operators(run, lambda key: re.sub("@.*", "@N/A", key) if operator in key else key)
    result = said_of(run)
    assert result.verdict == verdict
    assert "no_groups_named" in {one.kind for one in result.document.notes}


def test_links_that_stand_under_an_operator_are_of_no_group(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", **FOUR_RANKS)
    call_operators(run, lambda key: key.partition("@")[0])
    for path in run.rglob("communication_matrix.json"):
        path.write_text(re.sub(r'@([0-9]+)"', r'@hcom_allReduce__\1_0_1"', path.read_text()))
    result = said_of(run)
    assert result.document.problems == ()
    assert "no_communication_matrix" in {one.kind for one in result.document.notes}


def test_what_passed_between_two_windows_is_no_part_of_a_step(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", **FOUR_RANKS)
    alone = said_of(run)
    for capture in captures(run):
        again = capture.with_name(
            re.sub(r"_(\d{17})_", lambda stamp: f"_{int(stamp[1]) + 60_000}_", capture.name)
        )
        shutil.copytree(capture, again)
        path = again / "ASCEND_PROFILER_OUTPUT" / COMMUNICATION
        path.write_text(START.sub(lambda start: f"{float(start[0]) + 6e7:.3f}", path.read_text()))
    both = said_of(run)
    assert len(both.document.run.steps) == 2 * len(alone.document.run.steps)
    assert both.document.run.step_ms == pytest.approx(alone.document.run.step_ms, rel=0.01)
    assert both.verdict == alone.verdict


def test_a_step_may_have_a_number_of_more_than_32_bits(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", **FOUR_RANKS)
    before = said_of(run)
    added = 1 << 32
    for path in run.rglob("communication*.json"):
        path.write_text(
            re.sub(r'"step(\d+)"', lambda step: f'"step{int(step[1]) + added}"', path.read_text())
        )
    for path in run.rglob("step_trace_time.csv"):
        rows = [line.split(",") for line in path.read_text().splitlines()]
        at = rows[0].index("Step")
        for row in rows[1:]:
            row[at] = str(int(row[at]) + added)
        path.write_text("".join(",".join(row) + "\n" for row in rows))
    after = said_of(run)
    assert after.document.run.steps == tuple(step + added for step in before.document.run.steps)
    assert (after.verdict, after.document.run.step_ms) == (before.verdict, before.document.run.step_ms)


def only_profiler_databases(run: Path) -> list[Path]:
    for path in run.rglob("communication_analyzer.db"):
        path.unlink()
    return sorted(run.rglob("ascend_mindspore_profiler_*.db"))


#: Kernels of a second device that the process uses, and of operators that kernels carry out.
OF_ANOTHER_DEVICE = (
    "INSERT INTO TASK (startNs, endNs, deviceId, globalTaskId) "
    "SELECT startNs + 1000, endNs + 90000000, 99, globalTaskId + 100000000 FROM TASK",
    "INSERT INTO COMPUTE_TASK_INFO (name, globalTaskId, taskType, opType) "
    "SELECT name, globalTaskId + 100000000, taskType, opType FROM COMPUTE_TASK_INFO",
)
CARRIERS = (
    "INSERT INTO STRING_IDS VALUES (99001, 'hcom_allReduce_AivKernel'), (99002, 'COMMUNICATION')",
    "INSERT INTO TASK (startNs, endNs, deviceId, globalTaskId) SELECT startNs + 10, endNs, "
    "(SELECT deviceId FROM TASK LIMIT 1), 200000000 + opId FROM COMMUNICATION_OP",
    "INSERT INTO COMPUTE_TASK_INFO (name, globalTaskId, taskType, opType) "
    "SELECT 99001, 200000000 + opId, 99002, 99001 FROM COMMUNICATION_OP",
)
KNOWN_BY_OPERATORS = (
    "UPDATE RANK_DEVICE_MAP SET deviceId = -1",
    "ALTER TABLE COMMUNICATION_OP ADD COLUMN deviceId INTEGER",
    "UPDATE COMMUNICATION_OP SET deviceId = (SELECT MIN(deviceId) FROM TASK)",
)


@pytest.mark.parametrize("changes", [OF_ANOTHER_DEVICE, (*KNOWN_BY_OPERATORS, *OF_ANOTHER_DEVICE), CARRIERS])
def test_kernels_of_another_device_and_of_operators_are_no_computing(
    tmp_path: Path, changes: tuple[str, ...]
) -> None:
    run = simulated(tmp_path / "run", form="db", framework="ms", **FOUR_RANKS)
    path = only_profiler_databases(run)[0]
    source = discover(run).sources[0]
    before = read_rank(source)
    changed(path, *changes)
    after = read_rank(source)
    assert after.problems == before.problems == ()
    for name in ("steps", "collectives", "operators"):
        assert getattr(after, name).equals(getattr(before, name)), name
    assert after.figures["kernels"].equals(before.figures["kernels"])
    assert assert_twins(source, "profiler_db")


def test_a_database_of_several_devices_that_nothing_tells_apart_is_told(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", form="db", framework="ms", **FOUR_RANKS)
    path = only_profiler_databases(run)[0]
    changed(path, "UPDATE RANK_DEVICE_MAP SET deviceId = -1", *OF_ANOTHER_DEVICE)
    tables = read_rank(discover(run).sources[0])
    assert {(one.kind, one.file) for one in tables.problems} == {("several_devices", path.name)}
    assert not tables.steps.num_rows


@pytest.mark.parametrize("end", ["", "AivKernel", "AicpuKernel"])
def test_an_operator_and_the_kernel_that_carries_it_out_are_one_operator(tmp_path: Path, end: str) -> None:
    capture = write_capture(tmp_path, 0)
    (capture / OUTPUT / COMMUNICATION).unlink()
    header = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)"
    name = "hcom_allReduce__210_0_1"
    rows = [f"50,{name},hcom_allReduce_,COMMUNICATION,1736408883732241.500\t,80.5,0"]
    if end:
        rows.append(f"50,hcom_allReduce_{end},{end},COMMUNICATION,1736408883732242.500\t,79.5,0")
    (capture / OUTPUT / "kernel_details.csv").write_text("\n".join([header, *rows, ""]))
    source = discover(tmp_path).sources[0]
    assert read_rank(source).collectives["op_name"].to_pylist() == [name]
    assert assert_twins(source, "kernel_details")


def without_steps(capture: Path) -> None:
    """Write a capture as torch_npu does where a step has no flow to the device: one window, no numbers."""
    for name in (COMMUNICATION, "communication_matrix.json"):
        path = capture / OUTPUT / name
        whole: dict[str, dict[str, object]] = {"p2p": {}, "collective": {}}
        for levels in json.loads(path.read_text()).values():
            for level, operators in levels.items():
                whole[level] |= operators
        path.write_text(json.dumps({"step": whole}))
    path = capture / OUTPUT / "step_trace_time.csv"
    header, *rows = (line.split(",") for line in path.read_text().splitlines())
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    sums = {name: repr(math.fsum(map(float, cells))) for name, cells in columns.items()}
    one = sums | {"Step": "", "Device_id": columns.get("Device_id", ("",))[0]}
    path.write_text("".join(f"{','.join(cells)}\n" for cells in (header, [one[name] for name in header])))


def test_a_rank_without_steps_among_others_with_steps_is_named(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", **FOUR_RANKS)
    without_steps(captures(run)[2])
    result = said_of(run)
    assert result.verdict == "unknown"
    (problem,) = (one for one in result.document.problems if one.kind == "no_common_step")
    assert dict(problem.why.values) == {"ranks": (2,)}


def test_a_capture_of_no_device_is_to_be_profiled_at_another_level(tmp_path: Path) -> None:
    capture = write_capture(tmp_path, 0)
    write_info(capture, 0, level="Level_none")
    for path in (capture / OUTPUT).iterdir():
        path.unlink()
    (capture / OUTPUT / "trace_view.json").write_text("[]")
    tables = read_rank(discover(tmp_path).sources[0])
    assert {one.advice for one in tables.problems} == {"profile_at_level1"}


@pytest.mark.parametrize(
    ("is_of_operators", "factor"),
    [*itertools.product([True, False], [1e-6, 1e-3, 0.1, 10.0, 1e3]), (True, 1.7), (False, 0.6)],
)
def test_a_rank_whose_step_times_and_operators_have_unlike_units_is_not_judged_and_told(
    tmp_path: Path, factor: float, *, is_of_operators: bool
) -> None:
    run = simulated(tmp_path / "run", **FOUR_RANKS)
    output = captures(run)[1] / OUTPUT
    if is_of_operators:
        path = output / COMMUNICATION
        scaled = re.compile(r'(?<=Time\(ms\)": )[0-9.e-]+')
        path.write_text(scaled.sub(lambda ms: repr(float(ms[0]) * factor), path.read_text()))
    else:
        path = output / "step_trace_time.csv"
        header, *rows = (line.split(",") for line in path.read_text().splitlines())
        first = header.index("Computing")
        rows = [[*row[:first], *(repr(float(cell) * factor) for cell in row[first:])] for row in rows]
        path.write_text("".join(f"{','.join(row)}\n" for row in [header, *rows]))
    result = said_of(run)
    assert result.verdict == "unknown"
    problems = {one.kind: one for one in result.document.problems}
    assert {one.rank for one in problems.values()} == {1}
    assert problems.keys() == {"left_out"} | ({"links_differ"} if is_of_operators else set())
    assert problems["left_out"].file == "step_trace_time.csv"
    assert dict(problems["left_out"].why.values)["reason"] == "operators_differ"


@pytest.mark.parametrize("column", ["Computing", "Communication"])
def test_a_rank_of_which_a_part_of_the_step_was_not_recorded_is_not_judged_and_told(
    tmp_path: Path, column: str
) -> None:
    """Its tasks or operators were lost, so that it has a time, and the time is 0."""
    run = simulated(tmp_path / "run", **FOUR_RANKS)
    path = captures(run)[1] / OUTPUT / "step_trace_time.csv"
    header, *rows = (line.split(",") for line in path.read_text().splitlines())
    for row in rows:
        row[header.index(column)] = "0"
    path.write_text("".join(f"{','.join(row)}\n" for row in [header, *rows]))
    result = said_of(run)
    assert result.verdict == "unknown"
    assert {(one.rank, one.file) for one in result.document.problems} == {(1, path.name)}


def test_a_communication_file_that_is_lost_is_told_where_kernels_stand_in_for_it(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", **FOUR_RANKS)
    output = captures(run)[1] / OUTPUT
    (output / COMMUNICATION).unlink()
    (output / "kernel_details.csv").write_text(
        "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us)\n"
        + "".join(
            f"{step},hcom_allReduce__586_0_1,hcom_allReduce_,HCCL,{1e15 + step * 1e6},9e5\n"
            for step in range(20)
        )
    )
    result = said_of(run)
    assert result.verdict == "unknown"
    assert {(one.rank, one.file, one.why.kind) for one in result.document.problems} >= {
        (1, COMMUNICATION, "no_communication_data")
    }
