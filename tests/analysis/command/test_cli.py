"""`cluster-analyse` as its users call it: exit codes, what goes where, what it refuses."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cluster_analysis.cli import main
from cluster_run.version import VERSION
from tests.analysis.runs import captures, digests, file_of

COMMAND = (sys.executable, "-m", "cluster_analysis")
#: A second alone, most of a minute where other suites share two processors.
pytestmark = pytest.mark.timeout(300)


Capsys = pytest.CaptureFixture[str]


@pytest.fixture
def run(slow_run: Path, tmp_path: Path) -> Path:
    """A copy of the slow run that may be spoilt; its files keep their times, so the manifest still fits."""
    shutil.copytree(slow_run, tmp_path / "run")
    return tmp_path / "run"


def without_page(run: Path, output: Path, *options: str) -> int:
    return main([str(run), "--output", str(output), "--no-report", *options])


def test_a_run_is_analysed_into_its_own_folder(run: Path, capsys: Capsys) -> None:
    before = digests(run)
    assert main([str(run)]) == 0
    output = run / "cluster_analysis_output"
    after = digests(run, lambda path: output not in path.parents)
    assert after == before
    assert json.loads((output / "findings.json").read_text())["schema"] == "cluster-findings/1"
    assert sorted(path.name for path in output.iterdir()) == [
        "cluster_communication.json",
        "cluster_communication_matrix.json",
        "cluster_step_trace_time.csv",
        "communication_group.json",
        "findings.json",
        "report.html",
        "tables",
    ]
    told = capsys.readouterr()
    assert "Rank 3" in told.out
    assert "Written to" in told.err


def test_where_the_output_is_is_said_in_the_language_of_the_result(
    slow_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    assert main([str(slow_run), "--output", str(output), "--no-insight", "--lang", "zh"]) == 0
    assert f"已写入 {output}/（打开 {output}/report.html）" in capsys.readouterr().err


def test_stdout_carries_only_the_result(
    slow_run: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert without_page(slow_run, tmp_path / "out", "--format", "json", "-v") == 0
    told = capfdbinary.readouterr()
    assert told.out == (tmp_path / "out" / "findings.json").read_bytes()
    assert b"reading ranks" in told.err
    assert b"\r" not in told.err


def test_quiet_says_nothing_on_stderr_and_markdown_is_one_of_the_forms(
    slow_run: Path, capsys: Capsys
) -> None:
    assert main([str(slow_run), "--no-output", "--format", "markdown", "-q"]) == 0
    told = capsys.readouterr()
    assert (told.out.startswith("## Degraded"), told.err) == (True, "")


@pytest.mark.slow
def test_a_second_call_gives_the_same_bytes(
    slow_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([str(slow_run), "--output", str(tmp_path / "early"), "-q"]) == 0
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1760000000")
    for name in ("one", "two"):
        assert main([str(slow_run), "--output", str(tmp_path / name), "-q"]) == 0
    early, one, two = (digests(tmp_path / name) for name in ("early", "one", "two"))
    assert one == two
    analysed = json.loads((tmp_path / "one/findings.json").read_text())["run"]
    assert analysed["analysed"] == "2025-10-09T08:53:20Z"
    # Without a time that is given only the page, and what tells the time given, differ.
    assert {path for path in early if early[path] != one[path]} <= {"report.html", "findings.json"}


def test_no_report_writes_no_page(slow_run: Path, tmp_path: Path) -> None:
    assert without_page(slow_run, tmp_path) == 0
    assert not (tmp_path / "report.html").exists()
    assert (tmp_path / "findings.json").exists()


@pytest.mark.parametrize(("level", "code"), [("never", 0), ("critical", 4)])
def test_fail_on_turns_a_finding_into_an_exit_code(slow_run: Path, level: str, code: int) -> None:
    assert main([str(slow_run), "--no-output", "--fail-on", level, "-q"]) == code


def test_a_corrupt_file_of_one_rank_is_named_and_the_others_are_analysed(run: Path, tmp_path: Path) -> None:
    path = file_of(run, 2, "communication.json")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert without_page(run, tmp_path, "-q") == 3
    document = json.loads((tmp_path / "findings.json").read_text())
    problems = document["problems"]
    assert {(one["host"], one["rank"], one["file"]) for one in problems} == {("1", 2, "communication.json")}
    (problem,) = problems
    half = len(content) // 2
    assert problem["reason"] == (
        f"truncated at byte {half}; it says nothing of step11 and what followed; "
        f"{half} bytes, but {len(content)} when it was collected"
    )
    assert document["run"]["ranks"] == 8
    alarms = [one for one in document["findings"] if one["severity"] != "info"]
    assert {rank for one in alarms for rank in one["ranks"]} == {3}


def test_a_missing_rank_is_named_and_no_job_is_called_healthy_without_it(run: Path, tmp_path: Path) -> None:
    for path in captures(run)[5].rglob("*"):
        if path.is_file():
            path.unlink()
    (run / "manifest.json").unlink()
    assert without_page(run, tmp_path, "-q") == 3
    document = json.loads((tmp_path / "findings.json").read_text())
    assert document["run"]["expected_ranks"] == 8
    assert document["run"]["ranks"] == 7
    assert any("5" in problem["reason"] or problem.get("rank") == 5 for problem in document["problems"])


def test_ranks_and_steps_left_out_by_choice_are_not_missing(slow_run: Path, tmp_path: Path) -> None:
    assert without_page(slow_run, tmp_path, "--ranks", "0-3", "--steps", "11-12", "-q") == 0
    document = json.loads((tmp_path / "findings.json").read_text())
    assert (document["run"]["ranks"], document["run"]["expected_ranks"]) == (4, 4)
    assert document["run"]["steps"] == [11, 12]
    assert document["problems"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ranks", "99"], "none of the ranks asked for is there (found are 0-7)"),
        (["--steps", "99"], "none of the steps 99 was recorded"),
    ],
)
def test_a_selection_of_nothing_says_so(
    slow_run: Path, tmp_path: Path, arguments: list[str], message: str, capsys: Capsys
) -> None:
    assert main([str(slow_run), "--output", str(tmp_path / "out"), *arguments]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_steps_that_nobody_recorded_are_named_whatever_else_is_wrong(
    slow_run: Path, tmp_path: Path, capsys: Capsys
) -> None:
    run = tmp_path / "run"
    shutil.copytree(slow_run, run)
    next(run.rglob("step_trace_time.csv")).write_text("")
    assert main([str(run), "--output", str(tmp_path / "out"), "--steps", "99"]) == 1
    said = capsys.readouterr().err
    assert "none of the steps 99 was recorded; the first problem: rank" in said
    assert "leave --steps out" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nonsense"],
        [],
        ["RUN", "--format", "xml"],
        ["RUN", "--steps", "9-3"],
        ["RUN", "--ranks", "all"],
        ["RUN", "--scheduler", "spark"],
        ["RUN", "--memory-limit", "much"],
        ["RUN", "--memory-limit", "0"],
        ["RUN", "--workers", "0"],
        ["RUN", "--tls-cert", "me.pem"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_meant_is_a_usage_error(arguments: list[str], tmp_path: Path) -> None:
    assert main([argument.replace("RUN", str(tmp_path)) for argument in arguments]) == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [("", "no profiler data"), ("trace.json", "a file, not a directory"), ("nowhere", "no such directory")],
    ids=["an empty directory", "a file", "a directory that is not there"],
)
def test_what_cannot_be_analysed_is_an_error(name: str, message: str, tmp_path: Path, capsys: Capsys) -> None:
    if name == "trace.json":
        (tmp_path / name).write_text("{}")
    before = list(tmp_path.iterdir())
    assert main([str(tmp_path / name)]) == 1
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_directory_is_an_error(tmp_path: Path, capsys: Capsys) -> None:
    tmp_path.chmod(0)
    try:
        assert main([str(tmp_path)]) == 1
        assert "permission denied" in capsys.readouterr().err
    finally:
        tmp_path.chmod(0o700)


def test_output_inside_the_data_is_refused(slow_run: Path, capsys: Capsys) -> None:
    before = digests(slow_run)
    assert main([str(slow_run), "--output", str(slow_run / "cluster_profiler" / "out")]) == 2
    assert main([str(slow_run), "--output", str(slow_run)]) == 2
    assert "lies inside the data" in capsys.readouterr().err
    assert digests(slow_run) == before


def test_output_that_is_a_file_is_refused(slow_run: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    assert main([str(slow_run), "--output", str(tmp_path / "out")]) == 1
    assert (tmp_path / "out").read_text() == "mine"


def test_an_older_output_stays_when_the_analysis_fails(
    slow_run: Path, slow_output: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    shutil.copytree(slow_output, output)
    assert main([str(slow_run), "--output", str(output), "--steps", "99", "-q"]) == 1
    assert digests(output) == digests(slow_output)


def test_an_older_output_is_replaced_and_other_files_stay(slow_run: Path, tmp_path: Path) -> None:
    for name in ("findings.json", "cluster_analysis.db", "cluster.db", "cluster.db-wal", "notes.txt"):
        (tmp_path / name).write_text("old")
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "stale.parquet").write_text("old")
    assert without_page(slow_run, tmp_path, "-q") == 0
    names = {path.name for path in tmp_path.rglob("*")}
    assert "notes.txt" in names
    assert names.isdisjoint({"cluster_analysis.db", "cluster.db", "cluster.db-wal", "stale.parquet"})
    assert not [name for name in names if name.startswith(".")]


INSIGHT = {"cluster_communication.json", "cluster_communication_matrix.json", "communication_group.json"}


@pytest.mark.slow
def test_json_is_short_for_its_format_and_leaves_the_files_for_insight_out(
    slow_run: Path, tmp_path: Path, capsys: Capsys
) -> None:
    assert without_page(slow_run, tmp_path, "--json", "-q") == 0
    assert capsys.readouterr().out == (tmp_path / "findings.json").read_text()
    assert INSIGHT.isdisjoint(path.name for path in tmp_path.iterdir())
    assert without_page(slow_run, tmp_path, "--json", "--insight", "-q") == 0
    assert {path.name for path in tmp_path.iterdir()} >= INSIGHT
    without = tmp_path / "without"
    assert without_page(slow_run, without, "--no-insight", "-q") == 0
    assert INSIGHT.isdisjoint(path.name for path in without.iterdir())


def test_files_for_insight_that_would_be_large_are_left_out_and_it_is_said(
    slow_run: Path, tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cluster_analysis.options.MAX_INSIGHT_BYTES", 1000)
    assert without_page(slow_run, tmp_path) == 0
    assert "--insight writes them" in capsys.readouterr().err
    assert INSIGHT.isdisjoint(path.name for path in tmp_path.iterdir())


def test_a_stale_cache_of_insight_beside_the_run_is_pointed_out(run: Path, capsys: Capsys) -> None:
    (run / "cluster.db").write_text("cache")
    assert main([str(run), "--no-report"]) == 0
    assert f"until {run / 'cluster.db'} is deleted" in capsys.readouterr().err
    assert (run / "cluster.db").read_text() == "cache"


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_interrupting_ends_with_130_and_keeps_the_older_output(
    slow_run: Path, slow_output: Path, tmp_path: Path, stop: signal.Signals
) -> None:
    shutil.copytree(slow_output, tmp_path, dirs_exist_ok=True)
    before = digests(tmp_path)
    # A scheduler that accepts and never answers: the command is caught while it waits for it.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        process = subprocess.Popen(
            [*COMMAND, str(slow_run), "--output", str(tmp_path), "--scheduler", address],
            stderr=subprocess.PIPE,
            text=True,
        )
        connection, _ = listener.accept()
        with connection:
            process.send_signal(stop)
            _, told = process.communicate(timeout=280)
    assert process.returncode == 130, told
    assert told.splitlines()[-1].endswith("the older output is as it was")
    assert digests(tmp_path) == before


def test_a_mistake_of_ours_is_one_line(
    slow_run: Path, tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cluster_analysis.reports.parquet._encoded", lambda *_: 1 // 0)
    assert without_page(slow_run, tmp_path) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "ZeroDivisionError" in told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_run_compared_with_itself_has_not_changed(slow_run: Path, tmp_path: Path, capsys: Capsys) -> None:
    assert without_page(slow_run, tmp_path, "--baseline", str(slow_run), "-q") == 0
    document = json.loads((tmp_path / "comparison.json").read_text())
    assert document["schema"] == "cluster-comparison/1"
    assert {change["change_share"] for change in document["changes"]} == {0.0}
    assert "Against the baseline" in capsys.readouterr().out


@pytest.mark.parametrize("given", ["RUN", "--output", "--baseline"])
def test_a_path_that_the_system_refuses_is_told_with_its_name_and_is_no_mistake_of_ours(
    slow_run: Path, tmp_path: Path, capsys: Capsys, given: str
) -> None:
    # As for a directory that this user may not enter, which root always may.
    refused = str(tmp_path / (300 * "x"))
    arguments = [refused] if given == "RUN" else [str(slow_run), given, refused]
    output = [] if given == "--output" else ["--output", str(tmp_path / "out")]
    assert main([*arguments, *output, "--lang", "en"]) == 1
    told = capsys.readouterr().err
    assert told == f"cluster-analyse: {refused}: File name too long\n"


def test_a_baseline_that_is_not_there_is_an_error(slow_run: Path, tmp_path: Path) -> None:
    arguments = [str(slow_run), "--output", str(tmp_path / "out"), "--baseline", str(tmp_path / "gone")]
    assert main(arguments) == 1
    assert not (tmp_path / "out").exists()


def test_a_timeline_is_written_when_asked_for(slow_run: Path, tmp_path: Path) -> None:
    assert main([str(slow_run), "--output", str(tmp_path), "--timeline", "--no-report", "-q"]) == 0
    trace = json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))
    assert len(trace["traceEvents"]) > 100


def test_addresses_are_shown_only_when_asked_for(slow_run: Path, tmp_path: Path, capsys: Capsys) -> None:
    addresses = [
        line.split()[0] for line in (slow_run / "host_ips_mapping.txt").read_text().splitlines() if line
    ]
    for flag in ([], ["--show-addresses"]):
        argv = [str(slow_run), "--output", str(tmp_path), "--format", "markdown", "--no-insight", *flag]
        assert main(argv) == 0
        page = (tmp_path / "findings.json").read_text() + capsys.readouterr().out
        assert bool([address for address in addresses if address in page]) == bool(flag)


def test_the_version_is_the_projects(capsys: Capsys) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"cluster-analyse {VERSION}\n"


@pytest.mark.slow
def test_a_closed_stdout_is_no_error(slow_run: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, str(slow_run), "--output", str(tmp_path / "out"), "--format", "json", "-q"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    told = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=280), told) == (0, b"")
