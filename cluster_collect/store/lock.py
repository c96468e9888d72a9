"""One collection at a time in a run directory."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cluster_collect.faults import RunLockedError, UnwritableError
from cluster_run.files import lock_file

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
    descriptor = lock_file(path, wait=False)
    if descriptor is not None:
        return descriptor
    try:
        owner = path.read_text(errors="replace")[:200]
    except OSError:
        owner = ""  # it ended meanwhile
    raise RunLockedError(
        f"{path.parent}: in use by {owner or 'another collection'}",
        "wait for it, or choose another --output",
    )
