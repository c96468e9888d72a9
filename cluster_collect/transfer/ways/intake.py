"""Takes one host's files in, whichever way they travel: tar stream or SFTP."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterable

from cluster_collect.entries import RemoteEntry
from cluster_collect.faults import HostileDataError
from cluster_collect.progress_events import ProgressListener
from cluster_collect.selection.select import PlacedFile
from cluster_collect.spec import UNREAD
from cluster_collect.store.journal import Journal
from cluster_collect.store.writer import LARGE_BYTES, FileRefusedError, IncomingFile, RunWriter
from cluster_collect.threads import in_thread
from cluster_reduce.form import MOST_HEAD_BYTES, SUFFIX, UNREAD_SUFFIX, has_columns, why_not_of
from cluster_run.ids import HostId, ServerId
from cluster_run.manifest import CollectedFile

_SUFFIX, _UNREAD_SUFFIX = SUFFIX.encode(), UNREAD_SUFFIX.encode()
#: A file that is still written may grow between listing and reading: by its size, or by this.
_GROWTH_BYTES = 64 << 20
#: Most that is awaited of a file that comes reduced, however large it is on the host: it is some figures.
_MOST_REDUCED_BYTES = 1 << 16
#: A host that writes more than was promised for it is granted so much more at once.
_STEP_BYTES = 64 << 20


def as_columns(placed: PlacedFile, size_bytes: int, *, is_unread: bool = False) -> PlacedFile:
    """Return what a file is when its columns come in its place."""
    entry = placed.entry
    reduced = RemoteEntry(entry.path, entry.kind, size_bytes, entry.mtime_ns)
    return PlacedFile(reduced, placed.target + _SUFFIX, entry.size_bytes, is_unread=is_unread)


class DiskBudget:
    """What one host may write. A host that lies about its sizes, or has grown, asks for more on the way."""

    def __init__(self, writer: RunWriter) -> None:
        self._writer = writer
        self._left_bytes = 0

    def promise(self, n_bytes: int) -> None:
        """Announce that the host will write `n_bytes`.

        Raises:
            NoRoomError: they would not fit beside what is promised to others.
        """
        self._writer.promise(n_bytes)
        self._left_bytes += n_bytes

    def spend(self, n_bytes: int) -> None:
        """Count what has been written.

        Raises:
            NoRoomError: it is more than was promised, and there is no room for more.
        """
        if n_bytes > self._left_bytes:
            self.promise(max(n_bytes - self._left_bytes, min(_STEP_BYTES, self._writer.room_bytes() // 2)))
        self._left_bytes -= n_bytes
        self._writer.release(n_bytes)

    def release(self) -> None:
        """Give back what was not needed."""
        self._writer.release(self._left_bytes)
        self._left_bytes = 0


class Intake:
    """Writes the wanted files of one host and remembers how each one fared.

    `stored` holds whole files by source; `mismatched` those whose size was not the announced one, which
    wait under a temporary name for `keep_changed` or `refuse`; `failed` those that this machine cannot
    hold, with the reason. `n_bytes_aside` counts what was kept of large files that were cut off.
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
        self.budget = DiskBudget(writer)
        self._journal = journal
        self._held: dict[bytes, IncomingFile] = {}
        self._watch = watch
        self.n_bytes_aside = 0
        self.stored: dict[bytes, CollectedFile] = {}
        self.mismatched: dict[bytes, CollectedFile] = {}
        self.failed: dict[bytes, CollectedFile] = {}

    @property
    def brought(self) -> tuple[int, int]:
        """How many files have come, and how many bytes of others."""
        return len(self.stored), self.n_bytes_aside

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
            state=("skipped" if placed.comes_reduced else "failed") if reason else "stored",
            reason=reason or (UNREAD if placed.is_unread else ""),
            reduced_from_bytes=placed.reduced_from_bytes,
        )

    def begin(self, placed: PlacedFile) -> IncomingFile | None:
        """Open a file, or note why it cannot be kept here and return None."""
        self.forget(placed)
        try:
            return self._writer.begin(self.path_of(placed), self._version(placed))
        except FileRefusedError as error:
            self.refuse(placed, str(error))
            return None

    def cut_bytes(self, placed: PlacedFile) -> int:
        """Return how much of a file came before it was cut off; 0 where it begins anew."""
        if placed.entry.size_bytes < LARGE_BYTES:
            return 0
        n_bytes = self._writer.cut_bytes(self.path_of(placed), self._version(placed))
        return n_bytes if n_bytes <= placed.entry.size_bytes else 0

    async def resume(self, placed: PlacedFile, alive: Callable[[], object]) -> IncomingFile:
        """Open a file whose first `cut_bytes` are here; `alive` is called while a thread hashes them."""
        loop = asyncio.get_running_loop()
        self.forget(placed)
        incoming = self._writer.resume(self.path_of(placed), self._version(placed))
        await in_thread(incoming.take_in_what_is_there, lambda: loop.call_soon_threadsafe(alive))
        return incoming

    def write(self, incoming: IncomingFile, data: bytes | memoryview) -> None:
        """Append content to a file.

        Raises:
            FileRefusedError: this file grows larger than the file system allows.
            NoRoomError: the host writes more than there is room for.
            ClusterError: the disk is full or broken.
        """
        incoming.write(data)
        self.budget.spend(len(data))

    def put_aside(self, incoming: IncomingFile) -> None:
        """Keep the beginning of a large file, to go on from there; remove that of a small one."""
        self.n_bytes_aside += incoming.put_aside()

    def forget(self, placed: PlacedFile) -> None:
        """Forget how earlier attempts at a file went."""
        path = placed.entry.path
        self.stored.pop(path, None)
        self.mismatched.pop(path, None)
        self.failed.pop(path, None)
        held = self._held.pop(path, None)
        if held is not None:
            held.abandon()

    def refuse(self, placed: PlacedFile, reason: str) -> None:
        """Note why a file is not taken, and remove what came of it."""
        self.forget(placed)
        self.failed[placed.entry.path] = self.described(placed, reason=reason)

    def keep_changed(self, placed: PlacedFile) -> None:
        """Give a file its final name that has another size than announced, because it was still written."""
        held = self._held.pop(placed.entry.path, None)
        if held is not None:
            held.settle()

    def drop_held(self) -> None:
        """Remove what still waits under a temporary name."""
        for held in self._held.values():
            held.abandon()
        self._held.clear()

    def _version(self, placed: PlacedFile) -> str:
        """Return the mark of exactly this version of a large file; empty for a small one."""
        entry = placed.entry
        if entry.size_bytes < LARGE_BYTES:
            return ""
        text = b"%b\0%b\0%d\0%d" % (self._server_id.encode(), entry.path, entry.size_bytes, entry.mtime_ns)
        return hashlib.sha256(text).hexdigest()[:32]

    def unstore(self, placed: PlacedFile) -> None:
        """Remove a file that was stored, as if it had never come."""
        file = self.stored.get(placed.entry.path)
        if file is not None:
            self._writer.remove(file.path)
        self.forget(placed)

    def received(self, n_bytes: int) -> None:
        """Tell the watcher about content."""
        self._watch.bytes_received(self._host, n_bytes)

    def finish(self, placed: PlacedFile, incoming: IncomingFile) -> None:
        """Keep a file that has been received to its end; one of another size than announced only waits."""
        entry = placed.entry
        try:
            if incoming.n_bytes == entry.size_bytes:
                self._note(placed, incoming.commit(entry.mtime_ns))
            else:
                sha256 = incoming.hold(entry.mtime_ns)
                self._held[entry.path] = incoming
                size_now = RemoteEntry(entry.path, "f", incoming.n_bytes, entry.mtime_ns)
                self.mismatched[entry.path] = self.described(PlacedFile(size_now, placed.target), sha256)
        except FileRefusedError as error:
            self.refuse(placed, str(error))

    def _note(self, placed: PlacedFile, sha256: str) -> None:
        """Note a file that now has its final name; an earlier one in the other form goes."""
        file = self.described(placed, sha256)
        is_reduced = placed.reduced_from_bytes is not None
        other = file.path.removesuffix(SUFFIX) if is_reduced else file.path + SUFFIX
        if self._journal.lies_at(self._server_id, file.source, other):
            self._writer.remove(other)
        self._journal.record(self._server_id, file)
        self.stored[placed.entry.path] = file
        self._watch.file_stored(self._host, file.path, file.size_bytes)


def _why_no_columns(placed: PlacedFile, begin: bytes | bytearray | memoryview) -> str:
    """Say why what came for a file is not the columns that were asked for; empty where it is no columns."""
    if placed.reduced_from_bytes is None:
        return ""
    why = why_not_of(placed.entry.path, bytes(begin))
    return f"what its host sent as its columns is none: {why}" if why else ""


class TarIntake:
    """Hands the files of one tar stream to an intake. A context manager: at its end no file is open.

    It takes what was asked for, each name once, no larger than twice its listed size or 64 MiB more. With
    `takes_columns` each file may come as columns, too. `awaited` has the listed size by each such name.
    """

    def __init__(self, files: Iterable[PlacedFile], intake: Intake, *, takes_columns: bool = False) -> None:
        self._takes_columns = takes_columns
        self._files = {file.entry.path: file for file in files}
        self._seen: set[bytes] = set()
        self._intake = intake
        self._placed: PlacedFile | None = None
        self._incoming: IncomingFile | None = None
        self._is_as_listed = False
        self._begin = bytearray()
        self.awaited: dict[bytes, int] = {}
        for path, file in self._files.items():
            size_bytes = file.entry.size_bytes
            most = min(size_bytes, _MOST_REDUCED_BYTES) if file.comes_reduced else size_bytes
            ends = (_SUFFIX, _UNREAD_SUFFIX) if file.comes_reduced else (_SUFFIX,)
            self.awaited |= {path + end: most for end in (b"", *(ends if takes_columns else ()))}

    def __enter__(self) -> TarIntake:
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        self.close(keep=not isinstance(error, HostileDataError))

    def begin_file(self, name: bytes, size_bytes: int) -> None:
        """Open the file; a name that this machine cannot hold is read past."""
        self._placed = self._wanted(name, size_bytes)
        self._incoming = self._intake.begin(self._placed)
        self._begin.clear()
        # A file that may come as columns is asked for again from its begin.
        begins_anew = self._takes_columns and has_columns(self._placed.entry.path)
        self._is_as_listed = not begins_anew and size_bytes == self._placed.entry.size_bytes

    def _wanted(self, name: bytes, size_bytes: int) -> PlacedFile:
        """Return the file of that name; one of columns with the size that it turns out to have."""
        most = self.awaited.get(name)
        if most is None:
            raise HostileDataError(f"the archive holds {name[:200]!r}, which was not asked for")
        if name in self._seen:
            raise HostileDataError(f"the archive holds {name[:200]!r} twice")
        if size_bytes > most + max(most, _GROWTH_BYTES):
            raise HostileDataError(
                f"{name[:200]!r} was announced with {most} bytes and comes with {size_bytes}"
            )
        self._seen.add(name)
        if name in self._files:
            return self._files[name]
        is_unread = name.endswith(_UNREAD_SUFFIX)
        whole = self._files[name.removesuffix(_UNREAD_SUFFIX if is_unread else _SUFFIX)]
        return as_columns(whole, size_bytes, is_unread=is_unread)

    def file_data(self, data: memoryview) -> None:
        """Write content."""
        self._intake.received(len(data))
        if self._incoming is not None and self._placed is not None:
            if self._placed.reduced_from_bytes is not None and len(self._begin) <= MOST_HEAD_BYTES:
                self._begin += data
            try:
                self._intake.write(self._incoming, data)
            except FileRefusedError as error:
                self._intake.refuse(self._placed, str(error))
                self.close(keep=False)

    def end_file(self) -> None:
        """Keep the file."""
        if self._incoming is not None and self._placed is not None:
            if why := _why_no_columns(self._placed, self._begin):
                self._incoming.abandon()
                self._intake.refuse(self._placed, why)
            else:
                self._intake.finish(self._placed, self._incoming)
            self._incoming = None

    def close(self, *, keep: bool) -> None:
        """Put a file aside whose end has not come; remove it without `keep`, or if it is not as listed."""
        if self._incoming is not None:
            if keep and self._is_as_listed:
                self._intake.put_aside(self._incoming)
            else:
                self._incoming.abandon()
            self._incoming = None
