"""A real Dask cluster on loopback: one scheduler and some workers, each a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

#: Only for a cluster that hangs: on a loaded machine Python alone takes a minute to import Dask.
_DEADLINE_S = 600.0
#: What a worker says once the scheduler knows it.
_REGISTERED = "Registered to:"


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
    """Start scheduler and workers, give them when they know each other, and kill what is left at the end.

    `options` are those of both, like the certificates.
    """
    environment = {
        **patient_environment(),
        "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "600s",
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
        _wait_for_workers(folder / "cluster.log", cluster)
        yield cluster
    finally:
        for process in (*cluster.workers, scheduler):
            process.kill()
            process.wait()


def patient_environment(connect_s: int = 300) -> dict[str, str]:
    """Return an environment in which Dask takes a loaded machine for what it is."""
    return {
        **os.environ,
        "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": f"{connect_s}s",
        "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "300s",
    }


def _started(arguments: Sequence[str], folder: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    with (folder / "cluster.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments], stdout=log, stderr=log, env=environment
        )


def _address(port_file: Path, scheduler: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + _DEADLINE_S
    while time.monotonic() < deadline and scheduler.poll() is None:
        try:
            return str(json.loads(port_file.read_text())["address"])
        except (OSError, ValueError):
            time.sleep(0.1)
    raise AssertionError("the scheduler did not start; see cluster.log")


def _wait_for_workers(log: Path, cluster: LoopbackCluster) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while log.read_text(errors="replace").count(_REGISTERED) < len(cluster.workers):
        assert time.monotonic() < deadline, "the workers did not register; see cluster.log"
        assert all(worker.poll() is None for worker in cluster.workers), "a worker ended; see cluster.log"
        time.sleep(0.1)


def write_certificates(folder: Path) -> tuple[str, ...]:
    """Make an authority and a certificate of it; return the options that name them, of every command."""
    from distributed.security import Security  # noqa: PLC0415

    made = Security.temporary().get_tls_config_for_role("scheduler")
    options = []
    for option, content in (("ca-file", "ca_file"), ("cert", "cert"), ("key", "key")):
        path = folder / f"{content}.pem"
        path.write_text(made[content])
        options.append(f"--tls-{option}={path}")
    return tuple(options)
