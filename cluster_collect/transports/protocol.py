"""What the collector needs of a connection to a host.

asyncssh, paramiko, steps of Slurm, the local disk and the fakes of the tests give it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from cluster_collect.entries import Allowance, RemoteEntry
from cluster_collect.spec import HostSpec
from cluster_collect.watchdog import cancelled

#: What is kept of a command's error output.
MAX_ERROR_BYTES = 64 * 1024
#: Takes bytes as they arrive; returns the seconds that the sender must pause. May raise to end the stream.
Receive = Callable[[bytes], float]


def take_nothing(_data: bytes) -> float:
    """Drop what arrives."""
    return 0.0


async def hand_on(receive: Receive, data: bytes) -> None:
    """Give a piece to `receive`, and pause as long as it says."""
    pause_s = receive(data)
    if pause_s > 0:
        await asyncio.sleep(pause_s)


async def read_in_order(
    read: Callable[[int, int], Awaitable[bytes]],
    begin: int,
    size_bytes: int,
    receive: Receive,
    n_ahead: int,
    piece_bytes: int,
) -> None:
    """Give a file's content from `begin` on to `receive`; `n_ahead` pieces are asked for at a time.

    `read(n_bytes, offset)` may return less than asked for. One byte more than `size_bytes` is asked for,
    so that a file that has grown shows.
    """
    offsets = iter(range(begin, size_bytes + 1, piece_bytes))
    ahead: deque[tuple[int, asyncio.Future[bytes]]] = deque()
    try:
        while True:
            while len(ahead) < n_ahead and (offset := next(offsets, None)) is not None:
                ahead.append((offset, asyncio.ensure_future(read(piece_bytes, offset))))
            if not ahead:
                return
            start, coming = ahead.popleft()
            data = await coming
            end = start
            while data:
                await hand_on(receive, data)
                end += len(data)
                if end - start >= piece_bytes:
                    break
                if end > size_bytes:
                    return
                data = await read(piece_bytes - (end - start), end)
            else:
                return  # the end of the file
    finally:
        for _, coming in ahead:
            await cancelled(coming)


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


class Output:
    """What a command prints: who takes it, and what is kept of its errors."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._errors = bytearray()

    @property
    def errors(self) -> bytes:
        """That of `RunningCommand`."""
        return bytes(self._errors)

    def redirect(self, receive: Receive) -> None:
        """That of `RunningCommand`."""
        self._receive = receive

    def complained(self, data: bytes) -> None:
        """It said so on its error output."""
        self._errors += data[: MAX_ERROR_BYTES - len(self._errors)]


class HostConnection(Protocol):
    """One logged-in connection. Methods raise HostErrors only, and let through what `receive` raises."""

    async def start(self, command: str, receive: Receive) -> RunningCommand:
        """Start a command whose standard output goes to `receive`."""

    async def open_files(self) -> RemoteFiles:
        """Open the files without a shell."""

    async def close(self) -> None:
        """Close the connection; never raises, never hangs."""


#: Connects to a host and logs in. Raises HostErrors only; `retryable` says whether trying again makes sense.
Dial = Callable[[HostSpec], Awaitable[HostConnection]]


async def run(
    connection: HostConnection, command: str, stdin: bytes, receive: Receive, *, hold_input: bool = False
) -> CommandResult:
    """Run a command to its end; errors are those of `RunningCommand`."""
    return await finish(await connection.start(command, receive), stdin, hold_input=hold_input)


async def finish(running: RunningCommand, stdin: bytes, *, hold_input: bool = False) -> CommandResult:
    """Give a command its last input and wait for its end; errors are those of `RunningCommand`.

    With `hold_input` its input ends only with the connection, so the command notices that. It is closed
    however the wait ends: nothing reaches its receiver after that.
    """
    try:
        running.send(stdin)
        del stdin  # the names of all files of a host: not to be kept until the last one has come
        if not hold_input:
            running.end_input()
        return await running.wait()
    finally:
        await running.close()
