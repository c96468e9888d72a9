"""The configuration file of a profiler: locked, replaced as a whole, and put back as it was.

torch_npu sees a change by the whole seconds of the file's time, and its ranks take one only if it is later
than the last that they took: the time is set by this host's clock, and two changes are two seconds apart.
A restored file gets its old time again, so that no rank takes it.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from typing import Any

#: Between two changes; in the same second the later one may be lost.
APART_S = 2.0
#: A file's time may be this far ahead of the clock: it is cut to seconds, and clocks are not one.
_AHEAD_S = 2.0
_MAX_BYTES = 1 << 20
#: Beside the configuration file: the lock of a capture.
LOCK_NAME = ".cluster-live.lock"
#: A lock may be held this long by somebody whose name is not in it yet.
_NAMELESS_S = 2.0


class HeldError(Exception):
    """Somebody else's: the message says whose."""


class Files:
    """Locks and changes of this process."""

    def __init__(self) -> None:
        self._locks: dict[str, int] = {}
        self._before: dict[str, tuple[bytes | None, os.stat_result | None]] = {}
        self._written: dict[str, bytes] = {}

    def lock(self, directory: str, name: str, owner: str, host: str) -> str:
        """Take the lock of a directory for the capture `owner`; return `ours`, or which host has it for that.

        Raises:
            HeldError: another capture has it.
        """
        path = os.path.join(directory, name)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        until_s = time.monotonic() + _NAMELESS_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                holder_lines = os.pread(descriptor, 4096, 0).decode(errors="replace").split("\n")
                if len(holder_lines) < 3 and time.monotonic() < until_s:
                    # Its holder is about to write its name, or to give it back.
                    time.sleep(0.02)
                    continue
                os.close(descriptor)
                if holder_lines[0] == owner:
                    return holder_lines[1]
                raise HeldError(
                    "{}: held by the capture {}".format(path, holder_lines[0] or "of somebody")
                ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{owner}\n{host}\n".encode())
        self._locks[path] = descriptor
        return "ours"

    def unlock(self) -> None:
        """Give all locks back. The files stay: to remove one would give a second owner another file."""
        for descriptor in self._locks.values():
            os.ftruncate(descriptor, 0)
            os.close(descriptor)
        self._locks.clear()

    def replace(self, path: str, text: str) -> float:
        """Replace a file as a whole; return the time that it has now. Waits until that is late enough.

        Raises:
            ValueError: no time could be set that ranks take.
        """
        before = self._before.setdefault(path, _content(path))
        last_s = _time_of(path)
        now_s = time.time()
        if last_s is not None and last_s > now_s + _AHEAD_S:
            raise ValueError(
                f"{path}: its time is {last_s - now_s:.0f} s ahead of this host's clock: "
                "ranks that took it take nothing else until then"
            )
        late_enough_s = int(last_s) + APART_S if path in self._written and last_s is not None else 0.0
        if now_s < late_enough_s:
            time.sleep(late_enough_s - now_s)
        if last_s is not None and int(time.time()) <= int(last_s):
            time.sleep(1.0 + last_s % 1)
        content = text.encode()
        at_s = time.time()
        _write(path, content, at_s, before[1])
        self._written[path] = content
        got_s = os.stat(path).st_mtime
        if int(got_s) != int(at_s):
            raise ValueError(f"{path}: its file system does not take the time that it is given")
        return got_s

    def put_back(self, path: str) -> bool:
        """Give a file its content and time of before; return False where somebody else changed it since."""
        if path not in self._written:
            return False
        now = _content(path)[0]
        written = self._written.pop(path)
        content, status = self._before.pop(path)
        if now != written:
            return False
        if content is None or status is None:
            os.unlink(path)
        else:
            _write(path, content, status.st_mtime, status)
        return True


def read(path: str) -> Any | None:
    """Return a file of JSON, None where there is none.

    Raises:
        ValueError: it holds something else.
    """
    content = _content(path)[0]
    if content is None:
        return None
    try:
        return json.loads(content.decode())
    except (ValueError, RecursionError):
        raise ValueError(f"{path}: this is no JSON") from None


def _content(path: str) -> tuple[bytes | None, os.stat_result | None]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None, None
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{path}: this is no file")
        return stream.read(_MAX_BYTES), status


def _time_of(path: str) -> float | None:
    try:
        return os.stat(path).st_mtime
    except FileNotFoundError:
        return None


def _write(path: str, content: bytes, time_s: float, like: os.stat_result | None) -> None:
    temporary = f"{path}.{os.getpid()}.part"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            if like is not None:
                os.fchmod(stream.fileno(), stat.S_IMODE(like.st_mode))
                if os.geteuid() == 0:
                    os.fchown(stream.fileno(), like.st_uid, like.st_gid)
        os.utime(temporary, (time_s, time_s))
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
