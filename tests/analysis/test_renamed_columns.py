"""A profiler that calls a column otherwise: what is judged by it is never healthy, and the file is named."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from cluster_analysis.cli import main as analyse
from cluster_analysis.sources.text.kernel_details_csv import communication_of, read_kernels
from cluster_analysis.sources.text.step_trace_csv import COLUMNS, DATABASE_COLUMNS
from cluster_analysis.tables.schema import JUDGED_STEPS, NEEDED_STEPS
from cluster_reduce.form import SUFFIX
from cluster_reduce.sums.kernel_details import reduce_kernel_details
from cluster_simulate.api import Fault, JobSpec, SimulatedJob, parse_scenario, simulate, write_run
from tests.analysis.one_rank import read_rank
from tests.analysis.said import reason
from tests.analysis.sources.builders import OUTPUT, source_of, write_capture

SPEC = JobSpec(tp=1, pp=1, dp=8, microbatches=2, steps=5, segments=1, ranks_per_host=2)


@cache
def late_host() -> SimulatedJob:
    return simulate(SPEC, (parse_scenario("slow_host:1.1@2"),), 5)


def _renamed_in_text(run: Path, column: str) -> str:
    name = COLUMNS[column]
    for path in run.rglob("step_trace_time.csv"):
        header, rows = path.read_text().split("\n", 1)
        cells = [f"{cell} (us)" if cell == name else cell for cell in header.split(",")]
        path.write_text("\n".join([",".join(cells), rows]))
    return name


def _renamed_in_databases(run: Path, column: str) -> str:
    name = DATABASE_COLUMNS[column]
    for path in run.rglob("analysis.db"):
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(f'ALTER TABLE StepTraceTime RENAME COLUMN "{name}" TO "{name}_us"')
    return name


#: What is advised: to collect or parse it again would bring the same.
MAY_BE_CALLED_OTHERWISE = "this version of the profiler may call it otherwise"
#: Without computing times the steps are those of the profiler's own database: nothing is lost.
CASES = [("text", one) for one in NEEDED_STEPS]
CASES += [("db", one) for one in NEEDED_STEPS if one != "computing_us"]


@pytest.mark.parametrize(("form", "column"), CASES)
def test_a_job_whose_step_times_lack_a_column_that_is_judged_is_not_healthy_and_the_files_are_named(
    tmp_path: Path, form: str, column: str
) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    write_run(late_host(), run, form, "pt")
    name = (_renamed_in_text if form == "text" else _renamed_in_databases)(run, column)
    (run / "manifest.json").unlink(missing_ok=True)
    assert analyse([str(run), "--output", str(out), "--no-report", "--quiet", "--scheduler", "threads"]) == 3
    found = json.loads((out / "findings.json").read_text())
    # Communication as a whole is only compared with operators: what of it is exposed stands for it.
    assert found["verdict"] != "healthy" or column not in JUDGED_STEPS
    named = [one for one in found["problems"] if name in one["reason"]]
    assert len({one["rank"] for one in named}) == SPEC.n_ranks
    assert {one["advice"].partition(":")[0] for one in named} == {MAY_BE_CALLED_OTHERWISE}


@pytest.mark.parametrize(
    ("faults", "role", "verdict"),
    [((), "whole", "healthy"), ((parse_scenario("slow_rank:1.3@5"),), "steps alone", "unknown")],
)
def test_r1_files_are_judged_by_what_they_have_and_not_healthy_without_computing_times(
    tmp_path: Path, faults: tuple[Fault, ...], role: str, verdict: str
) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    spec = replace(SPEC, tp=2, dp=4, steps=4)
    write_run(simulate(spec, faults, 1), run, "r1", "ms")
    if role == "steps alone":
        for path in run.rglob("ascend_cluster_analyse_*.csv"):
            path.unlink()
    (run / "manifest.json").unlink()
    assert analyse([str(run), "--output", str(out), "--no-report", "--quiet", "--scheduler", "threads"]) == 0
    assert json.loads((out / "findings.json").read_text())["verdict"] == verdict


#: Keys of JSON files that are needed, and columns of tables that decide no step.
RENAMED = [
    ("communication_matrix.json", '"Transit Size(MB)"'),
    ("communication_matrix.json", '"collective"'),
    ("communication.json", '"Elapse Time(ms)"'),
    ("communication.json", '"collective"'),
    ("op_statistic.csv", "Total Time(us)"),
]


@pytest.mark.parametrize(("file", "name"), RENAMED)
def test_of_a_name_that_a_file_lacks_throughout_a_report_is_advised(
    tmp_path: Path, file: str, name: str
) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    write_run(simulate(SPEC, (), 5), run, "text", "pt")
    (run / "manifest.json").unlink()
    for path in run.rglob(file):
        text = path.read_text()
        assert name in text
        path.write_text(text.replace(name, name.replace("T", "Sum of t", 1).replace("coll", "gathered coll")))
    assert analyse([str(run), "--output", str(out), "--no-report", "--quiet", "--scheduler", "threads"]) == 3
    problems = json.loads((out / "findings.json").read_text())["problems"]
    told = {one["advice"].partition(":")[0] for one in problems if one["file"] == file}
    assert told == {MAY_BE_CALLED_OTHERWISE}


def test_databases_without_computing_are_not_healthy(tmp_path: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    write_run(late_host(), run, "db", "pt")
    (run / "manifest.json").unlink()
    for path in run.rglob("analysis.db"):
        path.unlink()
    for path in run.rglob("ascend_pytorch_profiler_*.db"):
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("DELETE FROM COMPUTE_TASK_INFO")
    analyse([str(run), "--output", str(out), "--no-report", "--quiet", "--scheduler", "threads"])
    found = json.loads((out / "findings.json").read_text())
    assert found["verdict"] != "healthy"
    assert any("tells computing from idling" in note for note in found["notes"])


KERNELS = (
    "Step Id,Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)\n"
    "10,0,MatMul_1,MatMulV3,AI_CORE,1764246877073569.640\t,10.5,0\n"
    "10,0,hcom_allReduce__1_0,hcom_allReduce_,HCCL,1764246877074869.640\t,99.0,0\n"
)
MEMORY = (
    "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Device Type\n"
    "PTA,1764246877073569.640,10.5,20.5,NPU:0\n"
)
DATA_LOADER = "Name,Host Total Duration(us)\nenumerate(DataLoader)#next,12.5\n"
#: Columns of files that stand beside others with the same figures, or that decide no step.
BESIDE = {
    "kernel_details.csv": (KERNELS, ("Type", "Accelerator Core", "Name", "Duration(us)")),
    "memory_record.csv": (
        MEMORY,
        ("Component", "Timestamp(us)", "Total Allocated(MB)", "Total Reserved(MB)"),
    ),
    "operator_details.csv": (DATA_LOADER, ("Name", "Host Total Duration(us)")),
}


@pytest.mark.parametrize(
    ("file", "column"), [(file, column) for file, (_, columns) in BESIDE.items() for column in columns]
)
def test_a_column_that_a_file_lacks_is_named_once_though_other_files_hold_the_rest(
    tmp_path: Path, file: str, column: str
) -> None:
    capture = write_capture(tmp_path, 0)
    path, content = capture / OUTPUT / file, BESIDE[file][0]
    path.write_text(content)
    path.with_name("op_statistic.csv").write_text("OP Type,Count,Total Time(us)\nMatMulV3,1,10.5\n")
    assert not read_rank(source_of(capture)).problems
    path.write_text(content.replace(column, f"{column} of all"))
    (problem,) = read_rank(source_of(capture)).problems
    assert (problem.file, column in reason(problem)) == (file, True)


#: Columns of a profiler's database.
IN_DATABASE = [
    ("TASK", "endNs"),
    ("COMPUTE_TASK_INFO", "opType"),
    ("COMMUNICATION_OP", "endNs"),
    ("COMMUNICATION_TASK_INFO", "size"),
    ("STEP_TIME", "startNs"),
]


@pytest.mark.parametrize(("table", "column"), IN_DATABASE)
def test_a_column_that_a_table_of_a_database_lacks_is_named(tmp_path: Path, table: str, column: str) -> None:
    run = tmp_path / "run"
    write_run(simulate(replace(SPEC, dp=2), (), 5), run, "db", "pt")
    capture = next(run.rglob("*_ascend_pt"))
    assert not read_rank(source_of(capture)).problems
    (capture / OUTPUT / "analysis.db").unlink()
    for path in capture.rglob("ascend_pytorch_profiler_*.db"):
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO {column}OfAll")
    told = [reason(one) for one in read_rank(source_of(capture)).problems]
    assert f"it has no column {table}.{column}" in told


@pytest.mark.parametrize("are_columns", [False, True])
def test_calls_are_in_their_steps_however_the_column_of_steps_is_spelled(
    tmp_path: Path, are_columns: bool
) -> None:
    path = tmp_path / "kernel_details.csv"
    path.write_text(KERNELS.replace("Step Id", "Step ID"))
    if are_columns:
        content = reduce_kernel_details(bytes(path))
        path.with_name(path.name + SUFFIX).write_bytes(content)
        path.unlink()
    found = communication_of(read_kernels(path, pytest.fail).calls, 0)
    assert found is not None
    assert found.collectives["step"].to_pylist() == [10]
