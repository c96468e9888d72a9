"""Lists and reads files of a host by SFTP, with paramiko."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import Any

import paramiko
from paramiko.sftp import (
    CMD_CLOSE,
    CMD_OPENDIR,
    CMD_READ,
    CMD_READDIR,
    CMD_REALPATH,
    CMD_STATUS,
    int64,
)

from cluster_collect.entries import Allowance, RemoteEntry, kind_letter
from cluster_collect.threads import in_loop, in_thread
from cluster_collect.transports.protocol import Receive, hand_on
from cluster_collect.transports.ssh.by_paramiko.errors import ERRORS, closed, translated_sftp
from cluster_collect.transports.ssh.errors import lost
from cluster_collect.transports.ssh.handshake import below_home

#: What one answer holds: every server sends as much at once.
_PIECE_BYTES = 32 * 1024
#: Pieces that are asked for ahead. A cut connection loses no more than these, and no more wait in memory.
_N_AHEAD = 256
#: As much is handed on at once.
_READ_BYTES = 128 * 1024


class ParamikoFiles:
    """SFTP by paramiko, one request after the other but within a file; paths stay bytes.

    paramiko reads the names in answers as UTF-8 and fails where one is not, so that answers that hold names
    are read here.
    """

    def __init__(self, client: paramiko.SFTPClient) -> None:
        self._client = client
        self._turn = asyncio.Lock()

    async def _call(self, call: Any, *arguments: Any) -> Any:
        async with self._turn:
            try:
                return await in_thread(call, *arguments)
            except ERRORS as error:
                raise (lost(str(error)) if self._is_cut() else translated_sftp(error)) from None

    def _is_cut(self) -> bool:
        channel = self._client.get_channel()
        return channel is None or channel.closed or not channel.get_transport().is_active()

    def _ask(self, kind: Any, what: bytes) -> paramiko.Message:
        """Ask one question, and return the answer as bytes that are not read yet."""
        client: Any = self._client  # it has no public way to that
        _, answer = client._request(kind, what)
        assert isinstance(answer, paramiko.Message)
        return answer

    async def real_path(self, path: bytes) -> bytes:
        """Return the absolute path, links resolved."""

        def resolve() -> bytes:
            answer = self._ask(CMD_REALPATH, below_home(path))
            if answer.get_int() != 1:
                raise paramiko.SFTPError("the path has several names")
            return bytes(answer.get_string())

        found: bytes = await self._call(resolve)
        return found

    async def scan(self, directory: bytes, allowance: Allowance) -> list[RemoteEntry]:
        """Return what lies in a directory."""

        attributes_of: Any = paramiko.SFTPAttributes._from_msg  # type: ignore[attr-defined]

        def scan() -> list[RemoteEntry]:
            opened = self._ask(CMD_OPENDIR, directory)
            handle = opened.get_string()
            found: list[RemoteEntry] = []
            try:
                while True:
                    answer = self._ask(CMD_READDIR, handle)
                    for _ in range(answer.get_int()):
                        name, _long_name = answer.get_string(), answer.get_string()
                        allowance.take_entry(len(name))
                        attributes = attributes_of(answer)
                        if name not in (b".", b".."):
                            found.append(_entry(name, attributes))
            except EOFError:
                self._ask(CMD_CLOSE, handle)
            return found

        found: list[RemoteEntry] = await self._call(scan)
        return found

    async def stat(self, path: bytes) -> RemoteEntry:
        """Return one file's entry."""
        return _entry(path, await self._call(self._client.lstat, path))

    async def read(self, path: bytes, size_bytes: int, receive: Receive, begin: int = 0) -> None:
        """Read a file in order."""
        loop = asyncio.get_running_loop()

        def read() -> None:
            with self._client.open(path, "rb") as file:
                read_bytes = bytearray()
                for piece in _pieces(self._client, file.handle, begin, size_bytes + 1):
                    read_bytes += piece
                    if len(read_bytes) >= _READ_BYTES:
                        in_loop(loop, partial(hand_on, receive, bytes(read_bytes)))
                        read_bytes.clear()
                if read_bytes:
                    in_loop(loop, partial(hand_on, receive, bytes(read_bytes)))

        await self._call(read)

    async def close(self) -> None:
        """End SFTP."""
        await closed(self._client.close)


def _entry(path: bytes, attributes: paramiko.SFTPAttributes) -> RemoteEntry:
    kind = "?" if attributes.st_mode is None else kind_letter(attributes.st_mode)
    return RemoteEntry(path, kind, attributes.st_size or 0, int(attributes.st_mtime or 0) * 1_000_000_000)


class _Answers(dict[int, tuple[int, paramiko.Message]]):
    """Answers to questions that were asked ahead, by the number of the question."""

    def _async_response(self, kind: int, answer: paramiko.Message, number: int) -> None:
        self[number] = kind, answer


def _pieces(client: Any, handle: Any, begin: int, end: int) -> Iterator[bytes]:
    """Yield what a file holds from `begin` to `end`, in order, and stop where it ends.

    `prefetch` of paramiko asks in another thread. Where all that it has asked for so far is answered, it is
    taken to have come to its end: then everything behind that is asked for once more.
    """
    answers, asked, at = _Answers(), deque[tuple[int, int, int]](), begin
    while asked or at < end:
        while at < end and len(asked) < _N_AHEAD:
            length = min(_PIECE_BYTES, end - at)
            number = client._async_request(answers, CMD_READ, handle, int64(at), length)
            asked.append((number, at, at + length))
            at += length
        number, here, until = asked.popleft()
        while number not in answers:
            client._read_response()
        kind, answer = answers.pop(number)
        try:
            if kind == CMD_STATUS:
                client._convert_status(answer)
            while piece := bytes(answer.get_string()):
                yield piece
                here += len(piece)
                if here == until:
                    break
                # A server may send less than it is asked for.
                _, answer = client._request(CMD_READ, handle, int64(here), until - here)
        except EOFError:
            return
        if here < until:
            return
