"""Looks for captures in a process of its own, while this one imports NumPy, Arrow and what reads.

That process imports what looks for them, and neither NumPy nor Arrow, unless a database has to say its rank.
Whatever keeps that process from telling what it found, this one looks itself, and says what is wrong.
"""

from __future__ import annotations

import os
import pickle
import warnings
from pathlib import Path

from cluster_analysis.tables.model import Capture


class Ahead:
    """A look at one run that was begun before its result is asked for."""

    def __init__(self, path: Path, capture: str | None) -> None:
        """Begin to look, where processes can be forked and another processor is there to do it."""
        self._asked = path, capture
        self._child, self._reader = 0, -1
        if not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2:
            return
        reader, writer = os.pipe()
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
                self._child = os.fork()
        except OSError:
            os.close(reader)
            os.close(writer)
            return
        if not self._child:
            os.close(reader)  # else it would wait for ever to be heard where we end before
            _tell(path, capture, writer)
        os.close(writer)
        self._reader = reader

    def found(self, path: Path, capture: str | None) -> Capture:
        """Return what `discover` returns, from the other process where it was asked the same.

        Raises:
            InputError: as `discover`.
        """
        told = self._told()
        if told and (path, capture) == self._asked:
            found: Capture = pickle.loads(told)  # noqa: S301 (our own process wrote it)
            return found
        from cluster_analysis.discovery.discover import discover  # noqa: PLC0415

        return discover(path, capture)

    def _told(self) -> bytes:
        """Return what the other process says, nothing where it said nothing or was asked before."""
        if not self._child:
            return b""
        child, self._child = self._child, 0
        with os.fdopen(self._reader, "rb") as pipe:
            told = pipe.read()
        _, status = os.waitpid(child, 0)
        return b"" if status else told


def _tell(path: Path, capture: str | None, writer: int) -> None:
    """Write what is found and end, without anything that this process would do at its end."""
    code = 1
    try:
        from cluster_analysis.discovery.discover import discover  # noqa: PLC0415

        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(discover(path, capture), pipe, pickle.HIGHEST_PROTOCOL)
        code = 0
    finally:
        os._exit(code)
