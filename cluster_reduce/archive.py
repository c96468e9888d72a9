"""The answer: an archive as tar makes it, of columns and of files as they are."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from typing import IO

_BLOCK_BYTES = 512
_PIECE_BYTES = 1 << 16
_STDOUT, _STDERR = 1, 2


class PackedOutput:
    """Standard output behind a compressor, a line of the shell; without one where that is empty.

    What comes after a `flush` is packed as a stream of its own: a compressor keeps what it has until it has
    enough.
    """

    def __init__(self, packer: str) -> None:
        self._packer = packer
        self._process: subprocess.Popen[bytes] | None = None
        self._stream: IO[bytes] | None = None if packer else os.fdopen(_STDOUT, "wb", _PIECE_BYTES)

    @property
    def descriptor(self) -> int:
        """What a child must close, or the compressor never sees its end."""
        return _STDOUT if self._stream is None else self._stream.fileno()

    def write(self, data: bytes) -> None:
        """Write."""
        if self._stream is None:
            self._process = subprocess.Popen(  # noqa: S603 - from the program that brought this one
                ("/bin/sh", "-c", self._packer), stdin=subprocess.PIPE, bufsize=_PIECE_BYTES
            )
            self._stream = self._process.stdin
        assert self._stream is not None
        self._stream.write(data)

    def flush(self) -> None:
        """Send all that has been written.

        Raises:
            BrokenPipeError: nobody takes it.
        """
        if self._stream is None:
            return
        if not self._packer:
            self._stream.flush()
            return
        self._stream.close()
        self._stream = None
        if self._process is not None and self._process.wait() != 0:
            raise BrokenPipeError


class Archive:
    """Writes an archive to a stream."""

    def __init__(self, output: PackedOutput) -> None:
        self._output = output

    def add_content(self, name: bytes, content: bytes) -> None:
        """Add a file with this content."""
        self._add(name, len(content), io.BytesIO(content))

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
            self._add(name, os.fstat(descriptor).st_size, stream)

    def add_sign_of_life(self) -> None:
        """Add a header that says nothing of any file."""
        comment = b"14 comment=on\n"
        header = tarfile.TarInfo("works")
        header.type = tarfile.XGLTYPE
        header.size = len(comment)
        self._write(header, io.BytesIO(comment))

    def close(self) -> None:
        """Write the end."""
        self._output.write(bytes(2 * _BLOCK_BYTES))

    def _add(self, name: bytes, size_bytes: int, content: IO[bytes]) -> None:
        header = tarfile.TarInfo("./" + name.decode("utf-8", "surrogateescape"))
        header.size = size_bytes
        self._write(header, content)

    def _write(self, header: tarfile.TarInfo, content: IO[bytes]) -> None:
        self._output.write(header.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape"))
        left_bytes = header.size
        while left_bytes:
            n_bytes = min(left_bytes, _PIECE_BYTES)
            # A file that became shorter meanwhile is padded with zeros, as by tar; the last listing shows it.
            self._output.write(content.read(n_bytes).ljust(n_bytes, b"\0"))
            left_bytes -= n_bytes
        self._output.write(bytes(-header.size % _BLOCK_BYTES))
