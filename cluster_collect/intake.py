"""Takes one host's files in, whichever way they travel: tar stream or SFTP."""

from __future__ import annotations

import os
from collections.abc import Iterable

from cluster_collect.entries import RemoteEntry
from cluster_collect.faults import HostileDataError
from cluster_collect.journal import Journal
from cluster_collect.progress_events import ProgressListener
from cluster_collect.select import PlacedFile
from cluster_collect.store import FileRefusedError, IncomingFile, RunWriter
from cluster_run.ids import HostId, ServerId
from cluster_run.manifest import CollectedFile

_REPORT_EVERY_BYTES = 256 * 1024


class Intake:
    """Writes the wanted files of one host and remembers how each one fared.

    `stored` holds whole files by source; `mismatched` those whose size was not the announced one;
    `failed` those that this machine cannot hold, with the reason.
    """

    def __init__(
        self,
        host: HostId,
        server_id: ServerId,
        prefix: str,
        *,
        writer: RunWriter,
        journal: Journal,
        watch: ProgressListener,
    ) -> None:
        self._host = host
        self._server_id = server_id
        self._prefix = prefix
        self._writer = writer
        self._journal = journal
        self._watch = watch
        self._unreported_bytes = 0
        self.stored: dict[bytes, CollectedFile] = {}
        self.mismatched: dict[bytes, CollectedFile] = {}
        self.failed: dict[bytes, CollectedFile] = {}

    def path_of(self, placed: PlacedFile) -> str:
        """Return the file's path relative to the run directory."""
        return f"{self._prefix}/{os.fsdecode(placed.target)}"

    def described(self, placed: PlacedFile, sha256: str = "", reason: str = "") -> CollectedFile:
        """Return the manifest's line for a file: stored with a hash, failed with a reason."""
        entry = placed.entry
        return CollectedFile(
            path=self.path_of(placed),
            source=os.fsdecode(entry.path),
            size_bytes=entry.size_bytes,
            mtime_ns=entry.mtime_ns,
            sha256=sha256,
            state="failed" if reason else "stored",
            reason=reason,
        )

    def begin(self, placed: PlacedFile) -> IncomingFile | None:
        """Open a file, or note why it cannot be kept here and return None."""
        path = placed.entry.path
        self.stored.pop(path, None)
        self.mismatched.pop(path, None)
        self.failed.pop(path, None)
        try:
            return self._writer.begin(self.path_of(placed))
        except FileRefusedError as error:
            self.failed[path] = self.described(placed, reason=str(error))
            return None

    def received(self, n_bytes: int) -> None:
        """Tell the watcher about content, not too often."""
        self._unreported_bytes += n_bytes
        if self._unreported_bytes >= _REPORT_EVERY_BYTES:
            self.report()

    def report(self) -> None:
        """Tell the watcher about content that it has not heard of yet."""
        if self._unreported_bytes:
            self._watch.bytes_received(self._host, self._unreported_bytes)
            self._unreported_bytes = 0

    def note_down(self) -> None:
        """Write the finished files into the journal; belongs behind every portion of data."""
        self._journal.flush()

    def finish(self, placed: PlacedFile, incoming: IncomingFile) -> None:
        """Keep a file that has been received to its end."""
        entry = placed.entry
        try:
            sha256 = incoming.commit(entry.mtime_ns)
        except FileRefusedError as error:
            self.failed[entry.path] = self.described(placed, reason=str(error))
            return
        file = self.described(placed, sha256)
        if incoming.n_bytes != entry.size_bytes:
            size_now = RemoteEntry(entry.path, "f", incoming.n_bytes, entry.mtime_ns)
            self.mismatched[entry.path] = self.described(PlacedFile(size_now, placed.target), sha256)
            return
        self._journal.record(self._server_id, file)
        self.stored[entry.path] = file
        self._watch.file_stored(self._host, file.path, file.size_bytes)


class TarIntake:
    """Hands the files of one tar stream to an intake; `close` removes a file that was cut off."""

    def __init__(self, files: Iterable[PlacedFile], intake: Intake) -> None:
        self._files = {file.entry.path: file for file in files}
        self._intake = intake
        self._placed: PlacedFile | None = None
        self._incoming: IncomingFile | None = None

    def begin_file(self, name: bytes, size_bytes: int) -> None:
        """Open the file; a name that this machine cannot hold is read past."""
        self._placed = self._files.get(name)
        if self._placed is None:
            raise HostileDataError(f"the host sent {name[:200]!r}, which was not asked for")
        self._incoming = self._intake.begin(self._placed)

    def file_data(self, data: memoryview) -> None:
        """Write content."""
        self._intake.received(len(data))
        if self._incoming is not None and self._placed is not None:
            try:
                self._incoming.write(data)
            except FileRefusedError as error:
                self._intake.failed[self._placed.entry.path] = self._intake.described(
                    self._placed, reason=str(error)
                )
                self.close()

    def end_file(self) -> None:
        """Keep the file."""
        if self._incoming is not None and self._placed is not None:
            self._intake.finish(self._placed, self._incoming)
            self._incoming = None

    def close(self) -> None:
        """Remove a file whose end has not come."""
        if self._incoming is not None:
            self._incoming.abandon()
            self._incoming = None
