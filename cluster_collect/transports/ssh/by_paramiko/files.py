"""SFTP by paramiko."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import paramiko
from paramiko.sftp import CMD_CLOSE, CMD_OPENDIR, CMD_READDIR, CMD_REALPATH

from cluster_collect.entries import Allowance, RemoteEntry, kind_letter
from cluster_collect.threads import in_loop, in_thread
from cluster_collect.transports.protocol import Receive, hand_on
from cluster_collect.transports.ssh.by_paramiko.errors import ERRORS, closed, translated_sftp
from cluster_collect.transports.ssh.errors import lost

_READ_BYTES = 128 * 1024
#: Bytes that are asked for ahead. A cut connection loses no more than this, and no more waits in memory.
_PORTION_BYTES = 8 << 20


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
                raise (lost("", str(error)) if self._is_cut() else translated_sftp(error)) from None

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
        home_free = path[2:] if path.startswith(b"~/") else b"." if path == b"~" else path

        def resolve() -> bytes:
            answer = self._ask(CMD_REALPATH, home_free)
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
                file.seek(begin)
                for portion in range(begin, size_bytes + 1, _PORTION_BYTES):
                    n_left = min(_PORTION_BYTES, size_bytes + 1 - portion)
                    # Portions keep the list of requests short. With its own limit on requests paramiko
                    # takes a short pause for the end, and reads everything twice.
                    file.prefetch(portion + n_left)
                    while n_left > 0 and (data := file.read(min(_READ_BYTES, n_left))):
                        n_left -= len(data)
                        in_loop(loop, partial(hand_on, receive, data))
                    if n_left:
                        return

        await self._call(read)

    async def close(self) -> None:
        """End SFTP."""
        await closed(self._client.close)


def _entry(path: bytes, attributes: paramiko.SFTPAttributes) -> RemoteEntry:
    kind = "?" if attributes.st_mode is None else kind_letter(attributes.st_mode)
    return RemoteEntry(path, kind, attributes.st_size or 0, int(attributes.st_mtime or 0) * 1_000_000_000)
