"""A real Dask cluster on loopback: one scheduler and some workers, each a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import dask
import pytest

from cluster_analysis.cli import main
from tests.commands import ran, ran_here

#: Only for a cluster that hangs: on a loaded machine Python alone takes a minute to import Dask.
_DEADLINE_S = 600.0
#: For a command over a cluster, likewise.
DEADLINE_S = 900.0
#: What a worker says once the scheduler knows it.
_REGISTERED = "Registered to:"


@dataclass
class LoopbackCluster:
    """Its processes; `address` is the scheduler's."""

    address: str
    scheduler: subprocess.Popen[bytes]
    folder: Path
    options: Sequence[str]
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def add_worker(self, before: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> None:
        """Start one more worker.

        Args:
            before: a command that runs it, like `unshare`.
            environment: what is different in its environment.
        """
        self.workers.append(
            _started(
                [
                    *("worker", self.address, *self.options, "--nthreads", "1", "--no-nanny"),
                    *("--local-directory", str(self.folder / f"worker-{len(self.workers)}")),
                    *("--memory-limit", "1GiB"),
                ],
                self.folder,
                {**_environment(), **(environment or {})},
                before,
            )
        )

    def wait_for_workers(self) -> None:
        """Wait until the scheduler knows all."""
        log = self.folder / "cluster.log"
        deadline = time.monotonic() + _DEADLINE_S
        while log.read_text(errors="replace").count(_REGISTERED) < len(self.workers):
            assert time.monotonic() < deadline, "the workers did not register; see cluster.log"
            assert all(one.poll() is None for one in self.workers), "a worker ended; see cluster.log"
            time.sleep(0.1)


@contextmanager
def loopback_cluster(
    folder: Path, n_workers: int = 2, *, protocol: str = "tcp", options: Sequence[str] = ()
) -> Iterator[LoopbackCluster]:
    """Start scheduler and workers, give them when they know each other, and kill what is left at the end.

    `options` are those of both, like the certificates.
    """
    port_file = folder / "scheduler.json"
    shared = ("--protocol", protocol, "--host", "127.0.0.1", "--no-dashboard", *options)
    scheduler = _started(
        ["scheduler", *shared, "--port", "0", "--scheduler-file", str(port_file)], folder, _environment()
    )
    cluster = LoopbackCluster("", scheduler, folder, shared)
    try:
        cluster.address = _address(port_file, scheduler)
        for _ in range(n_workers):
            cluster.add_worker()
        cluster.wait_for_workers()
        yield cluster
    finally:
        for process in (*cluster.workers, scheduler):
            process.kill()
            process.wait()


def _environment() -> dict[str, str]:
    return {
        **patient_environment(),
        "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "600s",
        "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "2",
    }


def patient_environment() -> dict[str, str]:
    """Return an environment in which Dask takes a loaded machine for what it is."""
    return {
        **os.environ,
        "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "300s",
        "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "300s",
    }


def analysed(
    run: Path, output: Path, address: str, options: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Run the command over a cluster, in this process."""
    import distributed  # noqa: F401, PLC0415 - its settings are there once it is

    with dask.config.set({f"distributed.comm.timeouts.{one}": "300s" for one in ("connect", "tcp")}):
        return ran_here(main, [str(run), "--output", str(output), *options, "--scheduler", address], {})


def _started(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], before: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    with (folder / "cluster.log").open("ab") as log:
        # In another directory than ours: its modules are those of its own environment.
        return subprocess.Popen(
            [*before, sys.executable, "-m", "dask", *arguments],
            stdout=log,
            stderr=log,
            env=environment,
            cwd=folder,
        )


def _address(port_file: Path, scheduler: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + _DEADLINE_S
    while time.monotonic() < deadline and scheduler.poll() is None:
        try:
            return str(json.loads(port_file.read_text())["address"])
        except (OSError, ValueError):
            time.sleep(0.1)
    raise AssertionError("the scheduler did not start; see cluster.log")


def not_mounted(directory: Path) -> list[str]:
    """Return the command that runs a worker where a directory is not mounted; skip if none can be made."""
    unshare = ["unshare", "--map-root-user", "--mount"]
    hide = [*unshare, "sh", "-c", f'mount -t tmpfs none "{directory}" && exec "$@"', "sh"]
    try:
        done = ran([*hide, "ls", str(directory)])
    except FileNotFoundError:
        pytest.skip("unshare is not installed here")
    if done.returncode or done.stdout:
        pytest.skip(f"no mount namespace can be made here: {done.stderr.strip()}")
    return hide


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
