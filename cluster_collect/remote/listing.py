"""Reads what the programs on a host answer: tools, clock, room, and the list of its files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import get_args

from cluster_collect.entries import Allowance, Link, RemoteEntry
from cluster_collect.faults import HostileDataError, NoProfilerRootError, NoShellError
from cluster_collect.spec import Codec
from cluster_collect.wording import printable

_MAX_NOISE_BYTES = 4 << 20
#: Bytes that are kept of the output of a host that runs no commands.
_MOST_SAID_BYTES = 1 << 10
_MAX_RECORD_BYTES = 16 * 1024
#: Characters of the names that are reported if the root is missing.
_MOST_SAID = 400
#: Type, size, time, path.
_ENTRY = re.compile(rb"(.) (\d{1,20}) (-?\d{1,20})(?:\.(\d{1,9})\d*)? (.*)", re.DOTALL)
#: How a link fares, its path, and where it leads: no path of a listing holds `//`.
_LINK = re.compile(rb"link ([-+?>]) (.*?)//(.*)", re.DOTALL)
_CLOCK = re.compile(r"\d{1,12}(?:\.\d{1,9})?")
_KIBIBYTES = re.compile(r"[0-9]{1,18}")
_STATUS = re.compile(r"[0-9]{1,3}")
#: The status of find, and what it complained about.
_END = re.compile(rb"end ([0-9]{1,3})(?: (.*))?", re.DOTALL)


class MarkerFilter:
    """Passes on what follows the marker and a NUL byte, and drops what stands before it."""

    def __init__(self, marker: bytes) -> None:
        self._wanted = marker + b"\0"
        self._pending = b""
        self._n_dropped = 0
        self.found = False
        #: The beginning of what came instead, while it is not found.
        self.before = b""

    def feed(self, data: bytes) -> bytes:
        """Return the part of `data` that belongs to the answer."""
        if self.found:
            return data
        self.before += data[: _MOST_SAID_BYTES - len(self.before)]
        self._pending += data
        _, marker, after = self._pending.partition(self._wanted)
        if marker:
            self.found, self._pending = True, b""
            return after
        kept = self._pending[-len(self._wanted) :]
        self._n_dropped += len(self._pending) - len(kept)
        self._pending = kept
        if self._n_dropped > _MAX_NOISE_BYTES:
            raise NoShellError("the host prints without end before it answers")
        return b""


@dataclass(frozen=True)
class Tools:
    """Versions as the programs print them; empty where one is missing."""

    tar: str = ""
    zstd: str = ""
    gzip: str = ""
    find: str = ""

    @property
    def are_gnu(self) -> bool:
        """Whether `find -printf` works there, and tar takes NUL-separated names and knows our options."""
        return "GNU" in self.find and "GNU" in self.tar

    def codec(self, wanted: str) -> Codec:
        """Choose the compression: what `wanted` says, or the best one there is for `auto`."""
        may_be = (one for one in get_args(Codec)[:-1] if wanted in ("auto", one))
        return next((one for one in may_be if getattr(self, one)), "none")


class ListingReader:
    """Reads the NUL-terminated records of a probe, or of the listing that ends a fetch, as they arrive.

    All bytes and entries are taken from `allowance`, so that no host can fill our memory. Every number is
    checked here, and nowhere else. With `known` only these files are kept, and one that equals its known
    entry is that one: with a thousand files a host, two listings of two hundred hosts count. Each thing may
    be told once only: a host that repeats itself would never end.
    """

    def __init__(self, allowance: Allowance, known: Mapping[bytes, RemoteEntry] | None = None) -> None:
        self._allowance = allowance
        self._known = known
        self._pending = b""
        self._reported: set[str] = set()
        self._take: Callable[[bytes], None] = self._report
        self._tools: dict[str, str] = {}
        self.entries: list[RemoteEntry] = []
        self.links: list[Link] = []
        self.real_root = b""
        self.clock_s: float | None = None
        self.free_bytes: int | None = None
        self.find_status: int | None = None
        self.complaints = b""
        self.missing = False
        #: Where the root is missing: the nearest directory above it, and what that holds.
        self._said = {"above": "", "there": ""}

    @property
    def complete(self) -> bool:
        """Whether the end of the listing has arrived."""
        return self.find_status is not None or self.missing

    @property
    def tools(self) -> Tools:
        """The programs of the host, as far as they were reported."""
        return Tools(**self._tools)

    def feed(self, data: bytes) -> int:
        """Take the next bytes; return how many bytes became records by that.

        Raises:
            HostileDataError: a record is not one of ours, or there are too many.
        """
        if self.complete:
            return 0
        self._allowance.take_bytes(len(data))
        n_before = len(self._pending)
        *records, self._pending = (self._pending + data).split(b"\0")
        if len(self._pending) > _MAX_RECORD_BYTES:
            raise HostileDataError("the listing holds a record without end")
        for record in records:
            self._take(record)
        return n_before + len(data) - len(self._pending)

    def require_root(self, profiler_root: str) -> None:
        """Raise NoProfilerRootError when the host said that the root cannot be entered."""
        if not self.missing:
            return
        above = printable(self._said["above"])
        names = ", ".join(map(printable, self._said["there"].split()))
        if self._said["above"].rstrip("/").endswith(profiler_root.rstrip("/").removeprefix("~")):
            what, advice = "this user may not read it", "let the login user read it, or set become: sudo"
        else:
            what, advice = "there is no such directory", "check profiler_root (or local) of this host"
            what += f"; {above} holds {names}" if names else f"; {above} is there" if above else ""
        raise NoProfilerRootError(f"{profiler_root}: missing, or not readable for this user: {what}", advice)

    def _report(self, record: bytes) -> None:
        word, _, rest = record.decode(errors="replace").partition(" ")
        about = f"tool {rest.partition(' ')[0]}" if word == "tool" else word
        if about in self._reported:
            raise HostileDataError(f"the host tells its {about[:40]!r} twice")
        self._reported.add(about)
        if word == "root":
            self.real_root = record.partition(b" ")[2]
        elif word in ("listing", "missing"):
            self.missing = word == "missing"
            self._take = _ignore if self.missing else self._entry
        elif word in self._said:
            self._said[word] = rest[:_MOST_SAID]
        elif word == "clock":
            self.clock_s = float(rest) if _CLOCK.fullmatch(rest) else None
        elif word == "tool":
            name, _, version = rest.partition(" ")
            if name not in Tools.__dataclass_fields__:
                raise HostileDataError(f"the host answered with {record[:80]!r}")
            self._tools[name] = version.strip()[:100]
        elif word == "free":
            fields = rest.split()
            if len(fields) >= 4 and _KIBIBYTES.fullmatch(fields[-3]):
                self.free_bytes = int(fields[-3]) * 1024
        elif word != "status" or not _STATUS.fullmatch(rest):
            raise HostileDataError(f"the host answered with {record[:80]!r}")

    def _entry(self, record: bytes) -> None:
        match = _ENTRY.fullmatch(record)
        if match:
            self._allowance.take_entry()
            kind, size, seconds, fraction, path = match.groups()
            path = path.removeprefix(b"./")
            known = None if self._known is None else self._known.get(path)
            if self._known is not None and known is None:
                return  # a file that nobody asks for
            mtime_ns = int(seconds) * 1_000_000_000 + int((fraction or b"").ljust(9, b"0"))
            reported = (kind.decode("latin-1"), int(size), mtime_ns)
            if known is None or reported != (known.kind, known.size_bytes, known.mtime_ns):
                known = RemoteEntry(path, *reported)
            self.entries.append(known)
        elif end := _END.fullmatch(record):
            self.find_status, self.complaints = int(end[1]), end[2] or b""
            self._take = _ignore
        elif link := _LINK.fullmatch(record):
            self._allowance.take_entry()
            mark, path, target = link.groups()
            if self._known is None:
                self.links.append(Link(path, target, mark == b"+", mark == b"?", mark == b">"))
        else:
            raise HostileDataError(f"the listing holds {record[:80]!r}")


def _ignore(record: bytes) -> None:
    """Take what follows the end of a listing."""
