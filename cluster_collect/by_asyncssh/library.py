"""Where asyncssh is imported."""

from __future__ import annotations

import ctypes.util
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _no_search_for_libraries() -> Iterator[None]:
    """Keep an import from looking for libraries with the compiler and the linker.

    asyncssh does, five times, which takes longer than all the rest of its import. They would add a key
    exchange and a message authentication that no server offers alone.
    """
    search = ctypes.util.find_library
    ctypes.util.find_library = lambda name: None
    try:
        yield
    finally:
        ctypes.util.find_library = search


with _no_search_for_libraries():
    import asyncssh

__all__ = ["asyncssh"]
