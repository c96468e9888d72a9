"""Fetches the missing files of one host, and looks again: what changed meanwhile is fetched anew."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cluster_collect.entries import RemoteEntry, unchanged
from cluster_collect.faults import HostError, NoRoomError
from cluster_collect.progress_events import ProgressListener
from cluster_collect.remote.host_stream import Commands, HostSource
from cluster_collect.selection.select import PlacedFile
from cluster_collect.spec import Codec, CollectOptions, HostSpec
from cluster_collect.transfer.outcome import OutcomeSoFar
from cluster_collect.transfer.survey import Survey
from cluster_collect.transfer.verify import Sample, differing, has_all
from cluster_collect.transfer.ways.columns_fetch import fetch_columns
from cluster_collect.transfer.ways.intake import Intake
from cluster_collect.transfer.ways.rest_fetch import fetch_rest
from cluster_collect.transfer.ways.tar_fetch import fetch_by_tar
from cluster_collect.transfer.ways.walker import fetch_by_walker
from cluster_collect.transports.bounds import HOST_TIME, BandwidthCap, Pauses, TransferSlot
from cluster_collect.transports.protocol import HostConnection
from cluster_collect.watchdog import Watchdog
from cluster_reduce.form import has_columns
from cluster_run.manifest import CollectedFile

#: A file that changed while it was read is fetched again this often before it is called unstable.
_N_REFETCHES = 2
#: A host that hashes more slowly than this counts as hanging.
_HASH_BYTES_PER_S = 20e6
#: A shell says at once that it begins; what it was asked for follows.
_MORE_THAN_A_MARKER_BYTES = 256


class Rounds:
    """The fetching over one connection. `intake` and `so_far` get what came and what did not.

    `commands` runs whatever is asked of the host once it is surveyed.
    """

    def __init__(
        self,
        connection: HostConnection,
        survey: Survey,
        spec: HostSpec,
        options: CollectOptions,
        *,
        intake: Intake,
        so_far: OutcomeSoFar,
        caps: Sequence[BandwidthCap],
        watch: ProgressListener,
    ) -> None:
        self._connection = connection
        self.commands = Commands(connection, survey.shell)
        self._survey = survey
        self._spec = spec
        self._options = options
        self._intake = intake
        self._so_far = so_far
        self._caps = caps
        self._watch = watch

    async def fetch(self, missing: Sequence[PlacedFile], slot: TransferSlot) -> None:
        """Fetch, and fetch again what changed meanwhile; what still changes then is unstable."""
        pending = list(missing)
        for _ in range(1 + _N_REFETCHES):
            after, errors = await self._fetch(pending, slot)
            changed = self._changed(pending, after, errors)
            again = {placed.entry.path for placed in changed}
            same = [placed for placed in pending if placed.entry.path not in again]
            changed += await self.differing(same, self._intake.stored)
            if not changed:
                return
            pending = changed
        for placed in pending:
            if placed.entry.path not in self._intake.failed:
                self._intake.keep_changed(placed)
                self._so_far.unstable.add(placed.entry.path)

    async def differing(
        self, files: Sequence[PlacedFile], here: Mapping[bytes, CollectedFile]
    ) -> list[PlacedFile]:
        """With `verify`, let the host hash files, and return those that are something else here."""
        if not self._options.verify:
            return []
        # Columns are no copy of what the host has: their own hash is compared where they are read.
        files = [
            placed
            for placed in files
            if not placed.comes_reduced
            and (file := here.get(placed.entry.path)) is not None
            and file.reduced_from_bytes is None
        ]
        if not files:
            return []
        largest_bytes = max(placed.entry.size_bytes for placed in files)
        watchdog = Watchdog(self._options.progress_deadline_s + largest_bytes / _HASH_BYTES_PER_S)
        source = self._source("none", watchdog)
        return await watchdog.guard(differing(source, files, here), "hashing its files")

    @property
    def is_one_by_one(self) -> bool:
        """Whether the host runs no commands for us, so that its files are read one by one."""
        return self._survey.codec is None

    async def has(self, samples: Sequence[Sample]) -> bool:
        """Whether the host shows that it has the very content of these samples."""
        watchdog = Watchdog(self._options.progress_deadline_s)
        source = self._source("none", watchdog)
        return await watchdog.guard(has_all(source, samples), "hashing parts of its files")

    async def _fetch(
        self, pending: Sequence[PlacedFile], slot: TransferSlot
    ) -> tuple[dict[bytes, RemoteEntry], bytes]:
        whole = {placed.entry.path: placed for placed in pending if self._comes_as_it_is(placed)}
        others = [placed for placed in pending if placed.entry.path not in whole]
        answer = None
        if self._options.columns and others and not self._so_far.raw_because:
            answer = await self._columns(others, slot)
        if answer is None:
            for placed in pending:
                if placed.comes_reduced:
                    self._intake.refuse(placed, f"read on its host or not at all: {self._so_far.raw_because}")
            pending = [placed for placed in pending if not placed.comes_reduced]
            return await self._as_they_are(pending, slot) if pending else ({}, b"")
        if not whole:
            return answer
        after, errors = await self._as_they_are(list(whole.values()), slot)
        before = {path: entry for path, entry in answer[0].items() if path not in whole}
        return {**before, **after}, answer[1] + errors

    def _comes_as_it_is(self, placed: PlacedFile) -> bool:
        """Whether the reader of columns has nothing to do with a file, or it goes on where it was cut off."""
        return placed.stays_whole or (
            self._intake.cut_bytes(placed) > 0 and not has_columns(placed.entry.path)
        )

    async def _as_they_are(
        self, pending: Sequence[PlacedFile], slot: TransferSlot
    ) -> tuple[dict[bytes, RemoteEntry], bytes]:
        watchdog = self._watchdog(slot)
        source = self._source(self._survey.codec or "none", watchdog, slot)
        fetch = self._by_walker if self.is_one_by_one else self._by_tar
        return await watchdog.guard(fetch(pending, source), "waiting for its files")

    async def _columns(
        self, pending: Sequence[PlacedFile], slot: TransferSlot
    ) -> tuple[dict[bytes, RemoteEntry], bytes] | None:
        """Fetch what comes as columns; None where that fails.

        A host is asked for columns as long as they bring something, and then for its files as they are.

        Raises:
            HostError: the stream broke, and all else has to begin anew.
        """
        options = self._options
        watchdog = self._watchdog(slot)
        source = self._source(self._survey.codec or "none", watchdog)
        # By then the host has ended all that it still computes.
        end_s = time.monotonic() + options.columns_deadline_s + options.progress_deadline_s
        before = self._intake.brought

        def works() -> None:
            if time.monotonic() < end_s:
                watchdog.alive()

        try:
            fetching = fetch_columns(source, pending, self._intake, self._options, works)
            after, errors, over_limits = await watchdog.guard(fetching, "waiting for its columns")
            self._so_far.over_limits |= over_limits
            return after, errors
        except NoRoomError:
            raise  # files as they are would need more
        except HostError as error:
            if error.retryable and self._intake.brought != before:
                raise
            self._so_far.raw_because = error.message
            self._watch.noted(self._spec.host, f"files as they are: {error.message}")
            if error.retryable:
                raise
            return None

    def _watchdog(self, slot: TransferSlot) -> Watchdog:
        options = self._options
        return Watchdog(
            options.progress_deadline_s,
            slot.patience_s,
            slot.give_back,
            least_bytes_per_s=options.least_bytes_per_s,
        )

    def _source(self, codec: Codec, watchdog: Watchdog, slot: TransferSlot | None = None) -> HostSource:
        """Return where files come from; the watchdog hears of content, and of pauses that we ask for."""
        n_before = self._so_far.wire_bytes
        taken, pauses = HOST_TIME.get(), Pauses()

        def book(n_bytes: int) -> float:
            self._so_far.wire_bytes += n_bytes
            if slot is not None and self._so_far.wire_bytes > n_before + _MORE_THAN_A_MARKER_BYTES:
                slot.begun()
            pause_s = max((cap.pause_after(n_bytes) for cap in self._caps), default=0.0)
            longer_s = pauses.longer_by(pause_s)
            watchdog.paused(longer_s)
            taken.excuse(longer_s)
            return pause_s

        def brought(n_bytes: int) -> None:
            if n_bytes:
                watchdog.received(n_bytes)
            else:
                watchdog.progress()

        return HostSource(
            commands=self.commands,
            spec=self._spec,
            codec=codec,
            max_entries=self._options.max_entries_per_host,
            book=book,
            brought=brought,
        )

    async def _by_tar(
        self, pending: Sequence[PlacedFile], source: HostSource
    ) -> tuple[dict[bytes, RemoteEntry], bytes]:
        """Go on with large files that were cut off; take all others as one archive."""
        after: dict[bytes, RemoteEntry] = {}
        for placed in pending:
            if self._intake.cut_bytes(placed):
                now = await fetch_rest(source, placed, self._intake)
                if now is not None:
                    after[placed.entry.path] = now
        whole = [placed for placed in pending if placed.entry.path not in after]
        if not whole:
            return after, b""
        listed, errors = await fetch_by_tar(source, whole, self._intake)
        return {**listed, **after}, errors

    async def _by_walker(
        self, pending: Sequence[PlacedFile], source: HostSource
    ) -> tuple[dict[bytes, RemoteEntry], bytes]:
        """Take file by file."""
        files = await self._connection.open_files()
        try:
            return await fetch_by_walker(files, source, pending, self._intake), b""
        finally:
            await files.close()

    def _changed(
        self, pending: Sequence[PlacedFile], after: dict[bytes, RemoteEntry], errors: bytes
    ) -> list[PlacedFile]:
        """Return the files that changed after they were fetched; note those that never came."""
        intake = self._intake
        changed: list[PlacedFile] = []
        for placed in pending:
            path = placed.entry.path
            now = after.get(path)
            if path in intake.failed:
                continue
            if now is not None and not unchanged(placed.entry, now):
                changed.append(replace(placed, entry=now))
            elif path in intake.mismatched:
                reason = (
                    f"{intake.mismatched[path].size_bytes} bytes came instead of {placed.entry.size_bytes}"
                )
                intake.refuse(placed, reason)
            elif path not in intake.stored:
                intake.refuse(placed, _why_missing(path, now, errors))
            elif errors and (padded := _why_padded(path, errors)):
                intake.unstore(placed)
                intake.refuse(placed, padded)
                changed.append(placed)
        return changed


def _why_padded(path: bytes, errors: bytes) -> str:
    """Say why tar filled up a file with zeros, as it does where it cannot read on; empty when it did not."""
    for trouble in (b": Read error", b": File shrank"):
        _, found, rest = errors.partition(b"tar: ./" + path + trouble)
        if found:
            return (trouble[2:] + rest.split(b"\n")[0]).decode(errors="replace")[:200]
    return ""


def _why_missing(path: bytes, now: RemoteEntry | None, errors: bytes) -> str:
    if now is None:
        return "removed on the host before it could be read"
    for line in errors.split(b"\n"):
        if path in line:
            return line.rpartition(b": ")[2].decode(errors="replace")[:200]
    return "the host did not send it"
