"""Files that are there whole or not at all, and locks on files."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

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


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Have errors of the system name the file that is written: that of a full disk names none."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def write_bytes_whole(path: Path, content: bytes) -> None:
    """Write `content` to `path`, whole or not at all."""
    with naming(path), written_whole(path) as stream:
        stream.write(content)


def write_text_whole(path: Path, text: str) -> None:
    """Write `text` to `path` as UTF-8, whole or not at all."""
    write_bytes_whole(path, utf8(text))


def utf8(text: str) -> bytes:
    """Return `text` in UTF-8; a byte of a path that is not UTF-8 becomes `\\udcff`, which JSON reads back."""
    return text.encode("utf-8", "backslashreplace")


def json_of(text: str | bytes) -> Any:
    """Return what a text of JSON holds.

    Raises:
        ValueError: it is none, or is nested too deeply: that may come from somebody else, too.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def lock_file(path: Path, *, wait: bool, mode: int = 0o644) -> int | None:
    """Return the descriptor of the file `path` (made when missing), locked until that is closed.

    The kernel frees it when its holder dies, on whichever host of a shared file system. The holder may
    remove the file before it closes it. None where another holds it, and we do not wait.

    Raises:
        OSError: the file cannot be opened, or its file system knows no locks.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if _is_still(descriptor, path):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its holder removed it between our open and our lock


@contextmanager
def lock_held(path: Path) -> Iterator[int | None]:
    """Hold the lock of the file `path`; yields its descriptor, or None where another process holds it.

    Nobody else may read the file. A process that inherits the descriptor holds it on.
    """
    descriptor = lock_file(path, wait=False, mode=0o600)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _is_still(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False
