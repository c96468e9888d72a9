"""Steps of Slurm in the place of connections: for clusters whose nodes let nobody in by SSH.

A node of the job that we are in ourselves is reached by a step beside that job's own; any other one by a
small job on it, which is ended with the connection. salloc reads SALLOC_PARTITION, SALLOC_ACCOUNT and more.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from cluster_collect.faults import NoShellError, RemoteFailureError, UnreachableError
from cluster_collect.spec import SRUN_NAME, CollectOptions, HostSpec
from cluster_collect.transports.bounds import queueing
from cluster_collect.transports.local import LocalCommand
from cluster_collect.transports.protocol import Receive, RemoteFiles, Transport

#: cluster-hook follows no job that is called so.
_JOB_NAME = "cluster-collect"
_GRANTED = re.compile(rb"job allocation (\d+)")
_CLOSE_DEADLINE_S = 5.0
#: All that steps need, and all that they get: our environment may hold secrets, and options of our own job.
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "SLURM_CONF")
#: With --unbuffered srun gives the step a terminal that changes no byte. Without it what has no line end
#: stays on the node. tar and gzip write to no terminal, so cat does.
_BEHIND_A_PIPE = (
    "exec 4>&1; status=$({{ {{ {command} 3>&- 4>&-; echo $? >&3; }} | cat >&4; }} 3>&1); exit $status"
)


class SrunDialer:
    """Finds a place on each node."""

    def __init__(self, options: CollectOptions) -> None:
        self._deadline_s = options.connect_deadline_s
        self._turns = asyncio.Semaphore(options.n_connecting)
        self._own_nodes: asyncio.Task[frozenset[str]] | None = None

    async def dial(self, spec: HostSpec) -> SrunConnection:
        """Return a connection to the node that is called as the host's address.

        Raises:
            UnreachableError: the node is busy.
            RemoteFailureError: Slurm is not here, or refuses.
        """
        if self._own_nodes is None:
            self._own_nodes = asyncio.ensure_future(_nodes_of_this_job())
        if spec.address in await asyncio.shield(self._own_nodes):
            return SrunConnection(_Place(spec.address, os.environ["SLURM_JOB_ID"], is_ours=False))
        with queueing():
            await self._turns.acquire()
        try:
            return SrunConnection(_Place(spec.address, await self._allocated(spec.address), is_ours=True))
        finally:
            self._turns.release()

    def names(self, spec: HostSpec) -> Mapping[str, str]:
        """No other server is on the way."""
        return {}

    async def close(self) -> None:
        """Nothing is shared."""

    async def _allocated(self, node: str) -> str:
        """Return the number of a new job on one node; it holds nothing but its place."""
        process = await _started(
            "salloc", "--no-shell", f"--nodelist={node}", "--nodes=1", "--ntasks=1", f"--job-name={_JOB_NAME}"
        )
        said = bytearray()
        code: int | None = None

        async def ended() -> int:
            assert process.stderr is not None
            while line := await process.stderr.readline():
                said.extend(line)
            return await process.wait()

        try:
            code = await asyncio.wait_for(ended(), self._deadline_s)
        except asyncio.TimeoutError:
            raise UnreachableError(
                f"Slurm gave us no place on it within {self._deadline_s:g} s",
                "is it busy with another job? --connect-deadline SECONDS waits longer",
            ) from None
        finally:
            granted = _GRANTED.search(said)
            if code != 0:
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()
                await process.wait()
                if granted is not None:
                    await _cancel(granted[1].decode())
        if code != 0 or granted is None:
            last = bytes(said).decode(errors="replace").strip().rpartition("\n")[2] or "it said nothing"
            raise RemoteFailureError(
                f"salloc gave us no place on it: {last}",
                "what jobs here must say goes into SALLOC_PARTITION, SALLOC_ACCOUNT and the like",
            )
        return granted[1].decode()


@dataclass(frozen=True)
class _Place:
    """A node in a job of Slurm, which ends with the connection if it `is_ours`."""

    node: str
    job: str
    is_ours: bool


class SrunConnection:
    """Runs commands on one node, each as a step."""

    def __init__(self, place: _Place) -> None:
        self._place = place

    async def start(self, command: str, receive: Receive) -> LocalCommand:
        """Start a command as a step."""
        process = await _started(
            "srun",
            *(f"--jobid={self._place.job}", f"--nodelist={self._place.node}", "--nodes=1", "--ntasks=1"),
            *("--overlap", "--quiet", "--unbuffered", "--chdir=/"),
            *("/bin/sh", "-c", _BEHIND_A_PIPE.format(command=command)),
        )
        return _Step(process, receive)

    async def open_files(self) -> RemoteFiles:
        """Slurm brings no files by itself."""
        raise NoShellError("it runs no commands for us, and srun has no other way to its files")

    async def close(self) -> None:
        """End the job that was made for it, and all that still runs in it."""
        if self._place.is_ours:
            await _cancel(self._place.job)


class _Step(LocalCommand):
    async def close(self) -> None:
        """End the step if it still runs: srun ends it on the node, too, if it is asked."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._process.wait(), _CLOSE_DEADLINE_S)
        await super().close()


async def _started(*argv: str) -> asyncio.subprocess.Process:
    own = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith("SALLOC_")}
    for name in ("PARTITION", "ACCOUNT"):
        if f"SLURM_JOB_{name}" in os.environ:
            own.setdefault(f"SALLOC_{name}", os.environ[f"SLURM_JOB_{name}"])
    try:
        return await asyncio.create_subprocess_exec(
            *argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=own
        )
    except OSError as error:
        raise RemoteFailureError(
            f"{argv[0]} cannot be started here: {error.strerror}",
            "transport: srun needs Slurm's commands here",
        ) from None


async def _nodes_of_this_job() -> frozenset[str]:
    """Return the nodes of the job that we run in; none outside of any."""
    nodes = os.environ.get("SLURM_JOB_NODELIST", "")
    if not nodes or "SLURM_JOB_ID" not in os.environ:
        return frozenset()
    process = await _started("scontrol", "show", "hostnames", nodes)
    printed, _ = await process.communicate()
    return frozenset(printed.decode(errors="replace").split())


async def _cancel(job: str) -> None:
    """End a job; never raises, never hangs."""
    with contextlib.suppress(RemoteFailureError, asyncio.TimeoutError):
        process = await _started("scancel", job)
        await asyncio.wait_for(process.communicate(), _CLOSE_DEADLINE_S)


SRUN = Transport(SRUN_NAME, lambda options, _bounds, _watch: SrunDialer(options))
