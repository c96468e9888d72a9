"""A profiler that calls a column otherwise: what is judged by it is never healthy, and the file is named."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_analysis.cli import main as analyse
from cluster_analysis.sources.text.step_trace_csv import COLUMNS, DATABASE_COLUMNS
from cluster_analysis.tables.schema import JUDGED_STEPS, NEEDED_STEPS
from cluster_simulate.api import Fault, JobSpec, parse_scenario, simulate, write_run

SPEC = JobSpec(tp=2, pp=1, dp=8, microbatches=2, steps=5, segments=1, ranks_per_host=4)
LATE_HOST = (parse_scenario("slow_host:1.1@2"),)


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
    write_run(simulate(SPEC, LATE_HOST, 5), run, form, "pt")
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
    spec = replace(SPEC, dp=4, ranks_per_host=2, steps=4)
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
    write_run(simulate(SPEC, LATE_HOST, 5), run, "db", "pt")
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
