"""Recognises hosts that see one file system: the same files are fetched from the first of them only."""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping

from cluster_collect.selection.select import PlacedFile
from cluster_run.ids import HostId

_SECOND_NS = 1_000_000_000


def _future() -> asyncio.Future[bool]:
    return asyncio.get_running_loop().create_future()


class SameFiles:
    """Which host brings which files, by a mark of all that a host has. Used within one event loop.

    `earlier` holds, of the hosts of this call, those whose files another of them brought before.
    """

    def __init__(self, earlier: Mapping[HostId, HostId]) -> None:
        self._earlier = earlier
        self._first: dict[bytes, HostId] = {}
        #: Done when the work on a host has ended; whether all its files are in the run directory then.
        self._has_all: defaultdict[HostId, asyncio.Future[bool]] = defaultdict(_future)

    def bring(self, host: HostId, files: Iterable[PlacedFile]) -> None:
        """This host brings its files, whoever else has them."""
        if (mark := mark_of(files)) is not None:
            self._first[mark] = host

    async def brought_by(self, host: HostId, files: Iterable[PlacedFile]) -> HostId | None:
        """Wait for another host that has the very same files; None when this one has to bring them."""
        mark = mark_of(files)
        if mark is None:
            return None
        if host in self._earlier:
            await asyncio.shield(self._has_all[self._earlier[host]])
        while (first := self._first.get(mark, host)) != host:
            if await asyncio.shield(self._has_all[first]):
                return first
            if self._first[mark] == first:
                break
        self._first[mark] = host
        return None

    def ended(self, host: HostId, *, has_all: bool) -> None:
        """The work on a host has ended; `has_all` says that all its files are in the run directory."""
        if not self._has_all[host].done():
            self._has_all[host].set_result(has_all)


def mark_of(files: Iterable[PlacedFile]) -> bytes | None:
    """Return the mark of some files: their names, sizes and times to the nanosecond.

    None where the times are whole seconds: files of two hosts may then agree by chance.
    """
    digest, is_exact = hashlib.sha256(), False
    for placed in files:
        entry = placed.entry
        is_exact |= entry.mtime_ns % _SECOND_NS != 0
        digest.update(b"%b\0%d %d\0" % (entry.path, entry.size_bytes, entry.mtime_ns))
    return digest.digest() if is_exact else None
