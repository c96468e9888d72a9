"""Writes files into the run directory: under a temporary name, hashed on the way, renamed when whole.

A large file that is cut off stays under its temporary name, and is resumed later. The name says which version
of the file it is the beginning of. Such a beginning is used only until this machine is booted again: what a
process wrote outlives the process, but not always a crash of the machine.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path

from cluster_collect.faults import DiskFullError, NoRoomError, local_error
from cluster_collect.store.directories import Directories
from cluster_collect.wording import format_bytes

PART_PREFIX = ".part-"
#: A temporary name of `written_whole`, and how deep below the run directory our own files lie.
_HALF = re.compile(rb"\..+\.[0-9a-f]{12}\.part")
_MAX_OWN_DEPTH = 3
_CHECK_EVERY_BYTES = 64 << 20
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
#: More than what stands behind the content of a file in a stream: marker, status, one line of a listing.
_DOUBTFUL_BYTES = 16 << 10
_FLAGS_AGAIN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE = 0o644
#: Files of this size on are resumed when they are cut off.
LARGE_BYTES = 8 << 20
CUT_PREFIX = b".cut-"
_READ_BYTES = 8 << 20


class FileRefusedError(Exception):
    """This machine cannot hold a file under its name; only this one file is concerned."""


class RunWriter:
    """Makes the files below one run directory and watches the free space while doing so."""

    def __init__(self, run: Path, min_free_bytes: int) -> None:
        self.run = run
        self.directories = Directories(run)
        self._part_stem = os.fsencode(f"{PART_PREFIX}{os.getpid()}-")
        self._min_free_bytes = min_free_bytes
        self._promised_bytes = 0
        self._unchecked_bytes = 0
        self._numbers = count(1)
        self._cut_stem = b"%b%b-" % (CUT_PREFIX, _boot_mark())
        self._cuts: set[bytes] = set()

    def room_bytes(self) -> int:
        """Return how much more may be promised; never below 0."""
        taken_bytes = self._promised_bytes + self._min_free_bytes
        return max(0, shutil.disk_usage(self.run).free - taken_bytes)

    @property
    def kept_free(self) -> str:
        """What is to be said of the room that stays free, behind how much there is."""
        kept = format_bytes(self._min_free_bytes)
        return f" ({kept} stay free: --min-free)" if self._min_free_bytes else ""

    def promise(self, n_bytes: int) -> None:
        """Announce that `n_bytes` will be written.

        Raises:
            NoRoomError: they would not fit beside what is already promised.
        """
        room_bytes = self.room_bytes()
        if n_bytes > room_bytes:
            raise NoRoomError(
                f"{format_bytes(n_bytes)} do not fit: {self.run} has room for {format_bytes(room_bytes)} more"
                f"{self.kept_free}",
                "choose another --output, collect less with --what, or make room; a second call goes on",
            )
        self._promised_bytes += n_bytes

    def release(self, n_bytes: int) -> None:
        """Take back a promise that was kept or will not be needed."""
        self._promised_bytes -= n_bytes

    def begin(self, path: str, version: str = "") -> IncomingFile:
        """Start the file `path` (relative to the run directory).

        With a `version` (of a large file: its name, size and time on the host) it can be resumed.

        Raises:
            FileRefusedError: the name cannot be used here.
            ClusterError: the disk is full or the directory cannot be written.
        """
        directory, temporary, final = self._names(path, version)
        try:
            if version:
                self._remove(b"%b/%b" % (directory, temporary))
            descriptor = os.open(temporary, _FLAGS, _MODE, dir_fd=self.directories.opened(directory))
            return IncomingFile(self, descriptor, directory, temporary, final)
        except OSError as error:
            raise refused(error, path) from None

    def cut_bytes(self, path: str, version: str) -> int:
        """Return how much of this version of a large file is here, 0 when there is nothing of it."""
        directory, temporary, _ = self._names(path, version)
        if b"%b/%b" % (directory, temporary) not in self._cuts:
            return 0
        try:
            place = self.directories.opened(directory)
            return os.stat(temporary, dir_fd=place, follow_symlinks=False).st_size
        except OSError as error:
            raise refused(error, path) from None

    def resume(self, path: str, version: str) -> IncomingFile:
        """Go on with a file that `cut_bytes` knows: it must take in what is there before more is written.

        Raises:
            ClusterError: the disk cannot be read or written.
        """
        directory, temporary, final = self._names(path, version)
        try:
            descriptor = os.open(temporary, _FLAGS_AGAIN, dir_fd=self.directories.opened(directory))
            # When a stream ends early, what came last may be something else.
            os.ftruncate(descriptor, max(0, os.fstat(descriptor).st_size - _DOUBTFUL_BYTES))
        except OSError as error:
            raise refused(error, path) from None
        self._cuts.discard(b"%b/%b" % (directory, temporary))
        return IncomingFile(self, descriptor, directory, temporary, final)

    def remove(self, path: str, *, with_empty: bool = False) -> None:
        """Remove a file that has its final name, and directories that are empty then if so wished."""
        self.directories.remove(os.fsencode(path), with_empty=with_empty)

    def put_aside(self, temporary: bytes) -> None:
        """Remember the beginning of a file."""
        self._cuts.add(temporary)

    def drop_cuts(self, directory: str) -> None:
        """Remove what nobody went on with below a directory (relative to the run directory)."""
        prefix = os.fsencode(directory) + b"/"
        for temporary in [name for name in self._cuts if name.startswith(prefix)]:
            self._remove(temporary)

    def close(self) -> None:
        """Close the directories that are kept open; safe to call again, and to go on after."""
        self.directories.close()

    def _names(self, path: str, version: str) -> tuple[bytes, bytes, bytes]:
        """Return a file's directory, and its temporary and its final name there."""
        directory, _, final = os.fsencode(path).rpartition(b"/")
        if version:
            return directory, self._cut_stem + version.encode(), final
        return directory, b"%b%d" % (self._part_stem, next(self._numbers)), final

    def _remove(self, temporary: bytes) -> None:
        self._cuts.discard(temporary)
        self.directories.remove(temporary)

    def written(self, n_bytes: int) -> None:
        """Count bytes on their way to the disk; from time to time check that there is room for more."""
        self._unchecked_bytes += n_bytes
        if self._unchecked_bytes >= _CHECK_EVERY_BYTES:
            self._unchecked_bytes = 0
            if shutil.disk_usage(self.run).free < self._min_free_bytes:
                raise DiskFullError(
                    f"{self.run}: less than {self._min_free_bytes >> 20} MiB left",
                    "make room and call it again: it goes on from there",
                )

    def remove_leftovers(self) -> None:
        """Remove the temporary files of a call that was killed; find what can be resumed."""
        root = os.fsencode(self.run)
        for directory, _, names, place in os.fwalk(root):
            below = os.path.relpath(directory, root)
            for name in names:
                if name.startswith(self._cut_stem):
                    self._cuts.add(b"%b/%b" % (below, name))
                elif name.startswith((os.fsencode(PART_PREFIX), CUT_PREFIX)) or _is_half(below, name):
                    os.unlink(name, dir_fd=place)


def _is_half(directory: bytes, name: bytes) -> bool:
    """Whether a file is what a kill left of our own ones, which lie above the hosts' `profiler`."""
    depth = 1 if directory == b"." else 2 + directory.count(b"/")
    return depth <= _MAX_OWN_DEPTH and _HALF.fullmatch(name) is not None


def _boot_mark() -> bytes:
    """Return a mark that stays the same until this machine is booted again; else a random one."""
    try:
        text = Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        text = secrets.token_hex(16)
    return text.replace("-", "")[:8].encode()


class IncomingFile:
    """A file that is being received. It lies in `directory`, and gets its `final` name when it is whole."""

    def __init__(
        self, writer: RunWriter, descriptor: int, directory: bytes, temporary: bytes, final: bytes
    ) -> None:
        self._writer = writer
        self._descriptor = descriptor
        self._directory = directory
        self._temporary = temporary
        self._final = final
        self._hash = hashlib.sha256()
        self._n_bytes_before = 0
        self._is_held = False
        self.n_bytes = 0

    def write(self, data: bytes | memoryview) -> None:
        """Append content.

        Raises:
            FileRefusedError: this file grows larger than the file system allows.
            ClusterError: the disk is full or broken.
        """
        self._hash.update(data)
        self.n_bytes += len(data)
        try:
            write_all(self._descriptor, data)
        except OSError as error:
            raise refused(error, self._name) from None
        self._writer.written(len(data))

    def commit(self, mtime_ns: int) -> str:
        """Give the file its final name and its time on the host; return its SHA-256."""
        sha256 = self.hold(mtime_ns)
        self.settle()
        return sha256

    def hold(self, mtime_ns: int) -> str:
        """End the file under its temporary name, until `settle` or `abandon`; return its SHA-256."""
        try:
            os.utime(self._descriptor, ns=(mtime_ns, mtime_ns))
            os.close(self._descriptor)
            self._descriptor = -1
            self._is_held = True
        except (OSError, OverflowError) as error:
            self.abandon()
            raise refused(error, self._name) from None
        return self._hash.hexdigest()

    def settle(self) -> None:
        """Give a file that is held its final name."""
        try:
            place = self._writer.directories.opened(self._directory)
            os.replace(self._temporary, self._final, src_dir_fd=place, dst_dir_fd=place)
        except OSError as error:
            self.abandon()
            raise refused(error, self._name) from None
        self._is_held = False

    def abandon(self) -> None:
        """Remove what has been received; safe to call again, and after a commit."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._is_held = True
        if self._is_held:
            self._is_held = False
            self._writer.directories.remove(self._temporary_path)

    def put_aside(self) -> int:
        """Keep what has been received if that is much, else remove it; safe to call again, as `abandon`.

        Return how much has been kept that was not here before.
        """
        if self._is_held:
            return 0
        is_large = self._temporary.startswith(CUT_PREFIX)
        if not is_large or self.n_bytes < LARGE_BYTES:
            self.abandon()
            return 0
        if self._descriptor < 0:
            return 0
        os.close(self._descriptor)
        self._descriptor = -1
        self._writer.put_aside(self._temporary_path)
        return self.n_bytes - self._n_bytes_before

    def take_in_what_is_there(self, alive: Callable[[], object]) -> None:
        """Hash the content of a file that is resumed, and stand at its end; may be called in any thread.

        It may take long; `alive` is called meanwhile.

        Raises:
            ClusterError: the disk cannot be read.
        """
        try:
            while piece := os.read(self._descriptor, _READ_BYTES):
                self._hash.update(piece)
                self.n_bytes += len(piece)
                alive()
        except OSError as error:
            raise refused(error, self._name) from None
        self._n_bytes_before = self.n_bytes

    @property
    def _temporary_path(self) -> bytes:
        return b"%b/%b" % (self._directory, self._temporary)

    @property
    def _name(self) -> str:
        return os.fsdecode(b"%b/%b" % (self._directory, self._final))


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of `data`, or raise OSError."""
    n_written = os.write(descriptor, data)
    while n_written < len(data):  # a full disk takes a part before it says so
        n_written += os.write(descriptor, memoryview(data)[n_written:])


def refused(error: OSError | OverflowError, path: str) -> Exception:
    """Return what an error of the disk means: a FileRefusedError where only this one file is concerned."""
    if not isinstance(error, OSError):
        return FileRefusedError(str(error))
    stops_all = local_error(error, path)
    if stops_all is not None:
        return stops_all
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return FileRefusedError(
            "cannot be stored under its name: a symbolic link or a file is in its way in the run directory"
        )
    if error.errno == errno.EFBIG:
        return FileRefusedError("larger than this machine's file system allows")
    return FileRefusedError(f"cannot be stored under its name: {error.strerror}")
