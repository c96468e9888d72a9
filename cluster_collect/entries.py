"""Names and entries as a host lists them: bytes that are never trusted."""

from __future__ import annotations

import re
import stat
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cluster_collect.faults import HostileDataError
from cluster_run.layout import CAPTURE_END, PROF_PREFIX

_CAPTURE = re.compile(f".+{CAPTURE_END}|{PROF_PREFIX}.+".encode(), re.DOTALL)
#: In the captures of PyTorch and MindSpore. Other names hold the number of a device, or no number.
_RANK = re.compile(
    rb"(?:.*/)?(?:profiler_info_(\d{1,6})\.json|ascend_(?:pytorch|mindspore)_profiler_(\d{1,6})\.db)",
    re.DOTALL,
)
_DEVICE = re.compile(rb"((?:.*/)?PROF_[^/]+)/device_(\d{1,4})/.*", re.DOTALL)
_MAX_NAME_BYTES = 255
_MAX_PATH_BYTES = 3000
#: Half a million files with the names that profilers write.
MAX_LISTING_BYTES = 96 << 20


@dataclass(frozen=True, slots=True)  # a host may list half a million
class RemoteEntry:
    """One thing below the profiler root. `kind` is `f`, `d`, `l` or another letter of find's `%y`."""

    path: bytes
    kind: str
    size_bytes: int
    mtime_ns: int


def is_capture(name: bytes) -> bool:
    """Whether a directory of this name holds a capture."""
    return bool(_CAPTURE.fullmatch(name))


def group_of(path: bytes) -> bytes:
    """Return the capture that a file belongs to: the outermost one, else the file's directory."""
    parts = path.split(b"/")[:-1]
    for depth, part in enumerate(parts):
        if is_capture(part):
            return b"/".join(parts[: depth + 1])
    return b"/".join(parts)


def rank_of(path: bytes) -> int | None:
    """Return the rank whose capture a file lies in, where its name tells."""
    match = _RANK.fullmatch(path)
    return None if match is None else int(match[1] or match[2])


def captures_of_ranks(
    paths: Iterable[bytes], device_ranks: Mapping[int, int] | None = None
) -> dict[bytes, int]:
    """Return the rank of each capture of a host, by its directory, as far as they are known.

    Names of files tell it. A bare `PROF_*` directory tells its device, whose rank is in `device_ranks`.
    """
    paths = list(paths)
    devices: defaultdict[bytes, set[int]] = defaultdict(set)
    for path in paths if device_ranks else ():
        if (match := _DEVICE.fullmatch(path)) and group_of(path) == match[1]:
            devices[match[1]].add(int(match[2]))
    known = {
        group: device_ranks[device]
        for group, (device, *others) in devices.items()
        if device_ranks and device in device_ranks and not others
    }
    return {**known, **{group_of(path): rank for path in paths if (rank := rank_of(path)) is not None}}


@dataclass(frozen=True)
class Link:
    """A symbolic link to a directory, or to nothing. `target` is absolute, all links in it resolved.

    `holds_data` says whether captures were seen below it, `is_followed` whether its files are listed.
    """

    path: bytes
    target: bytes
    holds_data: bool = False
    is_dangling: bool = False
    is_followed: bool = False


def unsafe_because(path: bytes) -> str:
    """Say why a relative path from a host must not be used on this machine; empty if it may be used."""
    if path.startswith(b"/"):
        return "the name is absolute"
    if b"\0" in path:
        return "the name holds a NUL byte"
    if len(path) > _MAX_PATH_BYTES:
        return f"the path is longer than {_MAX_PATH_BYTES} bytes"
    for part in path.split(b"/"):
        if part in (b"", b".", b".."):
            return "the path has an empty, '.' or '..' part"
        if len(part) > _MAX_NAME_BYTES:
            return f"a name is longer than {_MAX_NAME_BYTES} bytes"
    return ""


def same_mtime(one_ns: int, other_ns: int) -> bool:
    """Whether two times of one file agree; whole seconds are compared where one side knows no more (SFTP)."""
    second = 1_000_000_000
    if one_ns % second == 0 or other_ns % second == 0:
        return one_ns // second == other_ns // second
    return one_ns == other_ns


def unchanged(before: RemoteEntry, after: RemoteEntry) -> bool:
    """Whether a file still is what it was."""
    return before.size_bytes == after.size_bytes and same_mtime(before.mtime_ns, after.mtime_ns)


def kind_letter(mode: int) -> str:
    """Return find's letter for the type in a file mode."""
    letter = stat.filemode(mode)[0]
    return "f" if letter == "-" else letter


class Allowance:
    """What is left of the entries and bytes that one listing may hold.

    Every byte that is read of it is taken here before anybody looks at it, so that a new kind of record
    is bounded, too. Where no records travel (SFTP), the names are the bytes.
    """

    def __init__(self, max_entries: int) -> None:
        self._max_entries = self._left_entries = max_entries
        self._left_bytes = MAX_LISTING_BYTES

    def take_bytes(self, n_bytes: int) -> None:
        """Count bytes that have come.

        Raises:
            HostileDataError: these are more than a listing may have.
        """
        self._left_bytes -= n_bytes
        if self._left_bytes < 0:
            raise HostileDataError(f"the listing holds more than {MAX_LISTING_BYTES >> 20} MiB")

    def take_entry(self, n_bytes: int = 0) -> None:
        """One more thing is listed, be it a file or a link; `n_bytes` where its name was not counted yet.

        Raises:
            HostileDataError: these are more than a listing may have.
        """
        self._left_entries -= 1
        if self._left_entries < 0:
            raise HostileDataError(f"the listing holds more than {self._max_entries} entries")
        self.take_bytes(n_bytes)
