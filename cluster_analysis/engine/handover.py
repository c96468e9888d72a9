"""Hand a large value to another process of the machine: its arrays lie in a file, which the other one maps.

Through a pipe they would be copied five times, by both processes, 64 KiB at a time.
"""

from __future__ import annotations

import mmap
import pickle
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

T = TypeVar("T")

#: Arrays below this go with the rest of the value.
_LEAST_BYTES = 64 * 1024


@dataclass(frozen=True)
class Handed(Generic[T]):
    """A value on its way: the rest of it, and (begin, length) of its arrays in the file."""

    path: str
    rest: bytes
    arrays: tuple[tuple[int, int], ...]

    def take(self) -> T:
        """Return the value; its file is gone then. Each array's memory is free once that array is."""
        with Path(self.path).open("rb") as file:
            mapped = [
                mmap.mmap(file.fileno(), length, access=mmap.ACCESS_COPY, offset=begin)
                for begin, length in self.arrays
            ]
        Path(self.path).unlink()
        value: T = pickle.loads(self.rest, buffers=mapped)  # noqa: S301 (our own process wrote it)
        return value


def handed(value: T, path: str) -> T | Handed[T]:
    """Put the arrays of a value into a file; the value itself where they are small or cannot be written.

    Args:
        value: anything that can be pickled.
        path: a file that is not there yet.
    """
    arrays: list[memoryview] = []

    def keep(buffer: Any) -> bool:
        view = pickle.PickleBuffer(buffer).raw()
        if view.nbytes < _LEAST_BYTES:
            return True
        arrays.append(view)
        return False

    rest = pickle.dumps(value, protocol=5, buffer_callback=keep)
    if not arrays:
        return value
    places = []
    try:
        with Path(path).open("wb") as file:
            for view in arrays:
                # What is mapped begins with a page.
                begin = -(-file.tell() // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
                file.seek(begin)
                file.write(view)
                places.append((begin, view.nbytes))
    except OSError:
        with suppress(OSError):
            Path(path).unlink()
        return value
    return Handed(path, rest, tuple(places))
