"""A real Dask cluster of two workers on loopback, and what happens when parts of it die."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dask
import pytest

from cluster_analysis.cli import main
from tests.analysis.engine.cluster import (
    DEADLINE_S,
    LoopbackCluster,
    analysed,
    loopback_cluster,
    not_mounted,
    patient_environment,
    write_certificates,
)
from tests.analysis.runs import digests, write_small_run
from tests.commands import ran

#: Starting a cluster takes 5 s, and minutes where several test suites share two processors.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

#: The files for MindStudio Insight that are as large as all inputs together.
LARGE_INSIGHT_FILES = {"cluster_communication.json", "cluster_communication_matrix.json"}
PRIVATE = ("sh", "-c", 'umask 077 && exec "$@"', "sh")
#: The command, in which a process is killed once the first ranks are read.
KILLER = """
import os, signal, sys
from cluster_analysis import progress
from cluster_analysis.cli import main

victim = int(sys.argv.pop())
killed = []

class Killing(progress.ProgressLine):
    def show(self, what, done, total):
        if what == "reducing steps" and not killed:
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)
        super().show(what, done, total)

progress.ProgressLine = Killing
code = main(sys.argv[1:])
assert killed
sys.exit(code)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_run(tmp_path_factory.mktemp("dask") / "run", steps=6)


@pytest.fixture(scope="module")
def expected(run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    output = tmp_path_factory.mktemp("in-process")
    assert main([str(run), "--output", str(output), "--workers", "1", "-q"]) == 0
    return digests(output)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--scheduler", "threads", "--workers", "3"],
        ["--scheduler", "processes", "--workers", "5"],
        ["--memory-limit", "1000"],
    ],
    ids=" ".join,
)
def test_every_local_scheduler_gives_the_same_bytes(
    run: Path, expected: dict[str, str], tmp_path: Path, arguments: list[str]
) -> None:
    assert main([str(run), "--output", str(tmp_path), *arguments, "-q"]) == 0
    assert digests(tmp_path) == expected


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackCluster]:
    """Two workers; what they write nobody else may read, which tells it from what the command writes."""
    with loopback_cluster(tmp_path_factory.mktemp("cluster"), n_workers=0) as cluster:
        for _ in range(2):
            cluster.add_worker(before=PRIVATE)
        cluster.wait_for_workers()
        yield cluster


def test_two_workers_find_a_run_named_by_a_relative_path_and_give_the_same_bytes(
    run: Path, tmp_path: Path, cluster: LoopbackCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(run.parent)
    assert main([run.name, "--output", str(tmp_path / "alone"), "--workers", "1", "-q"]) == 0
    done = analysed(Path(run.name), tmp_path / "out", cluster.address)
    assert done.returncode == 0, done.stderr
    assert digests(tmp_path / "out") == digests(tmp_path / "alone")
    assert _written_privately(tmp_path / "out") == LARGE_INSIGHT_FILES


def test_a_worker_killed_half_way_changes_nothing_and_a_lost_scheduler_is_one_clear_error(
    run: Path, expected: dict[str, str], tmp_path: Path, cluster: LoopbackCluster
) -> None:
    done = _killed(run, tmp_path / "out", cluster.address, cluster.workers[0].pid)
    assert done.returncode == 0, done.stderr
    assert cluster.workers[0].wait(timeout=DEADLINE_S) == -9
    assert digests(tmp_path / "out") == expected

    done = _killed(run, tmp_path / "lost", cluster.address, cluster.scheduler.pid)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("cluster-analyse: the Dask scheduler at tcp://127.0.0.1:")
    assert "was lost; nothing was written" in line
    assert not (tmp_path / "lost").exists()


def test_encrypted_workers_that_do_not_see_the_output_leave_the_writing_to_the_command(
    run: Path, expected: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    certificates = write_certificates(tmp_path)
    (tmp_path / "results").mkdir()
    private = not_mounted(tmp_path / "results")
    with loopback_cluster(tmp_path, n_workers=0, protocol="tls", options=certificates) as cluster:
        cluster.add_worker(before=[*PRIVATE, *private])
        cluster.wait_for_workers()
        assert cluster.address.startswith("tls://127.0.0.1:")
        done = analysed(run, tmp_path / "results" / "out", cluster.address, certificates)
        assert done.returncode == 0, done.stderr
        assert digests(tmp_path / "results" / "out") == expected
        assert _written_privately(tmp_path / "results" / "out") == set()
        assert _code_of_one_that_asks_shortly(run, tmp_path / "without", cluster.address) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"cluster-analyse: no Dask scheduler at {cluster.address}: ")
    assert "--tls-ca-file" in said
    assert not (tmp_path / "without").exists()


def test_no_scheduler_at_the_address_is_exit_1(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _code_of_one_that_asks_shortly(run, tmp_path / "out", "tcp://127.0.0.1:9") == 1
    assert capsys.readouterr().err.startswith("cluster-analyse: no Dask scheduler at tcp://127.0.0.1:9")


def _code_of_one_that_asks_shortly(run: Path, output: Path, address: str) -> int:
    with dask.config.set({"distributed.comm.timeouts.connect": "2s"}):
        return main([str(run), "--output", str(output), "--scheduler", address])


def _written_privately(output: Path) -> set[str]:
    return {one.name for one in output.iterdir() if one.is_file() and one.stat().st_mode & 0o077 == 0}


def _killed(run: Path, output: Path, address: str, victim: int) -> subprocess.CompletedProcess[str]:
    given = [str(run), "--output", str(output), "--scheduler", address, str(victim)]
    return ran([sys.executable, "-c", KILLER, *given], timeout=DEADLINE_S, env=patient_environment())
