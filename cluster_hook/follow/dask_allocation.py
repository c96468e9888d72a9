"""Dask on the nodes of the post-job: a scheduler here, workers by `srun`, certificates of their own.

Anybody who can reach a Dask scheduler can run code as its owner, and a cluster's network has other users: all
connections are encrypted with a key that is made for this one analysis and removed after it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from cluster_analysis.engine.clusters.reach import SCHEDULER
from cluster_hook.isolation import child_environment, our_command
from cluster_hook.processes import started
from cluster_run.errors import ClusterError
from cluster_run.files import json_of

_START_DEADLINE_S = 60.0
#: Workers without their scheduler end by themselves after this many seconds.
_DEATH_TIMEOUT_S = 60
_SETTINGS = {
    **{
        f"DASK_{name.replace('-', '_').replace('.', '__').upper()}": str(SCHEDULER[name])
        for name in SCHEDULER
    },
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_SATURATION": "inf",
    "DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES": "[]",
    "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "20s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "60s",
}


class AllocationError(ClusterError):
    """Dask could not be started on the nodes of the post-job."""


@contextmanager
def dask_in_allocation(shared: Path, interface: str) -> Iterator[tuple[str, ...]]:
    """Run a scheduler here and a worker on every processor of the allocation while the block runs.

    Yields the options with which cluster-analyse reaches it.

    Args:
        shared: a directory that all nodes see; a directory of our own is made in it for the certificates.
        interface: the network interface to use, like `ib0`; empty for the one by which the nodes reach this.

    Raises:
        AllocationError: we are in no allocation, or the scheduler does not start.
    """
    if "SLURM_JOB_ID" not in os.environ:
        raise AllocationError("this is no Slurm job, so there are no nodes to start workers on")
    with ExitStack() as stack:
        directory = Path(tempfile.mkdtemp(prefix=".cluster-hook-dask-", dir=shared))
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        _write_certificates(directory)
        address = _start_scheduler(stack, directory, interface)
        _start(stack, directory, _worker_command(directory, address, interface))
        yield f"--scheduler={address}", *_tls_arguments(directory)


def _write_certificates(directory: Path) -> None:
    # Late: only this way of working needs it, and it brings Dask.
    from cluster_analysis.engine.clusters.certificates import filed_certificates  # noqa: PLC0415

    try:
        filed_certificates(directory)
    except ClusterError as error:
        raise AllocationError(str(error)) from error


def _tls_arguments(directory: Path) -> tuple[str, ...]:
    return (
        f"--tls-ca-file={directory / 'ca.pem'}",
        f"--tls-cert={directory / 'cert.pem'}",
        f"--tls-key={directory / 'key.pem'}",
    )


def _start_scheduler(stack: ExitStack, directory: Path, interface: str) -> str:
    file = directory / "scheduler.json"
    command = [
        *our_command("dask", "scheduler", "--protocol=tls", "--port=0"),
        # It serves some pages even without a dashboard: none, and on loopback.
        *("--no-dashboard", "--dashboard-address=127.0.0.1:0"),
        f"--scheduler-file={file}",
        *_tls_arguments(directory),
        # Its --interface cannot be said together with TLS.
        f"--host={_own_address(interface)}",
    ]
    process = _start(stack, directory, command)
    end_s = time.monotonic() + _START_DEADLINE_S
    while time.monotonic() < end_s and process.poll() is None:
        address = _address(file)
        if address:
            return address
        time.sleep(0.1)
    said = (directory / "log").read_text(errors="replace").strip().rpartition("\n")[2]
    raise AllocationError(f"the Dask scheduler did not start: {said or 'it said nothing'}")


def _own_address(interface: str) -> str:
    """Return where the scheduler listens: on the named interface, else where the job's nodes reach us."""
    from cluster_analysis.engine.clusters.reach import (  # noqa: PLC0415
        address_towards,
        slurm_node_addresses,
    )

    if interface:
        return _address_of(interface)
    nodes = os.environ.get("SLURM_JOB_NODELIST", "")
    address = address_towards(slurm_node_addresses([f"--nodes={nodes}"]))
    if not address:
        raise AllocationError(
            f"no address of this host by which {nodes or 'the nodes of the job'} can reach it",
            "name a network interface with --dask-interface",
        )
    return address


def _address_of(interface: str) -> str:
    from distributed.utils import get_ip_interface  # noqa: PLC0415

    try:
        return str(get_ip_interface(interface))
    except ValueError as error:
        raise AllocationError(f"no address for the workers: {error}") from error


def _address(file: Path) -> str:
    try:
        return str(json_of(file.read_text())["address"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""  # not there yet, or half written


def _worker_command(directory: Path, address: str, interface: str) -> list[str]:
    n_workers = max(1, int(os.environ.get("SLURM_CPUS_PER_TASK") or 1))
    return [
        # --overlap: this very job's first task already holds its processors.
        *("srun", "--overlap", "--ntasks-per-node=1", "--kill-on-bad-exit=0"),
        # srun does not take this over from its job since Slurm 22.05: all workers would share one processor.
        f"--cpus-per-task={n_workers}",
        *our_command("cluster_analysis.engine.clusters.worker", address),
        *(f"--nworkers={n_workers}", "--nthreads=1", f"--death-timeout={_DEATH_TIMEOUT_S}"),
        f"--local-directory={tempfile.gettempdir()}",
        *_tls_arguments(directory),
        *([f"--interface={interface}"] if interface else []),
    ]


def _start(stack: ExitStack, directory: Path, command: Sequence[str]) -> subprocess.Popen[str]:
    log = stack.enter_context((directory / "log").open("a"))
    environment: Mapping[str, str] = {**_SETTINGS, **child_environment()}
    try:
        return started(
            stack, command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment
        )
    except OSError as error:
        raise AllocationError(f"{command[0]} cannot be started: {error.strerror}") from error
