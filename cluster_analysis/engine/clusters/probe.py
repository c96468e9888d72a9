"""Questions to a worker before work starts: does it see the run, and may it write where the output goes?

It runs on the workers, so it needs the standard library only.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_HEAD_BYTES = 64 * 1024
_TOKEN_NAME = "token"  # noqa: S105  a file's name


@dataclass(frozen=True)
class FileMark:
    """Identity of a file."""

    path: str
    size_bytes: int
    head_sha256: str


@dataclass(frozen=True)
class Probe:
    """Files of the run, and a directory that was made for this question; empty where none could be made."""

    files: tuple[FileMark, ...]
    directory: str
    token: str


@dataclass(frozen=True)
class Seen:
    """A worker's answer: why it cannot read the run (empty: it can), and whether it may write the output."""

    trouble: str
    writes_output: bool


@contextmanager
def probe_of(files: Iterable[str], output: Path) -> Iterator[Probe]:
    """Give what to ask about, and take it away afterwards.

    Args:
        files: some of the run's.
        output: where the output goes; it is as it was when the block ends.
    """
    marks = tuple(_mark(file) for file in files)
    token = secrets.token_hex(16)
    is_new = not output.exists()
    directory = ""
    with suppress(OSError):
        output.mkdir(parents=True, exist_ok=True)
        directory = tempfile.mkdtemp(prefix=".probe-", dir=output.absolute())
        Path(directory, _TOKEN_NAME).write_text(token, encoding="ascii")
    try:
        yield Probe(marks, directory, token)
    finally:
        if directory:
            shutil.rmtree(directory, ignore_errors=True)
        if is_new:
            with suppress(OSError):
                output.rmdir()


def look(probe: Probe) -> Seen:
    """Answer, on a worker."""
    for file in probe.files:
        try:
            found = _mark(file.path)
        except OSError as error:
            return Seen(f"does not see {file.path} ({error.strerror})", writes_output=False)
        if found != file:
            return Seen(f"sees another file as {file.path}", writes_output=False)
    return Seen("", _may_write(probe))


def _mark(path: str) -> FileMark:
    with Path(path).open("rb") as stream:
        size_bytes = os.fstat(stream.fileno()).st_size
        return FileMark(path, size_bytes, hashlib.sha256(stream.read(_HEAD_BYTES)).hexdigest())


def _may_write(probe: Probe) -> bool:
    if not probe.directory:
        return False
    try:
        if Path(probe.directory, _TOKEN_NAME).read_text(encoding="ascii") != probe.token:
            return False
        handle, path = tempfile.mkstemp(dir=probe.directory)
        os.close(handle)
        Path(path).unlink()
    except OSError:
        return False
    return True
