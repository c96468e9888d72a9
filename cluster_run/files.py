"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

#: Mode of the file, less the process's umask.
_MODE = 0o666
#: A temporary name holds only this much of a long name: it must fit into 255 bytes.
_MAX_NAME_SHOWN = 40


@contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file beside `path`; rename it to `path` when the block ends without an error.

    The directory is made when missing. After an error neither the temporary file nor a half-written
    `path` is left; an older `path` stays as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name[:_MAX_NAME_SHOWN]}.{secrets.token_hex(6)}.part"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_bytes_whole(path: Path, content: bytes) -> None:
    """Write `content` to `path`, whole or not at all."""
    with written_whole(path) as stream:
        stream.write(content)


def write_text_whole(path: Path, text: str) -> None:
    """Write `text` to `path` as UTF-8, whole or not at all."""
    write_bytes_whole(path, utf8(text))


def utf8(text: str) -> bytes:
    """Return `text` in UTF-8; a byte of a path that is not UTF-8 becomes `\\udcff`, which JSON reads back."""
    return text.encode("utf-8", "backslashreplace")
