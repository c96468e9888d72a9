"""Where asyncssh is imported."""

from __future__ import annotations

import ctypes.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec


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


@contextmanager
def _no_certificates_in_vain() -> Iterator[None]:
    """Say at once that there are no X.509 certificates where pyOpenSSL is not installed.

    asyncssh needs it for them, and looks for it after it has loaded a large part of `cryptography`.
    """
    name = "asyncssh.crypto.x509"
    if find_spec("OpenSSL") is not None:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # so an import of it fails
    try:
        yield
    finally:
        del sys.modules[name]


with _no_search_for_libraries(), _no_certificates_in_vain():
    import asyncssh

__all__ = ["asyncssh"]
