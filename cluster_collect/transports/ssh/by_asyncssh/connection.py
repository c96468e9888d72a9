"""What happens on a connection that asyncssh has made: commands, and the way to files."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncssh

from cluster_collect.transports.protocol import MAX_ERROR_BYTES, CommandResult, Receive, RemoteFiles
from cluster_collect.transports.ssh.by_asyncssh.errors import our_errors, translated
from cluster_collect.transports.ssh.by_asyncssh.files import AsyncsshFiles
from cluster_collect.transports.ssh.errors import no_commands, no_way_to_files

_CLOSE_DEADLINE_S = 3.0


class AsyncsshConnection:
    """One logged-in connection."""

    def __init__(self, connection: asyncssh.SSHClientConnection, window_bytes: int) -> None:
        self._connection = connection
        self._window_bytes = window_bytes

    async def start(self, command: str, receive: Receive) -> AsyncsshCommand:
        """Start a command; its output goes to `receive` straight from the packet."""
        running = AsyncsshCommand(receive)
        try:
            await self._connection.create_session(
                lambda: running,
                command,
                encoding=None,
                window=self._window_bytes,
                request_pty=False,
            )
        except asyncssh.ChannelOpenError as error:
            raise translated(error) if self._connection.is_closed() else no_commands(error.reason) from None
        except (OSError, asyncssh.Error) as error:
            raise translated(error) from None
        return running

    async def open_files(self) -> RemoteFiles:
        """Start SFTP."""
        try:
            return AsyncsshFiles(await self._connection.start_sftp_client(path_encoding=None))
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


class AsyncsshCommand(asyncssh.SSHClientSession):  # type: ignore[type-arg]
    """A command that runs on a host: hands its output to a receiver straight from the packet.

    It keeps the first 64 KiB of errors. `_ended` is done when the command is; it holds the error that ended
    it, be it the receiver's.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive: Receive | None = receive
        self._errors = bytearray()
        self._channel: Any = None
        self._resume_at_s = 0.0
        self._pausing: asyncio.Handle | None = None
        self._resume: asyncio.TimerHandle | None = None
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Fetched when nobody waits for it, or asyncio would report it as forgotten.
        self._ended.add_done_callback(lambda ended: ended.cancelled() or ended.exception())

    @property
    def errors(self) -> bytes:
        """What it has said on its error output."""
        return bytes(self._errors)

    def redirect(self, receive: Receive) -> None:
        """Give its further output to `receive`."""
        self._receive = receive

    def send(self, data: bytes) -> None:
        """Give it more input; input for a command that has ended is dropped."""
        if not self._channel.is_closing():
            self._channel.write(data)

    def end_input(self) -> None:
        """Tell it that no more input comes."""
        if not self._channel.is_closing():
            self._channel.write_eof()

    async def wait(self) -> CommandResult:
        """Wait for its end."""
        with our_errors():
            await asyncio.shield(self._ended)
        return CommandResult(self._channel.get_exit_status(), self.errors)

    async def close(self) -> None:
        """End it if it still runs."""
        self._forget()
        self._channel.abort()

    def connection_made(self, chan: Any) -> None:
        """Keep the channel."""
        self._channel = chan

    def data_received(self, data: Any, datatype: int | None) -> None:
        """Pass it on, and let the sender pause where that is asked for."""
        if datatype == asyncssh.EXTENDED_DATA_STDERR:
            self._errors += data[: MAX_ERROR_BYTES - len(self._errors)]
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
        if self._receive is None:
            return 0.0
        try:
            return self._receive(data)
        except Exception as error:
            self._end(error)
            self._receive = None
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

    def _forget(self) -> None:
        """Drop whatever still arrives."""
        self._receive = None
        self._cancel_resume()
        if self._pausing is not None:
            self._pausing.cancel()

    def _cancel_resume(self) -> None:
        if self._resume is not None:
            self._resume.cancel()
