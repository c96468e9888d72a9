"""Recognises hosts that may see one file system: the same files are fetched from the first of them only.

A listing is only a claim. Whoever wants to be spared the fetching has to show the content (`samples`).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping

from cluster_collect.selection.select import PlacedFile
from cluster_collect.transfer.samples import to_sample
from cluster_collect.transports.bounds import HOST_TIME, HostTime
from cluster_run.ids import HostId
from cluster_run.manifest import CollectedFile

#: A host that has taken so long for little is not waited for by others that list the same.
_PATIENCE_S, _LOOK_S = 60.0, 1.0
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
        self._times: dict[HostId, HostTime] = {}
        self._to_sample: dict[HostId, tuple[CollectedFile, ...]] = {}

    def bring(self, host: HostId, files: Iterable[PlacedFile]) -> None:
        """This host brings its files, whoever else has them."""
        if (mark := mark_of(files)) is not None:
            self._first[mark] = host
            self._times[host] = HOST_TIME.get()

    def to_sample(self, host: HostId) -> tuple[CollectedFile, ...]:
        """Return some files that a host has brought, for others to show that they have them."""
        return self._to_sample.get(host, ())

    async def brought_by(self, host: HostId, files: Iterable[PlacedFile]) -> HostId | None:
        """Wait for another host that lists the very same files; None when this one has to bring them.

        No longer than that one brings much of them.
        """
        mark = mark_of(files)
        if mark is None:
            return None
        if host in self._earlier:
            await self._waited_for(self._earlier[host])
        while (first := self._first.get(mark, host)) != host:
            if await self._waited_for(first):
                return first
            if self._first[mark] == first:
                break
        self._first[mark] = host
        self._times[host] = HOST_TIME.get()
        return None

    async def _waited_for(self, host: HostId) -> bool:
        """Whether all files of a host are here; False, too, when it has taken long for what it brought."""
        has_all = self._has_all[host]
        while not has_all.done():
            taken = self._times.get(host)
            if taken is not None and taken.own_s >= _PATIENCE_S:
                return False
            await asyncio.wait((has_all,), timeout=_LOOK_S)
        return has_all.result()

    def ended(self, host: HostId, files: Iterable[CollectedFile], *, has_all: bool) -> None:
        """The work on a host has ended; `has_all` says that all its `files` are in the run directory."""
        if not self._has_all[host].done():
            self._has_all[host].set_result(has_all)
            self._to_sample[host] = to_sample(files)


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
