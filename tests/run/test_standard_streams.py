"""stdout and stderr as callers leave them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cluster_simulate.cli import main as simulate
from tests.commands import ran

COMMANDS = {
    "cluster_simulate": ["again", "--tp", "1", "--pp", "1", "--dp", "2", "--steps", "1"],
    "cluster_analysis": ["--json", "--output", "out", "run"],
    "cluster_collect": ["--inventory", "hosts.yaml", "--output", "collected"],
}
_NO_SPACE = "the result could not be written to stdout: No space left on device"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("simulated") / "run"
    assert simulate([str(run), "--tp", "1", "--pp", "1", "--dp", "2", "--steps", "1", "-q"]) == 0
    return run


@pytest.fixture
def place(simulated: Path, tmp_path: Path) -> Path:
    shutil.copytree(simulated, tmp_path / "run")
    local = tmp_path / "run" / "cluster_profiler" / "1"
    (tmp_path / "hosts.yaml").write_text(f"version: 1\nhosts:\n  - local: {local}\n    server_id: a\n")
    return tmp_path


def _run(name: str, place: Path, redirected: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", "-c", f'"$@" {redirected}', "sh", sys.executable, "-m", name, *COMMANDS[name]]
    return ran(command, cwd=place)


@pytest.mark.many
@pytest.mark.parametrize("name", COMMANDS)
def test_a_result_that_does_not_fit_on_the_disk_is_one_line_and_exit_code_1(name: str, place: Path) -> None:
    ended = _run(name, place, ">/dev/full")

    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].endswith(_NO_SPACE)
    assert "Traceback" not in ended.stderr
    assert "mistake of ours" not in ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "redirected"),
    [
        ("cluster_analysis", "2>/dev/full"),
        *((name, ">&- 2>&- <&-") for name in COMMANDS),
    ],
)
def test_streams_that_nobody_reads_do_not_cost_the_result(name: str, redirected: str, place: Path) -> None:
    ended = _run(name, place, redirected)

    assert ended.returncode in (0, 3)
    assert "Traceback" not in ended.stderr
    assert (
        place
        / {
            "cluster_analysis": "out/findings.json",
            "cluster_collect": "collected/manifest.json",
            "cluster_simulate": "again.truth.json",
        }[name]
    ).is_file()


@pytest.mark.slow
def test_a_reader_that_has_gone_changes_no_exit_code(place: Path) -> None:
    (place / "run" / "hccl.json").write_text("{")
    command = [sys.executable, "-m", "cluster_analysis", *COMMANDS["cluster_analysis"]]
    script = '("$@"; echo $? > code) 2>&1 | true'
    subprocess.run(["sh", "-c", script, "sh", *command], cwd=place, check=True)

    assert (place / "code").read_text() == "3\n"
