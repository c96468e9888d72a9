"""Arrays in a file that has no name any more: memory of this process only while somebody looks at them."""

from __future__ import annotations

import mmap
import weakref
from pathlib import Path

#: All that is mapped, as long as an array lies in it.
_MAPPED: set[weakref.ref[mmap.mmap]] = set()


def mapped(path: Path) -> mmap.mmap:
    """Map a file for reading, and remove its name: its space is free once nothing lies in it any more.

    Raises:
        OSError: it cannot be read, or is empty.
    """
    with path.open("rb") as file:
        try:
            found = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:
            raise OSError(f"{path}: {error}") from error
    path.unlink()
    _MAPPED.add(weakref.ref(found, _MAPPED.discard))
    return found


def let_pages_go() -> None:
    """Count what is mapped as nobody's memory, until it is looked at again: the files hold it.

    Without effect where the system cannot.
    """
    if not hasattr(mmap, "MADV_DONTNEED"):
        return
    for one in tuple(_MAPPED):
        if (found := one()) is not None:
            found.madvise(mmap.MADV_DONTNEED)
