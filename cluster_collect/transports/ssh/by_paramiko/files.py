"""SFTP by paramiko."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import paramiko

from cluster_collect.entries import RemoteEntry, kind_letter
from cluster_collect.faults import HostileDataError, RemoteFailureError
from cluster_collect.threads import in_loop, in_thread
from cluster_collect.transports.protocol import Receive
from cluster_collect.transports.ssh.by_paramiko.errors import ERRORS, closed, translated_sftp
from cluster_collect.transports.ssh.errors import lost

_READ_BYTES = 128 * 1024
#: So much is asked for ahead: a cut loses no more where this end is slow, and no more waits in memory.
_PORTION_BYTES = 8 << 20


class ParamikoFiles:
    """SFTP by paramiko, one request after the other but within a file; names must be UTF-8 for it."""

    def __init__(self, client: paramiko.SFTPClient) -> None:
        self._client = client
        self._turn = asyncio.Lock()

    async def _call(self, call: Any, *arguments: Any) -> Any:
        async with self._turn:
            try:
                return await in_thread(call, *arguments)
            except UnicodeDecodeError:
                raise RemoteFailureError(
                    "a name is not UTF-8, which paramiko cannot read", "use transport: asyncssh"
                ) from None
            except ERRORS as error:
                raise (lost("", str(error)) if self._is_cut() else translated_sftp(error)) from None

    def _is_cut(self) -> bool:
        channel = self._client.get_channel()
        return channel is None or channel.closed or not channel.get_transport().is_active()

    async def real_path(self, path: bytes) -> bytes:
        """Return the absolute path, links resolved."""
        home_free = path[2:] if path.startswith(b"~/") else b"." if path == b"~" else path
        return os.fsencode(await self._call(self._client.normalize, os.fsdecode(home_free)))

    async def scan(self, directory: bytes, max_entries: int) -> list[RemoteEntry]:
        """Return what lies in a directory."""

        def scan() -> list[RemoteEntry]:
            found = []
            for attributes in self._client.listdir_iter(os.fsdecode(directory)):
                found.append(_entry(os.fsencode(attributes.filename), attributes))
                if len(found) > max_entries:
                    raise HostileDataError(f"a directory holds more than {max_entries} entries")
            return found

        found: list[RemoteEntry] = await self._call(scan)
        return found

    async def stat(self, path: bytes) -> RemoteEntry:
        """Return one file's entry."""
        return _entry(path, await self._call(self._client.lstat, os.fsdecode(path)))

    async def read(self, path: bytes, size_bytes: int, receive: Receive, begin: int = 0) -> None:
        """Read a file in order."""
        loop = asyncio.get_running_loop()

        async def deliver(data: bytes) -> None:
            pause_s = receive(data)
            if pause_s > 0:
                await asyncio.sleep(pause_s)

        def read() -> None:
            with self._client.open(os.fsdecode(path), "rb") as file:
                file.seek(begin)
                for portion in range(begin, size_bytes + 1, _PORTION_BYTES):
                    n_left = min(_PORTION_BYTES, size_bytes + 1 - portion)
                    # Portions keep the list of requests short. With its own limit on requests paramiko
                    # takes a short pause for the end, and reads everything twice.
                    file.prefetch(portion + n_left)
                    while n_left > 0 and (data := file.read(min(_READ_BYTES, n_left))):
                        n_left -= len(data)
                        in_loop(loop, deliver(data))
                    if n_left:
                        return

        await self._call(read)

    async def close(self) -> None:
        """End SFTP."""
        await closed(self._client.close)


def _entry(path: bytes, attributes: paramiko.SFTPAttributes) -> RemoteEntry:
    kind = "?" if attributes.st_mode is None else kind_letter(attributes.st_mode)
    return RemoteEntry(path, kind, attributes.st_size or 0, int(attributes.st_mtime or 0) * 1_000_000_000)
