"""A real Dask cluster on loopback: one scheduler and some workers, each a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_DEADLINE_S = 40.0


@dataclass
class LoopbackCluster:
    """Its processes; `address` is the scheduler's."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)


@contextmanager
def loopback_cluster(
    folder: Path, n_workers: int = 2, *, protocol: str = "tcp", options: Sequence[str] = ()
) -> Iterator[LoopbackCluster]:
    """Start scheduler and workers, and kill what is left of them at the end."""
    environment = {
        **os.environ,
        "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "60s",
        "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "2",
    }
    port_file = folder / "scheduler.json"
    shared = ["--protocol", protocol, "--host", "127.0.0.1", "--no-dashboard", *options]
    scheduler = _started(
        ["scheduler", *shared, "--port", "0", "--scheduler-file", str(port_file)], folder, environment
    )
    cluster = LoopbackCluster("", scheduler)
    try:
        cluster.address = _address(port_file, scheduler)
        for number in range(n_workers):
            local = folder / f"worker-{number}"
            cluster.workers.append(
                _started(
                    [
                        *("worker", cluster.address, *shared, "--nthreads", "1", "--no-nanny"),
                        *("--local-directory", str(local), "--memory-limit", "1GiB"),
                    ],
                    folder,
                    environment,
                )
            )
        yield cluster
    finally:
        for process in (*cluster.workers, scheduler):
            process.kill()
            process.wait()


def _started(arguments: Sequence[str], folder: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    with (folder / "cluster.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments], stdout=log, stderr=log, env=environment
        )


def _address(port_file: Path, scheduler: subprocess.Popen[bytes]) -> str:
    import json  # noqa: PLC0415

    deadline = time.monotonic() + _DEADLINE_S
    while time.monotonic() < deadline and scheduler.poll() is None:
        try:
            return str(json.loads(port_file.read_text())["address"])
        except (OSError, ValueError):
            time.sleep(0.1)
    raise AssertionError("the scheduler did not start; see cluster.log")
