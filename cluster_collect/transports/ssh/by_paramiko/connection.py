"""What happens on a connection that paramiko has made: commands, and the way to files."""

from __future__ import annotations

import asyncio
import queue
import threading
from functools import partial

import paramiko

from cluster_collect.faults import HostError
from cluster_collect.threads import in_loop, in_thread
from cluster_collect.transports.protocol import (
    CommandResult,
    Output,
    Receive,
    RemoteFiles,
    RunningCommand,
    hand_on,
    take_nothing,
)
from cluster_collect.transports.ssh.by_paramiko.errors import ERRORS, closed, translated
from cluster_collect.transports.ssh.by_paramiko.files import ParamikoFiles
from cluster_collect.transports.ssh.errors import no_commands, no_way_to_files
from cluster_collect.transports.ssh.sessions import SessionOpener

_READ_BYTES = 128 * 1024


class ParamikoConnection:
    """One logged-in connection; `opened` holds its jump connections, the target last."""

    def __init__(self, opened: list[paramiko.Transport], window_bytes: int) -> None:
        self._opened = opened
        self._window_bytes = window_bytes
        self._commands: list[_Command] = []
        self._sessions = SessionOpener(lambda error: isinstance(error, paramiko.ChannelException))

    async def start(self, command: str, receive: Receive) -> RunningCommand:
        """Start a command; its output crosses from a thread into the loop piece by piece."""
        try:
            channel = await self._sessions.opened(partial(in_thread, self._start, command))
        except ERRORS as error:
            raise self._broken(error) or no_commands() from None
        self._commands.append(_Command(channel, receive))
        return self._commands[-1]

    def _start(self, command: str) -> paramiko.Channel:
        channel = self._opened[-1].open_session(window_size=self._window_bytes)
        channel.exec_command(command)
        return channel

    async def open_files(self) -> RemoteFiles:
        """Start SFTP."""
        try:
            begin = partial(in_thread, paramiko.SFTPClient.from_transport, self._opened[-1])
            client = await self._sessions.opened(begin)
        except ERRORS as error:
            raise self._broken(error) or no_way_to_files(_spoiling(error)) from None
        if client is None:
            raise no_way_to_files()
        return ParamikoFiles(client)

    def _broken(self, error: Exception) -> HostError | None:
        return None if self._opened[-1].is_active() else translated(error)

    async def close(self) -> None:
        """Close the connection and those it went through."""
        for command in self._commands:
            command.forget()
        for transport in reversed(self._opened):
            await closed(transport.close)


def _spoiling(error: Exception) -> str:
    """Return what is wrong with the SFTP of a host that offers some; empty where it offers none."""
    return str(error) if isinstance(error, paramiko.SFTPError) else ""


class _Command(Output):
    """A command that runs on a host: one thread sends, another receives."""

    def __init__(self, channel: paramiko.Channel, receive: Receive) -> None:
        super().__init__(receive)
        self._channel = channel
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        # A long list of names is sent while the answer already comes, or both ends could wait for each other.
        threading.Thread(target=self._send_all, daemon=True).start()
        self._ended = asyncio.ensure_future(in_thread(self._receive_all))
        # Fetched when nobody waits for it, or asyncio would report it as forgotten.
        self._ended.add_done_callback(lambda ended: ended.cancelled() or ended.exception())

    def send(self, data: bytes) -> None:
        self._outgoing.put(data)

    def end_input(self) -> None:
        self._outgoing.put(None)

    async def wait(self) -> CommandResult:
        try:
            status = await asyncio.shield(self._ended)
        except ERRORS as error:
            raise translated(error) from None
        return CommandResult(status if status >= 0 else None, self.errors)

    async def close(self) -> None:
        self.forget()
        await closed(self._channel.close)
        await asyncio.wait((self._ended,))

    def forget(self) -> None:
        """Let the sending thread go, and drop whatever still arrives."""
        self._outgoing.put(None)
        self._receive = take_nothing

    def _send_all(self) -> None:
        try:
            while (data := self._outgoing.get()) is not None:
                self._channel.sendall(data)
            self._channel.shutdown_write()
        except ERRORS:
            return  # the receiver meets the same end and reports it

    def _receive_all(self) -> int:
        channel = self._channel
        while data := channel.recv(_READ_BYTES):
            in_loop(self._loop, partial(hand_on, self._receive, data))
            while channel.recv_stderr_ready():
                self.complained(channel.recv_stderr(_READ_BYTES))
        while more := channel.recv_stderr(_READ_BYTES):
            self.complained(more)
        transport = channel.get_transport()
        if not channel.exit_status_ready() and not transport.is_active():
            raise EOFError
        return channel.recv_exit_status()
