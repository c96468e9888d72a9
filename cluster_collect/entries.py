"""Names and entries as a host lists them: bytes, and trusted for nothing."""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass

_MAX_NAME_BYTES = 255
_MAX_PATH_BYTES = 3000
_SAFE_PART = rb"(?!\.{1,2}(?:/|\Z))[^/\0]{1,%d}" % _MAX_NAME_BYTES
_SAFE = re.compile(rb"%b(?:/%b)*" % (_SAFE_PART, _SAFE_PART))


@dataclass(frozen=True)
class RemoteEntry:
    """One thing below the profiler root. `kind` is `f`, `d`, `l` or another letter of find's `%y`."""

    path: bytes
    kind: str
    size_bytes: int
    mtime_ns: int


def unsafe_because(path: bytes) -> str:
    """Say why a relative path from a host must not be used on this machine; empty when it may."""
    return "" if len(path) <= _MAX_PATH_BYTES and _SAFE.fullmatch(path) else _why_unsafe(path)


def _why_unsafe(path: bytes) -> str:
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
