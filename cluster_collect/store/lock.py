"""One collection at a time in a run directory."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cluster_collect.faults import RunLockedError, UnwritableError

LOCK_NAME = ".cluster-collect.lock"


@contextmanager
def locked(run: Path) -> Iterator[None]:
    """Hold `run` (made when missing) for this process; the kernel frees it when the process dies.

    Raises:
        RunLockedError: another process holds it; the message names that process.
        UnwritableError: the directory cannot be made or written.
    """
    path = run / LOCK_NAME
    try:
        run.mkdir(parents=True, exist_ok=True)
        descriptor = _acquire(path)
    except OSError as error:
        raise UnwritableError(f"{run}: cannot be written: {error.strerror}") from None
    try:
        os.truncate(descriptor, 0)
        owner = f"process {os.getpid()} on {socket.gethostname()} since {time.strftime('%Y-%m-%d %H:%M:%S')}"
        with suppress(OSError):  # on a full disk; what others are told of us is all that is lost
            os.pwrite(descriptor, owner.encode(), 0)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(descriptor, 200, 0).decode(errors="replace")
            os.close(descriptor)
            raise RunLockedError(
                f"{path.parent}: in use by {owner or 'another collection'}",
                "wait for it, or choose another --output",
            ) from None
        if _is_still(descriptor, path):
            return descriptor
        os.close(descriptor)  # its owner removed it between our open and our lock


def _is_still(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False
