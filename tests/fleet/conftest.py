"""Runs of one simulated job on the same machines, analysed; and a PostgreSQL of the tests' own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_analysis.cli import main as analyse
from cluster_simulate.cli import main as simulate

JOB = ("--tp", "2", "--pp", "2", "--dp", "4", "--steps", "3", "--ranks-per-host", "4", "-q")
N_RUNS = 6
#: Slow in all runs.
SLOW = "slow_rank:1.08@5"


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("runs")
    made = []
    for number in range(N_RUNS):
        run = root / f"run{number}"
        assert simulate([str(run), *JOB, "--scenario", SLOW, "--run", str(number)]) == 0
        assert analyse([str(run), "-q", "--no-report", "--no-insight", "--format", "json"]) == 0
        made.append(run)
    return made


def postgres_programs() -> Path | None:
    """Return the directory of Debian's PostgreSQL programs; None where there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a PostgreSQL that runs on loopback, as a user that is not root, for this session."""
    programs = postgres_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed here: tools/system_packages.sh postgresql")
    is_root = os.geteuid() == 0
    if is_root and shutil.which("setpriv") is None:
        pytest.skip("PostgreSQL does not run as root, and there is no setpriv")
    data = Path(tmp_path_factory.mktemp("postgresql")) / "data"
    user: dict[str, int] = {"user": 65534, "group": 65534} if is_root else {}
    if is_root:
        # The directories above belong to root alone.
        data = Path("/tmp") / f"fleet-postgresql-{os.getpid()}"
        data.mkdir(mode=0o700)
        os.chown(data, 65534, 65534)

    def run(program: str, *argv: str) -> None:
        ended = subprocess.run(
            [programs / program, *argv], cwd="/", capture_output=True, text=True, timeout=150,
            extra_groups=[] if is_root else None, check=False, **user,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr + ended.stdout

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={data} -c fsync=off"
    run("initdb", "-D", str(data), "-U", "fleet", "-A", "trust", "--no-sync")
    run("pg_ctl", "-D", str(data), "-o", options, "-l", str(data / "log"), "-w", "-t", "120", "start")
    try:
        yield f"postgresql://fleet@127.0.0.1:{port}/postgres"
    finally:
        run("pg_ctl", "-D", str(data), "-m", "immediate", "stop")
        if is_root:
            shutil.rmtree(data)
