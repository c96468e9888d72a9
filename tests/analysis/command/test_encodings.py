"""What the command prints where stdout knows few characters: a log of a C locale, an old terminal."""

import os
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
        [*argv, "--format", output_format], capture_output=True, env=environment, timeout=120, check=False
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
    done = subprocess.run(argv, capture_output=True, env=environment, timeout=120, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
