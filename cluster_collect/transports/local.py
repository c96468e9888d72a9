"""A directory of this machine (a shared file system) in the place of a connection."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from cluster_collect.entries import Allowance, RemoteEntry, kind_letter
from cluster_collect.faults import RemoteFailureError
from cluster_collect.threads import in_thread
from cluster_collect.transports.protocol import (
    CommandResult,
    Output,
    Receive,
    RemoteFiles,
    hand_on,
    read_in_order,
)
from cluster_collect.watchdog import cancelled

_T = TypeVar("_T")
_P = ParamSpec("_P")
_PIECE_BYTES = 1 << 20


class LocalConnection:
    """Runs commands and reads files here."""

    async def start(self, command: str, receive: Receive) -> LocalCommand:
        """Start a command with `sh`."""
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        return LocalCommand(process, receive)

    async def open_files(self) -> RemoteFiles:
        """Return the local file system."""
        return _Files()

    async def close(self) -> None:
        """Nothing is open."""


class LocalCommand(Output):
    """A command of this machine."""

    def __init__(self, process: asyncio.subprocess.Process, receive: Receive) -> None:
        super().__init__(receive)
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise RemoteFailureError("the command has no pipes")
        self._process = process
        self._stdin = process.stdin
        self._complaining = asyncio.ensure_future(self._hear(process.stderr))
        self._ended = asyncio.ensure_future(self._listen(process.stdout))

    def send(self, data: bytes) -> None:
        """Give it more input."""
        self._stdin.write(data)

    def end_input(self) -> None:
        """Tell it that no more input comes."""
        self._stdin.close()

    async def wait(self) -> CommandResult:
        """Wait for its end."""
        return CommandResult(await asyncio.shield(self._ended), self.errors)

    async def close(self) -> None:
        """End it if it still runs."""
        if self._process.returncode is None:
            self._process.kill()
        await cancelled(self._ended)
        await cancelled(self._complaining)
        await self._process.wait()

    async def _hear(self, stderr: asyncio.StreamReader) -> None:
        while data := await stderr.read(_PIECE_BYTES):
            self.complained(data)

    async def _listen(self, stdout: asyncio.StreamReader) -> int:
        while data := await stdout.read(_PIECE_BYTES):
            await hand_on(self._receive, data)
        await self._complaining
        return await self._process.wait()


class _Files:
    """The file system of this machine. Calls that may block run in threads: shared file systems hang."""

    async def real_path(self, path: bytes) -> bytes:
        return await _in_thread(path, lambda: os.path.realpath(os.path.expanduser(path)))

    async def scan(self, directory: bytes, allowance: Allowance) -> list[RemoteEntry]:
        return await _in_thread(directory, _scan, directory, allowance)

    async def stat(self, path: bytes) -> RemoteEntry:
        return await _in_thread(path, lambda: _entry(path, os.lstat(path)))

    async def read(self, path: bytes, size_bytes: int, receive: Receive, begin: int = 0) -> None:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = await _in_thread(path, os.open, path, flags)

        async def piece(n_bytes: int, offset: int) -> bytes:
            return await _in_thread(path, os.pread, descriptor, n_bytes, offset)

        try:
            await read_in_order(piece, begin, size_bytes, receive, 1, _PIECE_BYTES)
        finally:
            os.close(descriptor)

    async def close(self) -> None:
        """Nothing is open."""


async def _in_thread(path: bytes, call: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    try:
        return await in_thread(call, *args, **kwargs)
    except OSError as error:
        raise RemoteFailureError(f"{os.fsdecode(path)}: {error.strerror}") from None


def _scan(directory: bytes, allowance: Allowance) -> list[RemoteEntry]:
    found: list[RemoteEntry] = []
    with os.scandir(directory) as names:
        for name in names:
            allowance.take_entry(len(name.name))
            found.append(_entry(name.name, name.stat(follow_symlinks=False)))
    return found


def _entry(path: bytes, status: os.stat_result) -> RemoteEntry:
    return RemoteEntry(path, kind_letter(status.st_mode), status.st_size, status.st_mtime_ns)
