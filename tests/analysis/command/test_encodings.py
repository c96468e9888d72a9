"""What the command prints where stdout knows few characters: a log of a C locale, an old terminal."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from cluster_simulate.cli import main as simulate


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("encodings") / "run1"
    sizes = ("--tp", "2", "--pp", "1", "--dp", "4", "--steps", "4")
    assert simulate([str(path), *sizes, "--scenario", "slow_rank:1.3@3", "-q"]) == 0
    return path


@pytest.mark.parametrize("output_format", ["terminal", "markdown", "json"])
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_result_is_printed_whatever_stdout_can_hold(run, tmp_path, encoding, output_format):
    argv = [sys.executable, "-m", "cluster_analysis", str(run), "--output", str(tmp_path), "--no-report"]
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    done = subprocess.run(
        [*argv, "--format", output_format], capture_output=True, env=environment, timeout=150, check=False
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode(encoding)
    assert "slow" in text
    assert "\\u" not in text


@pytest.mark.parametrize(
    "command", ["cluster_collect", "cluster_analysis", "cluster_simulate", "cluster_hook"]
)
def test_a_help_text_is_printed_whatever_stdout_can_hold(command):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    argv = [sys.executable, "-m", command, "--help"]
    done = subprocess.run(argv, capture_output=True, env=environment, timeout=150, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()


def test_a_path_that_is_not_utf8_is_read_and_named(run, tmp_path):
    odd = tmp_path / os.fsdecode(b"run-\xff")
    shutil.copytree(run, odd)
    captures = sorted(odd.rglob("*_ascend_pt"))
    captures[0].rename(captures[0].with_name(os.fsdecode(b"h\xff_1_20250101000000000_ascend_pt")))
    (captures[1] / "ASCEND_PROFILER_OUTPUT" / "communication.json").unlink()
    argv = [sys.executable, "-m", "cluster_analysis", str(odd), "--json", "-q", "--no-insight"]
    done = subprocess.run(argv, capture_output=True, timeout=150, check=False)
    assert done.returncode == 3, done.stderr
    assert json.loads(done.stdout)["run"]["path"] == str(odd)
    written = (odd / "cluster_analysis_output" / "findings.json").read_bytes()
    assert json.loads(written)["run"]["path"] == str(odd)
    assert (odd / "cluster_analysis_output" / "report.html").is_file()
