"""Recognises hosts that may see one file system: the same files are fetched from the first of them only.

A listing is only a claim: a host whose files are not fetched must prove that it has them (`samples`).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from cluster_collect.selection.select import PlacedFile
from cluster_collect.transfer.verify import to_sample
from cluster_collect.transports.bounds import HOST_TIME, HostTime, queueing
from cluster_run.ids import HostId
from cluster_run.manifest import CollectedFile

#: After this time a host that waits for another's files looks whether those that came are its own; how often.
_LOOK_AFTER_S, _LOOK_S = 60.0, 1.0
_SECOND_NS = 1_000_000_000

#: Whether the running host has the content of some files that another one brought.
Has = Callable[[tuple[CollectedFile, ...]], Awaitable[bool]]


@dataclass
class _Bringer:
    """A host that brings its files. `here` are those that lie here already."""

    host: HostId
    taken: HostTime
    here: Callable[[], Iterable[CollectedFile]]


@dataclass(frozen=True)
class _End:
    """How the work on a host ended; `samples` are some of the files that it brought."""

    samples: tuple[CollectedFile, ...]
    has_all: bool
    is_late: bool


def _future() -> asyncio.Future[_End]:
    return asyncio.get_running_loop().create_future()


class SameFiles:
    """Which host brings which files, by a mark of all that a host has. Used within one event loop.

    `earlier` holds, of the hosts of this call, those whose files another of them brought before.
    """

    def __init__(self, earlier: Mapping[HostId, HostId]) -> None:
        self._earlier = earlier
        self._first: dict[bytes, _Bringer] = {}
        self._ends: defaultdict[HostId, asyncio.Future[_End]] = defaultdict(_future)

    def bring(
        self, host: HostId, files: Iterable[PlacedFile], here: Callable[[], Iterable[CollectedFile]]
    ) -> None:
        """This host brings its files, whoever else has them."""
        if (mark := mark_of(files)) is not None:
            self._first[mark] = _Bringer(host, HOST_TIME.get(), here)

    async def brought_by(
        self,
        host: HostId,
        files: Iterable[PlacedFile],
        here: Callable[[], Iterable[CollectedFile]],
        has: Has,
    ) -> tuple[HostId, bool] | None:
        """Wait for another host that lists the very same files, and that `has` shows to bring their content.

        Returns:
            That host, and whether all of its files are here: else its time was over, and a later call goes
            on with it. None when this one has to bring its files.
        """
        mark = mark_of(files)
        if mark is None:
            return None
        if host in self._earlier:
            await self._seen(self._earlier[host])
        own = _Bringer(host, HOST_TIME.get(), here)
        while (first := self._first.setdefault(mark, own)).host != host:
            end = await self._end_of(first, has)
            if end is not None and (end.has_all or end.is_late):
                return first.host, end.has_all
            if self._first[mark] is first:
                self._first[mark] = own
        return None

    async def _seen(self, host: HostId) -> None:
        """Wait until it is known what a host brings."""
        ended = self._ends[host]
        with queueing():
            while not (ended.done() or any(one.host == host for one in self._first.values())):
                await asyncio.wait((ended,), timeout=_LOOK_S)

    async def _end_of(self, first: _Bringer, has: Has) -> _End | None:
        """Wait for the end of a host that brings what we have; None as soon as that is something else."""
        ended = self._ends[first.host]
        with queueing():
            while not ended.done() and first.taken.own_s < _LOOK_AFTER_S:
                await asyncio.wait((ended,), timeout=_LOOK_S)
        if not ended.done():
            if not await has(to_sample(first.here())):
                return None
            with queueing():
                await asyncio.wait((ended,))
        end = ended.result()
        return end if await has(end.samples) else None

    def ended(self, host: HostId, files: Iterable[CollectedFile], *, has_all: bool, is_late: bool) -> None:
        """The work on a host has ended: with all its `files` here, or because its time was over."""
        if not self._ends[host].done():
            self._ends[host].set_result(_End(to_sample(files), has_all, is_late))


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
