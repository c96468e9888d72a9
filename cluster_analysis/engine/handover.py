"""Hand a value to another process of the machine: its large arrays lie in a file, which the other one maps.

Through a pipe they would be copied five times, by both processes, 64 KiB at a time.
"""

from __future__ import annotations

import mmap
import os
import pickle
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Arrays below this go with the rest of the value.
_LEAST_BYTES = 64 * 1024


@dataclass(frozen=True)
class _Handed:
    """A value on its way: the rest of it, and (begin, length) of its arrays in the file."""

    path: str
    rest: bytes
    arrays: tuple[tuple[int, int], ...]

    def take(self) -> Any:
        """Return the value; its file is gone then. Each array's memory is free once that array is."""
        with Path(self.path).open("rb") as file:
            mapped = [
                mmap.mmap(file.fileno(), length, access=mmap.ACCESS_COPY, offset=begin)
                for begin, length in self.arrays
            ]
        Path(self.path).unlink()
        return pickle.loads(self.rest, buffers=mapped)  # noqa: S301 (our own process wrote it)


def dumps(folder: str, value: Any) -> bytes:
    """Return a value as bytes, its large arrays in a file of `folder`; with them where it cannot be written.

    Args:
        folder: where the file lies until `loads` takes it.
        value: anything that can be pickled.
    """
    arrays: list[memoryview] = []

    def keep(buffer: Any) -> bool:
        view = pickle.PickleBuffer(buffer).raw()
        if view.nbytes < _LEAST_BYTES:
            return True
        arrays.append(view)
        return False

    text = pickle.dumps(value, protocol=5, buffer_callback=keep)
    if arrays:
        try:
            path, places = _filed(arrays, folder)
        except OSError:
            text = pickle.dumps(value, protocol=5)
        else:
            text = pickle.dumps(_Handed(path, text, places), protocol=5)
    return text


def loads(text: bytes) -> Any:
    """Return the value that `dumps` was given; its file is gone then.

    Raises:
        OSError: its file cannot be read.
    """
    value = pickle.loads(text)  # noqa: S301 (our own process wrote it)
    return value.take() if isinstance(value, _Handed) else value


def set_aside(folder: str, value: Any) -> Any:
    """Return the value with its large arrays in a mapped file, or unchanged if no file can be written.

    Unread arrays take no memory then, and freeing an array frees its part of the map.

    Args:
        folder: where the file lies for a moment.
        value: anything that can be pickled.
    """
    try:
        return loads(dumps(folder, value))
    except OSError:
        return value


def _filed(arrays: list[memoryview], folder: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    handle, path = tempfile.mkstemp(prefix="value-", dir=folder)
    places = []
    try:
        with os.fdopen(handle, "wb") as file:
            for view in arrays:
                # A mapping begins at a page.
                begin = -(-file.tell() // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
                file.seek(begin)
                file.write(view)
                places.append((begin, view.nbytes))
    except OSError:
        with suppress(OSError):
            Path(path).unlink()
        raise
    return path, tuple(places)
