"""Who may read the results of a job: only those who may read its profile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def no_wider_than(profile: Path, results: Path) -> Iterator[None]:
    """While the block runs, what is made in `results` is no wider than the directory `profile`.

    Others have no rights to it where they may not pass a directory above it. Its group's rights count
    where the results get the same group.
    """
    narrow = 0
    try:
        status = profile.stat()
        narrow = ~status.st_mode & 0o777
        narrow |= 0o007 if any(not one.stat().st_mode & 0o001 for one in profile.resolve().parents) else 0
        narrow |= 0o070 if status.st_gid != _group_below(results) else 0
    except OSError:
        # Not visible from here: only its user surely has the right.
        narrow = 0o077
    before = os.umask(0o077)
    os.umask(before | (narrow & 0o077))
    try:
        yield
    finally:
        os.umask(before)


def _group_below(results: Path) -> int:
    """Return the group that new files at `results` get: a directory above may pass its own on."""
    there = next(one for one in (results, *results.absolute().parents) if one.exists())
    status = there.stat()
    return status.st_gid if status.st_mode & 0o2000 else os.getegid()
