"""Writes files into the run directory: under a temporary name, hashed on the way, renamed when whole.

A large file that is cut off stays under its temporary name, and is resumed later. The name says which version
of the file it is the beginning of. Such a beginning is used only until this machine is booted again: what a
process wrote outlives the process, but not always a crash of the machine.
"""

from __future__ import annotations

import ctypes
import os
import re
import secrets
import shutil
from itertools import count
from pathlib import Path

from cluster_collect.faults import DiskFullError, NoRoomError, UnwritableError
from cluster_collect.store.incoming import CUT_PREFIX, IncomingFile, refused
from cluster_collect.store.places import Places
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


class RunWriter:
    """Makes the files below one run directory and watches the free space while doing so."""

    def __init__(self, run: Path, min_free_bytes: int) -> None:
        self.run = run
        self.places = Places(run)
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
            descriptor = os.open(temporary, _FLAGS, _MODE, dir_fd=self.places.opened(directory))
            return IncomingFile(self, descriptor, directory, temporary, final)
        except OSError as error:
            raise refused(error, path) from None

    def cut_bytes(self, path: str, version: str) -> int:
        """Return how much of this version of a large file is here, 0 when there is nothing of it."""
        directory, temporary, _ = self._names(path, version)
        if b"%b/%b" % (directory, temporary) not in self._cuts:
            return 0
        try:
            place = self.places.opened(directory)
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
            descriptor = os.open(temporary, _FLAGS_AGAIN, dir_fd=self.places.opened(directory))
            # When a stream ends early, what came last may be something else.
            os.ftruncate(descriptor, max(0, os.fstat(descriptor).st_size - _DOUBTFUL_BYTES))
        except OSError as error:
            raise refused(error, path) from None
        self._cuts.discard(b"%b/%b" % (directory, temporary))
        return IncomingFile(self, descriptor, directory, temporary, final)

    def remove(self, path: str, *, with_empty: bool = False) -> None:
        """Remove a file that has its final name, and directories that are empty then if so wished."""
        self.places.remove(os.fsencode(path), with_empty=with_empty)

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
        self.places.close()

    def _names(self, path: str, version: str) -> tuple[bytes, bytes, bytes]:
        """Return a file's directory, and its temporary and its final name there."""
        directory, _, final = os.fsencode(path).rpartition(b"/")
        if version:
            return directory, self._cut_stem + version.encode(), final
        return directory, b"%b%d" % (self._part_stem, next(self._numbers)), final

    def _remove(self, temporary: bytes) -> None:
        self._cuts.discard(temporary)
        self.places.remove(temporary)

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

    def flush_to_disk(self) -> None:
        """Make everything durable that was written to the run directory's file system."""
        descriptor = os.open(self.run, os.O_RDONLY | os.O_DIRECTORY)
        try:
            syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
            if syncfs is None:  # Linux alone has it
                os.sync()
            elif syncfs(descriptor) != 0:
                raise UnwritableError(f"{self.run}: not written to disk: {os.strerror(ctypes.get_errno())}")
        finally:
            os.close(descriptor)

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


_STEP_BYTES = 64 << 20


class Budget:
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
