"""SFTP by asyncssh: many requests on the way, the pieces handed on in order."""

from __future__ import annotations

import asyncssh

from cluster_collect.entries import Allowance, RemoteEntry, kind_letter
from cluster_collect.transports.protocol import Receive, read_in_order
from cluster_collect.transports.ssh.by_asyncssh.errors import our_errors

_N_AHEAD, _PIECE_BYTES = 16, 255 * 1024


class AsyncsshFiles:
    """SFTP by asyncssh; paths stay bytes, reads are sent ahead and handed on in order."""

    def __init__(self, client: asyncssh.SFTPClient) -> None:
        self._client = client

    async def real_path(self, path: bytes) -> bytes:
        """Return the absolute path, links resolved."""
        home_free = path[2:] if path.startswith(b"~/") else b"." if path == b"~" else path
        with our_errors():
            found = await self._client.realpath(home_free)
        return found if isinstance(found, bytes) else str(found).encode()

    async def scan(self, directory: bytes, allowance: Allowance) -> list[RemoteEntry]:
        """Return what lies in a directory."""
        entries: list[RemoteEntry] = []
        with our_errors():
            async for name in self._client.scandir(directory):
                if name.filename not in (b".", b".."):
                    allowance.take_entry(len(name.filename))
                    entries.append(_entry(bytes(name.filename), name.attrs))  # type: ignore[arg-type]
        return entries

    async def stat(self, path: bytes) -> RemoteEntry:
        """Return one file's entry."""
        with our_errors():
            return _entry(path, await self._client.lstat(path))

    async def read(self, path: bytes, size_bytes: int, receive: Receive, begin: int = 0) -> None:
        """Read a file in order, one piece further than `size_bytes` to see that it has grown."""
        with our_errors():
            # Without a block size of its own it sends each read as it is; with one, reads that a lost
            # connection interrupts would be reported as forgotten.
            async with self._client.open(path, "rb", encoding=None, block_size=0) as file:
                await read_in_order(file.read, begin, size_bytes, receive, _N_AHEAD, _PIECE_BYTES)

    async def close(self) -> None:
        """End SFTP."""
        self._client.exit()


def _entry(path: bytes, attributes: asyncssh.SFTPAttrs) -> RemoteEntry:
    mode = attributes.permissions
    kind = "?" if mode is None else kind_letter(mode)
    mtime_ns = int(attributes.mtime or 0) * 1_000_000_000 + int(attributes.mtime_ns or 0)
    return RemoteEntry(path, kind, attributes.size or 0, mtime_ns)
