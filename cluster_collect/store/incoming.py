"""One file on its way into the run directory: written, hashed, and given its final name when whole."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable
from typing import Protocol

from cluster_collect.faults import local_error
from cluster_collect.store.places import Places

#: Files of this size on are resumed when they are cut off.
LARGE_BYTES = 8 << 20
CUT_PREFIX = b".cut-"
_READ_BYTES = 8 << 20


class FileRefusedError(Exception):
    """This machine cannot hold a file under its name; only this one file is concerned."""


class Disk(Protocol):
    """The writer of the whole run directory, as its files need it."""

    @property
    def places(self) -> Places:
        """Its directories."""

    def written(self, n_bytes: int) -> None:
        """Count bytes that are on their way to the disk."""

    def put_aside(self, temporary: bytes) -> None:
        """The beginning of a file stays under this name."""


class IncomingFile:
    """A file that is being received. It lies in `directory`, and gets its `final` name when it is whole."""

    def __init__(self, disk: Disk, descriptor: int, directory: bytes, temporary: bytes, final: bytes) -> None:
        self._disk = disk
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
        self._disk.written(len(data))

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
            place = self._disk.places.opened(self._directory)
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
            self._disk.places.remove(self._temporary_path)

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
        self._disk.put_aside(self._temporary_path)
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
