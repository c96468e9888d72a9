"""Steps of Slurm in the place of connections: for clusters whose nodes let nobody in by SSH.

A node of the job that we are in ourselves is reached by a step beside that job's own; any other one by a
small job on it, which ends with the connection. salloc reads SALLOC_PARTITION, SALLOC_ACCOUNT and more.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
from dataclasses import dataclass

from cluster_collect.faults import NoShellError, RemoteFailureError, UnreachableError
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_collect.transports.bounds import Bounds
from cluster_collect.transports.local import LocalCommand
from cluster_collect.transports.protocol import Receive, RemoteFiles

#: cluster-hook follows no job that is called so.
_JOB_NAME = "cluster-collect"
_GRANTED = re.compile(rb"Granted job allocation (\d+)")
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

    def __init__(self, options: CollectOptions, bounds: Bounds) -> None:
        self._deadline_s = options.connect_deadline_s
        self._bounds = bounds
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
            return SrunConnection(spec.address, os.environ["SLURM_JOB_ID"], None)
        async with self._bounds.handshake(spec.address):
            place = await _place_on(spec.address, self._deadline_s)
        return SrunConnection(spec.address, place.job, place)


@dataclass(frozen=True)
class _Place:
    """A job of one task. salloc holds it as long as we hold its input: however we end, it ends with us."""

    job: str
    salloc: asyncio.subprocess.Process

    async def leave(self) -> None:
        """End the job, and all that still runs in it."""
        if self.salloc.stdin is not None:
            self.salloc.stdin.close()
        await _ended(self.salloc)


async def _place_on(node: str, deadline_s: float) -> _Place:
    """Wait for a place on a node until the deadline; raise what `dial` says."""
    where = (f"--nodelist={node}", "--nodes=1", "--ntasks=1", f"--job-name={_JOB_NAME}")
    process = await _started("salloc", *where, "cat")
    said = b""

    async def granted() -> str:
        nonlocal said
        assert process.stderr is not None
        while line := await process.stderr.readline():
            said = line
            if found := _GRANTED.search(line):
                return found[1].decode()
        last = said.decode(errors="replace").strip() or "it said nothing"
        raise RemoteFailureError(
            f"salloc gave us no place on it: {last}",
            "what jobs here must say goes into SALLOC_PARTITION, SALLOC_ACCOUNT and the like",
        )

    try:
        return _Place(await asyncio.wait_for(granted(), deadline_s), process)
    except BaseException as error:
        await _ended(process, asked=True)
        if isinstance(error, asyncio.TimeoutError):
            raise UnreachableError(
                f"Slurm gave us no place on it within {deadline_s:g} s",
                "is it busy with another job? --connect-deadline SECONDS waits longer",
            ) from None
        raise


class SrunConnection:
    """Runs commands on one node, each as a step of a job; it leaves the `place` that was made for it."""

    def __init__(self, node: str, job: str, place: _Place | None) -> None:
        self._node = node
        self._job = job
        self._place = place

    async def start(self, command: str, receive: Receive) -> LocalCommand:
        """Start a command as a step."""
        process = await _started(
            "srun",
            *(f"--jobid={self._job}", f"--nodelist={self._node}", "--nodes=1", "--ntasks=1"),
            *("--overlap", "--quiet", "--unbuffered", "--chdir=/"),
            *("/bin/sh", "-c", _BEHIND_A_PIPE.format(command=command)),
        )
        return _Step(process, receive)

    async def open_files(self) -> RemoteFiles:
        """Slurm brings no files by itself."""
        raise NoShellError("it runs no commands for us, and srun has no other way to its files")

    async def close(self) -> None:
        """Leave the node."""
        if self._place is not None:
            await self._place.leave()


class _Step(LocalCommand):
    async def close(self) -> None:
        """End the step if it still runs: srun ends it on the node, too, if it is asked."""
        await _ended(self._process, asked=True)
        await super().close()


async def _ended(process: asyncio.subprocess.Process, *, asked: bool = False) -> None:
    """Wait for a process to end, for a while, and then make it; `asked` to end at once."""
    with contextlib.suppress(ProcessLookupError):
        if asked and process.returncode is None:
            process.terminate()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), _CLOSE_DEADLINE_S)
        if process.returncode is None:
            process.kill()


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
