"""What happens on a connection that asyncssh has made: commands, and files by SFTP."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import asyncssh

from cluster_collect.entries import Allowance, RemoteEntry, kind_letter
from cluster_collect.transports.protocol import (
    CommandResult,
    Output,
    Receive,
    RemoteFiles,
    RunningCommand,
    read_in_order,
    take_nothing,
)
from cluster_collect.transports.ssh.by_asyncssh.errors import our_errors, translated
from cluster_collect.transports.ssh.errors import no_commands, no_way_to_files
from cluster_collect.transports.ssh.handshake import below_home
from cluster_collect.transports.ssh.sessions import SessionOpener

_CLOSE_DEADLINE_S = 3.0
#: Pieces of a file that are asked for ahead, and their size.
_N_AHEAD, _PIECE_BYTES = 16, 255 * 1024


class AsyncsshConnection:
    """One logged-in connection."""

    def __init__(self, connection: asyncssh.SSHClientConnection, window_bytes: int) -> None:
        self._connection = connection
        self._window_bytes = window_bytes
        self._sessions = SessionOpener(self._refused)

    def _refused(self, error: Exception) -> bool:
        is_refusal = (
            isinstance(error, asyncssh.ChannelOpenError) and error.code == asyncssh.OPEN_CONNECT_FAILED
        )
        return is_refusal and not self._connection.is_closed()

    async def start(self, command: str, receive: Receive) -> RunningCommand:
        """Start a command; its output goes to `receive` straight from the packet."""

        async def begin() -> _Command:
            running = _Command(receive)
            await self._connection.create_session(
                lambda: running,
                command,
                encoding=None,
                window=self._window_bytes,
                request_pty=False,
            )
            return running

        try:
            return await self._sessions.opened(begin)
        except asyncssh.ChannelOpenError as error:
            raise translated(error) if self._connection.is_closed() else no_commands(error.reason) from None
        except (OSError, asyncssh.Error) as error:
            raise translated(error) from None

    async def open_files(self) -> RemoteFiles:
        """Start SFTP."""
        try:
            begin = partial(self._connection.start_sftp_client, path_encoding=None)
            return _Files(await self._sessions.opened(begin))
        except (OSError, asyncssh.Error) as error:
            came = "" if isinstance(error, asyncssh.ChannelOpenError) else str(error)
            raise translated(error) if self._connection.is_closed() else no_way_to_files(came) from None

    async def close(self) -> None:
        """Close the connection."""
        await close(self._connection)


async def close(connection: asyncssh.SSHClientConnection) -> None:
    """Close a connection, with force where it does not end by itself."""
    connection.close()
    try:
        await asyncio.wait_for(connection.wait_closed(), _CLOSE_DEADLINE_S)
    except (OSError, asyncssh.Error, asyncio.TimeoutError):
        connection.abort()


class _Command(Output, asyncssh.SSHClientSession):  # type: ignore[type-arg]
    """A command that runs on a host: hands its output to a receiver straight from the packet.

    `_ended` is done when the command is; it holds the error that ended it, be it the receiver's.
    """

    def __init__(self, receive: Receive) -> None:
        super().__init__(receive)
        self._channel: Any = None
        self._resume_at_s = 0.0
        self._pausing: asyncio.Handle | None = None
        self._resume: asyncio.TimerHandle | None = None
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Fetched when nobody waits for it, or asyncio would report it as forgotten.
        self._ended.add_done_callback(lambda ended: ended.cancelled() or ended.exception())

    def send(self, data: bytes) -> None:
        # Input for a command that has ended is dropped.
        if not self._channel.is_closing():
            self._channel.write(data)

    def end_input(self) -> None:
        if not self._channel.is_closing():
            self._channel.write_eof()

    async def wait(self) -> CommandResult:
        with our_errors():
            await asyncio.shield(self._ended)
        return CommandResult(self._channel.get_exit_status(), self.errors)

    async def close(self) -> None:
        self._receive = take_nothing
        self._cancel_resume()
        if self._pausing is not None:
            self._pausing.cancel()
        self._channel.abort()

    def connection_made(self, chan: Any) -> None:
        self._channel = chan

    def data_received(self, data: Any, datatype: int | None) -> None:
        if datatype == asyncssh.EXTENDED_DATA_STDERR:
            self.complained(data)
            return
        pause_s = self._taken(data)
        if pause_s > 0:
            # Not at once: with the first packet that it gives us, asyncssh lets the host send as much again
            # as it still keeps for us. So we take all that it keeps, and pause for all of that.
            loop = asyncio.get_running_loop()
            self._resume_at_s = loop.time() + pause_s
            if self._pausing is None:
                self._pausing = loop.call_soon(self._pause)

    def connection_lost(self, exc: Exception | None) -> None:
        """The channel is closed, by its end or with the connection."""
        self._end(exc)

    def _taken(self, data: bytes) -> float:
        """Give output to the receiver and return the pause it asks for; what it raises is the end."""
        try:
            return self._receive(data)
        except Exception as error:
            self._end(error)
            self._receive = take_nothing
            return 0.0

    def _end(self, error: Exception | None) -> None:
        """The command has ended; only the first reason counts."""
        if self._ended.done():
            return
        if error is None:
            self._ended.set_result(None)
        else:
            self._ended.set_exception(error)

    def _pause(self) -> None:
        self._pausing = None
        self._channel.pause_reading()
        self._cancel_resume()
        self._resume = asyncio.get_running_loop().call_at(self._resume_at_s, self._channel.resume_reading)

    def _cancel_resume(self) -> None:
        if self._resume is not None:
            self._resume.cancel()


class _Files:
    """SFTP; paths stay bytes, reads are sent ahead and handed on in order."""

    def __init__(self, client: asyncssh.SFTPClient) -> None:
        self._client = client

    async def real_path(self, path: bytes) -> bytes:
        with our_errors():
            found = await self._client.realpath(below_home(path))
        return found if isinstance(found, bytes) else str(found).encode()

    async def scan(self, directory: bytes, allowance: Allowance) -> list[RemoteEntry]:
        entries: list[RemoteEntry] = []
        with our_errors():
            async for name in self._client.scandir(directory):
                if name.filename not in (b".", b".."):
                    allowance.take_entry(len(name.filename))
                    entries.append(_entry(bytes(name.filename), name.attrs))  # type: ignore[arg-type]
        return entries

    async def stat(self, path: bytes) -> RemoteEntry:
        with our_errors():
            return _entry(path, await self._client.lstat(path))

    async def read(self, path: bytes, size_bytes: int, receive: Receive, begin: int = 0) -> None:
        with our_errors():
            # Without a block size of its own it sends each read as it is; with one, reads that a lost
            # connection interrupts would be reported as forgotten.
            async with self._client.open(path, "rb", encoding=None, block_size=0) as file:
                await read_in_order(file.read, begin, size_bytes, receive, _N_AHEAD, _PIECE_BYTES)

    async def close(self) -> None:
        self._client.exit()


def _entry(path: bytes, attributes: asyncssh.SFTPAttrs) -> RemoteEntry:
    mode = attributes.permissions
    kind = "?" if mode is None else kind_letter(mode)
    mtime_ns = int(attributes.mtime or 0) * 1_000_000_000 + int(attributes.mtime_ns or 0)
    return RemoteEntry(path, kind, attributes.size or 0, mtime_ns)
