"""Pieces of the ranks' files, read with few calls and without keeping many files open or much in memory."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from cluster_run.errors import InputError

_N_OPEN_FILES = 256
#: Operators of one group often lie side by side: one read for all of a rank, when at least this share
#: of its bytes is used.
_USED_SHARE = 0.4


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

    def read_many(
        self, ranks: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], lengths: npt.NDArray[np.int32]
    ) -> Sequence[bytes | memoryview]:
        """Return the piece of each row; see `read`."""
        distinct, which = np.unique(ranks, return_inverse=True)
        n_ranks = len(distinct)
        low = np.full(n_ranks, np.iinfo(np.int64).max)
        high = np.zeros(n_ranks, np.int64)
        np.minimum.at(low, which, offsets)
        np.maximum.at(high, which, offsets + lengths)
        used = np.bincount(which, lengths, n_ranks)
        at_once = used >= _USED_SHARE * (high - low)
        views = [
            memoryview(self.read(rank, last - first, first)) if together else None
            for rank, first, last, together in zip(
                distinct.tolist(), low.tolist(), high.tolist(), at_once.tolist(), strict=True
            )
        ]
        begins = np.where(at_once[which], offsets - low[which], offsets).tolist()
        return [
            self.read(int(distinct[number]), length, begin)
            if (view := views[number]) is None
            else view[begin : begin + length]
            for number, begin, length in zip(which.tolist(), begins, lengths.tolist(), strict=True)
        ]

    def _opened(self, rank: int) -> int:
        if len(self._open) >= self._n_open:
            os.close(self._open.popitem(last=False)[1])
        try:
            descriptor = os.open(self._files[rank], os.O_RDONLY)
        except OSError as error:
            raise InputError(f"{self._files[rank]}: cannot be read any more: {error.strerror}") from error
        self._open[rank] = descriptor
        return descriptor
