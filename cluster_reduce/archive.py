"""The answer: an archive as tar makes it, of columns and of files as they are."""

from __future__ import annotations

import io
import os
import tarfile
from typing import BinaryIO

_BLOCK_BYTES = 1 << 16
_STDERR = 2


class Archive:
    """Writes an archive to a stream."""

    def __init__(self, stream: BinaryIO) -> None:
        self._tar = tarfile.open(  # noqa: SIM115 - `close` closes it
            fileobj=stream, mode="w|", bufsize=_BLOCK_BYTES, format=tarfile.GNU_FORMAT, encoding="utf-8"
        )

    def add_content(self, name: bytes, content: bytes) -> None:
        """Add a file with this content."""
        self._tar.addfile(_header(name, len(content)), io.BytesIO(content))

    def add_file(self, name: bytes) -> None:
        """Add a file as it is; one that cannot be opened is left out, with the reason on standard error."""
        try:
            # A fifo that took the file's place must not hold this up.
            descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            line = b"./%b: %b\n" % (name, (error.strerror or "cannot be opened").encode())
            os.write(_STDERR, line)
            return
        with os.fdopen(descriptor, "rb") as stream:
            size_bytes = os.fstat(descriptor).st_size
            self._tar.addfile(_header(name, size_bytes), _Padded(stream))

    def close(self) -> None:
        """Write the end."""
        self._tar.close()


class _Padded(io.RawIOBase):
    """A file that became shorter meanwhile is padded with zeros, as by tar; the last listing shows it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        return self._stream.read(size).ljust(max(0, size), b"\0")


def _header(name: bytes, size_bytes: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo("./" + name.decode("utf-8", "surrogateescape"))
    header.size = size_bytes
    return header
