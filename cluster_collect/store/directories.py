"""The directories below the run directory: each is opened part by part, and never through a link.

Whoever may write into the run directory could otherwise have us write wherever a link leads.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Directories that stay open: few beside hundreds of connections, enough for the hosts that send at once.
_N_KEPT_OPEN = 64


class Directories:
    """Opens directories below `root`; names are relative to it. For one thread.

    Methods raise OSError: NotADirectoryError where a link or a file is in the way.
    """

    def __init__(self, root: Path) -> None:
        self._root = os.fsencode(root)
        self._open_ones: dict[bytes, int] = {}

    def opened(self, directory: bytes, *, make: bool = True) -> int:
        """Return the descriptor of a directory, which stays open for some time: valid until the next call.

        The way down is long, and as many files lie at its end as a host has.
        """
        place = self._open_ones.get(directory)
        if place is None:
            if len(self._open_ones) >= _N_KEPT_OPEN:
                self.close()
            place = self._open_ones[directory] = self._open(directory, make=make)
        return place

    def close(self) -> None:
        """Close what is kept open; safe to call again, and to go on after."""
        while self._open_ones:
            os.close(self._open_ones.popitem()[1])

    def remove(self, path: bytes, *, with_empty: bool = False) -> None:
        """Remove a file, and the directories that are empty then if so wished.

        It is no error where it is not there, or only behind a link.
        """
        directory, _, name = path.rpartition(b"/")
        with suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(name, dir_fd=self.opened(directory, make=False))
        with suppress(OSError):  # something else is in it
            while with_empty and directory:
                directory, _, name = directory.rpartition(b"/")
                os.rmdir(name, dir_fd=self.opened(directory, make=False))
        if with_empty:
            self.close()  # some of these are gone

    def _open(self, directory: bytes, *, make: bool) -> int:
        place = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for part in directory.split(b"/") if directory else ():
            above = place
            try:
                place = _opened_part(part, above, make=make)
            finally:
                os.close(above)
        return place


def _opened_part(part: bytes, above: int, *, make: bool) -> int:
    try:
        return os.open(part, _FLAGS, dir_fd=above)
    except FileNotFoundError:
        if not make:
            raise
        with suppress(FileExistsError):
            os.mkdir(part, dir_fd=above)
        return os.open(part, _FLAGS, dir_fd=above)
