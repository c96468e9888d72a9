"""Collects from one host: connect, prepare, list, fetch what is missing, look again, and say how it went."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cluster_collect.entries import RemoteEntry, unchanged
from cluster_collect.faults import HostError, NoShellError, as_host_error
from cluster_collect.progress_events import ProgressListener
from cluster_collect.remote.decompress import Codec
from cluster_collect.remote.host_stream import HostSource
from cluster_collect.selection.collisions import merge_identical
from cluster_collect.selection.select import PlacedFile, Selection
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_collect.store.journal import Journal
from cluster_collect.store.writer import RunWriter
from cluster_collect.threads import in_thread
from cluster_collect.transfer.bandwidth import BandwidthCap
from cluster_collect.transfer.intake import Intake
from cluster_collect.transfer.outcome import PREPARE_LOG_NAME, Findings, outcome_of
from cluster_collect.transfer.rest_fetch import fetch_rest
from cluster_collect.transfer.retry import backoff_s
from cluster_collect.transfer.survey import Survey, chosen, profiler_root, run_prepare, survey_host
from cluster_collect.transfer.tar_fetch import fetch_by_tar
from cluster_collect.transfer.verify import differing
from cluster_collect.transfer.walker import fetch_by_walker
from cluster_collect.transports.bounds import Bounds, TransferSlot
from cluster_collect.transports.protocol import Dialer, HostConnection, RunningCommand
from cluster_collect.watchdog import Watchdog
from cluster_run.files import write_bytes_whole
from cluster_run.layout import HOST_PROFILER_NAME, PROFILER_TREE_NAME, host_directory
from cluster_run.manifest import CollectedFile, HostOutcome

#: A file that changed while it was read is fetched again this often before it is called unstable.
_N_REFETCHES = 2
#: A host that hashes more slowly than this is taken for one that hangs.
_HASH_BYTES_PER_S = 20e6


@dataclass(frozen=True)
class Shared:
    """What the hosts of one collection have in common."""

    options: CollectOptions
    bounds: Bounds
    writer: RunWriter
    journal: Journal
    watch: ProgressListener
    cap: BandwidthCap | None
    chance: random.Random


class HostCollection:
    """One host's part of a collection; `run` returns its outcome and raises local errors only."""

    def __init__(self, spec: HostSpec, dialer: Dialer, shared: Shared) -> None:
        self._spec = spec
        self._dialer = dialer
        self._shared = shared
        self._options = shared.options
        rate = spec.bandwidth_bytes_per_s
        self._caps = [cap for cap in (shared.cap, BandwidthCap(rate) if rate else None) if cap is not None]
        prefix = f"{PROFILER_TREE_NAME}/{spec.host}/{HOST_PROFILER_NAME}"
        self._prefix = prefix
        self._intake = Intake(
            spec.host,
            spec.server_id,
            prefix,
            writer=shared.writer,
            journal=shared.journal,
            watch=shared.watch,
        )
        self._one_by_one = False
        self._is_prepared = False
        self._findings = Findings()
        self._shell: RunningCommand | None = None

    async def run(self) -> HostOutcome:
        """Collect, with as many attempts as make sense.

        Raises:
            ClusterError: this machine's disk is full or cannot be written.
        """
        began_s = time.monotonic()
        self._shared.watch.host_started(self._spec.host)
        try:
            await self._attempts()
        except Exception as error:
            self._findings.error = as_host_error(error)
        kept = self._shared.journal.kept(self._spec.server_id, self._findings.seen)
        outcome = outcome_of(self._spec, self._findings, kept, time.monotonic() - began_s)
        if outcome.state == "complete":
            self._shared.writer.drop_cuts(self._prefix)
        self._shared.watch.host_finished(outcome)
        return outcome

    async def _attempts(self) -> None:
        attempt = 1
        while True:
            n_before = len(self._intake.stored)
            n_aside_before = self._intake.n_bytes_aside
            try:
                return await self._attempt()
            except NoShellError as error:
                if self._one_by_one:
                    raise
                self._one_by_one = True
                self._shared.watch.noted(self._spec.host, f"{error.message}: copying file by file")
            except HostError as error:
                if len(self._intake.stored) > n_before or self._intake.n_bytes_aside > n_aside_before:
                    attempt = 1
                if not error.retryable or attempt >= self._options.n_attempts:
                    raise
                options = self._options
                wait_s = backoff_s(
                    attempt, options.backoff_first_s, options.backoff_most_s, self._shared.chance
                )
                self._shared.watch.retrying(self._spec.host, error.message, wait_s)
                await asyncio.sleep(wait_s)
                attempt += 1

    async def _attempt(self) -> None:
        began_s = time.monotonic()
        connection = await self._dialer.dial(self._spec)
        if self._spec.local is None:
            self._shared.watch.noted(self._spec.host, f"logged in within {time.monotonic() - began_s:.1f} s")
        try:
            if self._spec.prepare and not self._is_prepared:
                await self._prepare(connection)
            survey = await survey_host(connection, self._spec, self._options, one_by_one=self._one_by_one)
            selection = chosen(survey, self._spec, self._options.what)
            self._findings.look(survey, selection)
            self._shell = survey.shell
            self._shared.watch.noted(self._spec.host, survey.method(self._spec))
            await self._fetch_missing(connection, survey, selection)
        finally:
            await connection.close()

    async def _prepare(self, connection: HostConnection) -> None:
        problem, printed = await run_prepare(connection, self._spec, self._options)
        self._is_prepared = True
        self._findings.prepare_problem = problem
        directory = host_directory(self._shared.writer.run, self._spec.host).parent
        write_bytes_whole(directory / PREPARE_LOG_NAME, printed)

    async def _fetch_missing(self, connection: HostConnection, survey: Survey, selection: Selection) -> None:
        # After a killed call content is hashed again here: not in the loop, where it would stop the others.
        present, missing = await in_thread(self._divided, selection)
        for placed in await self._differing(connection, selection.files, present):
            del present[placed.entry.path]
            missing.append(placed)
        n_bytes = sum(file.entry.size_bytes - self._intake.cut_bytes(file) for file in missing)
        self._shared.watch.plan_known(self._spec.host, len(missing), n_bytes)
        if missing:
            async with self._shared.bounds.transfer() as slot:
                self._shared.writer.promise(n_bytes)
                try:
                    await self._rounds(connection, survey, missing, slot)
                finally:
                    self._shared.writer.release(n_bytes)
                    self._findings.take(self._intake, present, selection)
        else:
            self._findings.take(self._intake, present, selection)
        self._findings.files = merge_identical(
            self._shared.writer.run, self._findings.files, selection, self._intake.path_of
        )

    def _divided(self, selection: Selection) -> tuple[dict[bytes, CollectedFile], list[PlacedFile]]:
        """Tell the files that are already here from those to fetch."""
        present: dict[bytes, CollectedFile] = {}
        missing: list[PlacedFile] = []
        if not self._shared.journal.knows(self._spec.server_id):
            return present, _smallest_first(selection.files)
        for placed in selection.files:
            entry = placed.entry
            source = os.fsdecode(entry.path)
            file = self._shared.journal.stored(
                self._spec.server_id, source, entry, hash_again=self._options.verify
            )
            if file is None:
                missing.append(placed)
            else:
                present[entry.path] = file
        lost = {self._intake.path_of(placed) for placed in missing}
        for placed in selection.files:
            # A copy that was merged into another file's goes with it when that one is replaced.
            file = present.get(placed.entry.path)
            if file is not None and file.path != self._intake.path_of(placed) and file.path in lost:
                del present[placed.entry.path]
                missing.append(placed)
        return present, _smallest_first(missing)

    async def _rounds(
        self,
        connection: HostConnection,
        survey: Survey,
        missing: Sequence[PlacedFile],
        slot: TransferSlot,
    ) -> None:
        """Fetch, and fetch again what changed meanwhile; what still changes then is unstable."""
        pending = list(missing)
        for _ in range(1 + _N_REFETCHES):
            after, errors = await self._fetch(connection, survey, pending, slot)
            changed = self._changed(pending, after, errors)
            again = {placed.entry.path for placed in changed}
            same = [placed for placed in pending if placed.entry.path not in again]
            changed += await self._differing(connection, same, self._intake.stored)
            if not changed:
                return
            pending = changed
        for placed in pending:
            if placed.entry.path not in self._intake.failed:
                self._findings.unstable.add(placed.entry.path)

    async def _differing(
        self,
        connection: HostConnection,
        files: Sequence[PlacedFile],
        here: Mapping[bytes, CollectedFile],
    ) -> list[PlacedFile]:
        """With `verify`, let the host hash files, and return those that are something else here."""
        if not self._options.verify:
            return []
        largest_bytes = max((placed.entry.size_bytes for placed in files), default=0)
        watchdog = Watchdog(self._options.progress_deadline_s + largest_bytes / _HASH_BYTES_PER_S)
        source = self._source(connection, "none", self._booking(watchdog))
        return await watchdog.guard(differing(source, files, here), "hashing its files")

    async def _fetch(
        self, connection: HostConnection, survey: Survey, pending: Sequence[PlacedFile], slot: TransferSlot
    ) -> tuple[dict[bytes, RemoteEntry], bytes]:
        watchdog = Watchdog(self._options.progress_deadline_s, when_quiet=slot.give_back)
        book = self._booking(watchdog)
        fetch = self._by_walker if survey.codec is None else self._by_tar
        return await watchdog.guard(fetch(connection, survey, pending, book), "waiting for its files")

    def _booking(self, watchdog: Watchdog) -> Callable[[int], float]:
        """Return what is told the size of all that arrives, and says how long the sender has to pause."""

        def book(n_bytes: int) -> float:
            self._findings.wire_bytes += n_bytes
            pause_s = max((cap.pause_after(n_bytes) for cap in self._caps), default=0.0)
            watchdog.progress(pause_s)
            return pause_s

        return book

    def _source(self, connection: HostConnection, codec: Codec, book: Callable[[int], float]) -> HostSource:
        return HostSource(
            connection=connection,
            profiler_root=os.fsencode(profiler_root(self._spec)),
            codec=codec,
            niceness=self._options.remote_niceness,
            max_entries=self._options.max_entries_per_host,
            book=book,
        )

    async def _by_tar(
        self,
        connection: HostConnection,
        survey: Survey,
        pending: Sequence[PlacedFile],
        book: Callable[[int], float],
    ) -> tuple[dict[bytes, RemoteEntry], bytes]:
        """Go on with large files that were cut off; take all others as one archive."""
        source = self._source(connection, survey.codec or "none", book)
        after: dict[bytes, RemoteEntry] = {}
        for placed in pending:
            if self._intake.cut_bytes(placed):
                now = await fetch_rest(source, placed, self._intake, self._take_shell())
                if now is not None:
                    after[placed.entry.path] = now
        whole = [placed for placed in pending if placed.entry.path not in after]
        if not whole:
            return after, b""
        listed, errors = await fetch_by_tar(source, whole, self._intake, self._take_shell())
        return {**listed, **after}, errors

    async def _by_walker(
        self,
        connection: HostConnection,
        survey: Survey,
        pending: Sequence[PlacedFile],
        book: Callable[[int], float],
    ) -> tuple[dict[bytes, RemoteEntry], bytes]:
        """Take file by file."""
        files = await connection.open_files()
        try:
            root = os.fsencode(profiler_root(self._spec))
            return await fetch_by_walker(files, root, pending, self._intake, book), b""
        finally:
            await files.close()

    def _take_shell(self) -> RunningCommand | None:
        """Return the shell that waits for a program; it takes one only."""
        shell, self._shell = self._shell, None
        return shell

    def _changed(
        self, pending: Sequence[PlacedFile], after: dict[bytes, RemoteEntry], errors: bytes
    ) -> list[PlacedFile]:
        """Return the files that are no longer what was fetched; note those that never came."""
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
                intake.failed[path] = intake.described(placed, reason=reason)
            elif path not in intake.stored:
                intake.failed[path] = intake.described(placed, reason=_why_missing(path, now, errors))
            elif errors and (padded := _why_padded(path, errors)):
                intake.discard(placed, padded)
                changed.append(placed)
        return changed


def _why_padded(path: bytes, errors: bytes) -> str:
    """Say why tar filled up a file with zeros, as it does where it cannot read on; empty when it did not."""
    for trouble in (b": Read error", b": File shrank"):
        _, found, rest = errors.partition(b"tar: ./" + path + trouble)
        if found:
            return (trouble[2:] + rest.split(b"\n")[0]).decode(errors="replace")[:200]
    return ""


def _smallest_first(files: Iterable[PlacedFile]) -> list[PlacedFile]:
    """Over a link that keeps breaking, as many files as possible get through."""
    return sorted(files, key=lambda placed: placed.entry.size_bytes)


def _why_missing(path: bytes, now: RemoteEntry | None, errors: bytes) -> str:
    if now is None:
        return "removed on the host before it could be read"
    for line in errors.split(b"\n"):
        if path in line:
            return line.rpartition(b": ")[2].decode(errors="replace")[:200]
    return "the host did not send it"
