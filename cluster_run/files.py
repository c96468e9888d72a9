"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_MODE = 0o644


@contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file beside `path`; rename it to `path` when the block ends without an error.

    The directory is made when missing. After an error neither the temporary file nor a half-written
    `path` is left; an older `path` stays as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, _MODE)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_bytes_whole(path: Path, content: bytes) -> None:
    """Write `content` to `path`, whole or not at all."""
    with written_whole(path) as stream:
        stream.write(content)


def write_text_whole(path: Path, text: str) -> None:
    """Write `text` to `path` as UTF-8, whole or not at all."""
    write_bytes_whole(path, text.encode())
