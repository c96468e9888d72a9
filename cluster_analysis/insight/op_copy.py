"""Pieces of the ranks' files, read without keeping many files open or much in memory."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping

from cluster_run.errors import InputError

_N_OPEN_FILES = 256


class OpenFiles:
    """The ranks' files, a few hundred of them open at a time."""

    def __init__(self, files: Mapping[int, str], n_open: int = _N_OPEN_FILES) -> None:
        self._files = files
        self._n_open = n_open
        self._open: OrderedDict[int, int] = OrderedDict()

    def __enter__(self) -> OpenFiles:
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            os.close(self._open.popitem()[1])

    def read(self, rank: int, length: int, offset: int) -> bytes:
        """Return bytes of a rank's file.

        Raises:
            InputError: the file is gone, or shorter than it was.
        """
        descriptor = self._open.get(rank)
        if descriptor is None:
            descriptor = self._opened(rank)
        content = os.pread(descriptor, length, offset)
        if len(content) != length:
            raise InputError(
                f"{self._files[rank]}: became shorter while it was read",
                "run this again when the job is over",
            )
        return content

    def _opened(self, rank: int) -> int:
        if len(self._open) >= self._n_open:
            os.close(self._open.popitem(last=False)[1])
        try:
            descriptor = os.open(self._files[rank], os.O_RDONLY)
        except OSError as error:
            raise InputError(f"{self._files[rank]}: cannot be read any more: {error.strerror}") from error
        self._open[rank] = descriptor
        return descriptor
