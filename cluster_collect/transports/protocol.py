"""What the collector needs of a transport, from its name to its connections.

asyncssh, paramiko, the local disk and the fakes of the tests give it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from cluster_collect.entries import Allowance, RemoteEntry
from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_collect.transports.bounds import Bounds

#: What is kept of a command's error output.
MAX_ERROR_BYTES = 64 * 1024
#: What a server is to a host, where its name must not be told.
THE_HOST, THE_JUMP_HOST = "the host", "the jump host"
#: Takes bytes as they arrive; returns the seconds that the sender must pause. May raise to end the stream.
Receive = Callable[[bytes], float]


async def hand_on(receive: Receive, data: bytes) -> None:
    """Give a piece to `receive`, and pause as long as it says."""
    pause_s = receive(data)
    if pause_s > 0:
        await asyncio.sleep(pause_s)


@dataclass(frozen=True)
class CommandResult:
    """How a remote command ended: no status when a signal or the connection ended it."""

    exit_status: int | None
    errors: bytes


class RemoteFiles(Protocol):
    """The files of a host without a shell. Paths are bytes, as the host has them. Errors are HostErrors."""

    async def real_path(self, path: bytes) -> bytes:
        """Return the absolute path, links resolved."""

    async def scan(self, directory: bytes, allowance: Allowance) -> list[RemoteEntry]:
        """Return what lies in a directory; each `path` is the bare name, `.` and `..` left out.

        HostileDataError when that is more than is left of `allowance`.
        """

    async def stat(self, path: bytes) -> RemoteEntry:
        """Return one file's entry, links not followed."""

    async def read(self, path: bytes, size_bytes: int, receive: Receive, begin: int = 0) -> None:
        """Give the content from byte `begin` on, in order, to `receive`; a shorter file just ends earlier."""

    async def close(self) -> None:
        """Free the channel."""


class RunningCommand(Protocol):
    """A command on a host that may be talked to. Errors are HostErrors, and whatever `receive` raises."""

    @property
    def errors(self) -> bytes:
        """What it has said on its error output so far, cut at `MAX_ERROR_BYTES`."""

    def redirect(self, receive: Receive) -> None:
        """Give its further output to `receive`."""

    def send(self, data: bytes) -> None:
        """Give it more input."""

    def end_input(self) -> None:
        """Tell it that no more input comes."""

    async def wait(self) -> CommandResult:
        """Wait for its end."""

    async def close(self) -> None:
        """End it if it still runs; nothing reaches its receiver after that."""


class HostConnection(Protocol):
    """One logged-in connection. Methods raise HostErrors only, and let through what `receive` raises."""

    async def start(self, command: str, receive: Receive) -> RunningCommand:
        """Start a command whose standard output goes to `receive`."""

    async def open_files(self) -> RemoteFiles:
        """Open the files without a shell."""

    async def close(self) -> None:
        """Close the connection; never raises, never hangs."""


async def run(
    connection: HostConnection, command: str, stdin: bytes, receive: Receive, *, hold_input: bool = False
) -> CommandResult:
    """Run a command to its end; errors are those of `RunningCommand`."""
    return await finish(await connection.start(command, receive), stdin, hold_input=hold_input)


async def finish(running: RunningCommand, stdin: bytes, *, hold_input: bool = False) -> CommandResult:
    """Give a command its last input and wait for its end; errors are those of `RunningCommand`.

    With `hold_input` its input does not end before the connection does, by which the command knows of that.
    It is closed however the wait ends: nothing reaches its receiver after that.
    """
    try:
        running.send(stdin)
        del stdin  # the names of all files of a host: not to be kept until the last one has come
        if not hold_input:
            running.end_input()
        return await running.wait()
    finally:
        await running.close()


class Dialer(Protocol):
    """Makes connections of one kind, and holds what they share (gateways, known hosts, keys)."""

    async def dial(self, spec: HostSpec) -> HostConnection:
        """Connect and log in.

        Raises:
            HostError: it did not work; `retryable` says whether trying again makes sense.
        """

    def names(self, spec: HostSpec) -> Mapping[str, str]:
        """Return what the servers on the way to a host are called in messages, and what each of them is.

        The client's configuration may call them something else than the inventory does (`HostName`).
        """

    async def close(self) -> None:
        """Close what the connections shared."""


@dataclass(frozen=True)
class Transport:
    """One way to reach hosts, and all that the rest of the collector knows of it.

    `name` is what inventories call it. `not_honoured` holds the settings of the OpenSSH client, in lower
    case, that this transport alone passes over, and what to do about each.
    """

    name: str
    make_dialer: Callable[[CollectOptions, Bounds, ProgressListener], Dialer]
    not_honoured: Mapping[str, str] = field(default_factory=dict)
