"""What runs on a host, and how its answers are read.

The command line is the same for everybody: a shell that reads its program from standard input.
No name, path or setting ever stands in it, whatever the login shell is. Answers begin after a
random marker, so that what start-up files print before it does no harm.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cluster_collect.entries import RemoteEntry
from cluster_collect.faults import HostileDataError, NoProfilerRootError, NoShellError
from cluster_collect.remote.decompress import Codec

_MAX_NOISE_BYTES = 4 << 20
_MAX_RECORD_BYTES = 16 * 1024
_ENTRY = re.compile(rb"(.) (\d{1,20}) (-?\d{1,20})(?:\.(\d{1,9})\d*)? (.*)", re.DOTALL)

_FUNCTIONS = rb"""
LC_ALL=C; export LC_ALL
newline='
'
say() { printf '%s\0' "$1"; }
enter() { cd -P -- "$root" 2>/dev/null && { [ -r . ] || ls . >/dev/null 2>&1; }; }
list() { find . ! -type d -printf '%y %s %T@ %P\0'; say "end $?"; }
"""

_PROBE = rb"""
say "$marker"; say "clock $(date +%s.%N)"
# Every process counts where many hosts are asked: the shell itself takes the line that is wanted.
for tool in tar zstd gzip find; do
  version=$($tool --version </dev/null 2>/dev/null)
  say "tool $tool ${version%%"$newline"*}"
done
if enter; then
  free=$(df -Pk . 2>/dev/null)
  say "free ${free##*"$newline"}"
  say listing
  # Another find would print its complaints, or not know -printf at all.
  case $version in *GNU*) list ;; *) say "end 0" ;; esac
else say missing; fi
# One more program may follow: a login shell costs more than all the rest.
read -r length && eval "$(dd bs=1 count=$length 2>/dev/null)"
"""

# tar writes as much as a pipe holds: in its usual 10 KiB it costs a big host a sixth more of all its time.
_ARCHIVE = rb"""
pack() {
  $low tar --null --no-unquote --no-recursion --hard-dereference --format=gnu \
    --quoting-style=literal --blocking-factor=128 -T - -cf -
  status=$?
  say "$marker"; say "status $status"; say listing; list
}
"""

_REST = rb"""
pack() {
  $low tail -c "+$first" -- "$name" </dev/null | head -c "$length"
  say "$marker"; say "status 0"; say listing
  find "$name" -maxdepth 0 -printf '%y %s %T@ %p\0'; say "end $?"
}
"""

_SEND = rb"""
say "$marker"
enter || exit 91
low=
nice -n "$niceness" true >/dev/null 2>&1 && low="nice -n $niceness"
case $codec in
  # With threads of its own zstd takes more of the host's time. Before 1.3.4 it had none, nor this option.
  zstd) pack | { $low zstd -1 --single-thread -q -c || [ $? -ne 1 ] || $low zstd -1 -q -c; } ;;
  gzip) pack | $low gzip -1 -c ;;
  *) pack ;;
esac
"""

_HASH = rb"""
say "$marker"
enter || exit 91
nice -n "$niceness" xargs -0 sha256sum -z --
"""

_PREPARE = rb"""
say "$marker"
exec 2>&1 </dev/null
sh -c "$prepare"
"""


def quoted(value: bytes) -> bytes:
    """Return `value` as one word of the POSIX shell."""
    return b"'" + value.replace(b"'", rb"'\''") + b"'"


@dataclass(frozen=True)
class RemoteProgram:
    """A program and the data for its standard input. `marker` stands before the answer on standard output."""

    text: bytes
    data: bytes
    marker: bytes

    @property
    def command(self) -> str:
        """The command line: it names the length of the program and nothing else."""
        # dd takes exactly the program's bytes: a shell that reads its script from a pipe may take more.
        return f"sh -c 'eval \"$(dd bs=1 count={len(self.text)} 2>/dev/null)\"'"

    @property
    def stdin(self) -> bytes:
        """What `command` reads."""
        return self.text + self.data

    @property
    def follow_up(self) -> bytes:
        """What a probe that is still running reads to become this program."""
        return b"%d\n" % len(self.text) + self.text + self.data


def _program(script: bytes, settings: dict[bytes, bytes], data: bytes = b"") -> RemoteProgram:
    marker = secrets.token_hex(16).encode()
    assignments = b"".join(name + b"=" + value + b"\n" for name, value in settings.items())
    program = b"marker=" + marker + b"\n" + assignments + _FUNCTIONS + script
    return RemoteProgram(program, data, marker)


def _root(profiler_root: bytes) -> bytes:
    if profiler_root == b"~" or profiler_root.startswith(b"~/"):
        return b'"$HOME"' + quoted(profiler_root[1:])
    return quoted(profiler_root)


def probe_program(profiler_root: bytes) -> RemoteProgram:
    """Return the program that reports clock, tools and free space and lists everything below the root."""
    return _program(_PROBE, {b"root": _root(profiler_root)})


def fetch_program(profiler_root: bytes, names: Iterable[bytes], codec: Codec, niceness: int) -> RemoteProgram:
    """Return the program that sends the files `names` as one archive, and then lists everything again."""
    settings = {b"root": _root(profiler_root), b"codec": codec.encode(), b"niceness": b"%d" % niceness}
    # The ./ keeps a name that begins with a dash from being read as an option by old tars.
    return _program(_ARCHIVE + _SEND, settings, b"".join(b"./" + name + b"\0" for name in names))


def rest_program(
    profiler_root: bytes, entry: RemoteEntry, begin: int, codec: Codec, niceness: int
) -> RemoteProgram:
    """Return the program that sends a file from byte `begin` to its listed end, and then lists it again."""
    settings = {
        b"root": _root(profiler_root),
        b"codec": codec.encode(),
        b"niceness": b"%d" % niceness,
        b"name": quoted(b"./" + entry.path),
        b"first": b"%d" % (begin + 1),
        b"length": b"%d" % (entry.size_bytes - begin),
    }
    return _program(_REST + _SEND, settings)


def hash_program(profiler_root: bytes, names: Iterable[bytes], niceness: int) -> RemoteProgram:
    """Return the program that sends `HASH  ./NAME` and a NUL byte for each of the files `names`."""
    settings = {b"root": _root(profiler_root), b"niceness": b"%d" % niceness}
    return _program(_HASH, settings, b"".join(b"./" + name + b"\0" for name in names))


def prepare_program(command: str) -> RemoteProgram:
    """Return the program that runs the inventory's `prepare` command, both outputs as one."""
    return _program(_PREPARE, {b"prepare": quoted(command.encode())})


class MarkerFilter:
    """Passes on what follows the marker and a NUL byte, and drops what stands before it."""

    def __init__(self, marker: bytes) -> None:
        self._wanted = marker + b"\0"
        self._pending = b""
        self._n_dropped = 0
        self.found = False

    def feed(self, data: bytes) -> bytes:
        """Return the part of `data` that belongs to the answer."""
        if self.found:
            return data
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
    def can_list(self) -> bool:
        """Whether `find -printf` works there."""
        return "GNU" in self.find

    @property
    def can_pack(self) -> bool:
        """Whether tar takes NUL-separated names and knows the options we use."""
        return "GNU" in self.tar

    def codec(self, wanted: str) -> Codec:
        """Choose the compression: what `wanted` says, or the best one there is for `auto`."""
        if wanted in ("auto", "zstd") and self.zstd:
            return "zstd"
        if wanted in ("auto", "gzip") and self.gzip:
            return "gzip"
        return "none"


class ListingReader:
    """Reads the NUL-terminated records of a probe, or of the listing that ends a fetch, as they arrive.

    `entries` grows up to `max_entries`; more is an error, so that no host can fill our memory.
    """

    def __init__(self, max_entries: int) -> None:
        self._max_entries = max_entries
        self._pending = b""
        self._take: Callable[[bytes], None] = self._report
        self._tools: dict[str, str] = {}
        self.entries: list[RemoteEntry] = []
        self.clock_s: float | None = None
        self.free_bytes: int | None = None
        self.tar_status: int | None = None
        self.find_status: int | None = None
        self.missing = False

    @property
    def complete(self) -> bool:
        """Whether the end of the listing has arrived."""
        return self.find_status is not None or self.missing

    @property
    def tools(self) -> Tools:
        """The programs of the host, as far as they were reported."""
        return Tools(**self._tools)

    def feed(self, data: bytes) -> None:
        """Take the next bytes.

        Raises:
            HostileDataError: a record is not one of ours, or there are too many.
        """
        if self.complete:
            return
        *records, self._pending = (self._pending + data).split(b"\0")
        if len(self._pending) > _MAX_RECORD_BYTES:
            raise HostileDataError("the listing holds a record without end")
        for record in records:
            self._take(record)

    def require_root(self, profiler_root: str) -> None:
        """Raise NoProfilerRootError when the host said that the root cannot be entered."""
        if self.missing:
            raise NoProfilerRootError(
                f"{profiler_root}: missing, or not readable for this user",
                "check profiler_root of this host",
            )

    def _report(self, record: bytes) -> None:
        word, _, rest = record.decode(errors="replace").partition(" ")
        if word == "listing":
            self._take = self._entry
        elif word == "missing":
            self.missing = True
            self._take = _ignore
        elif word == "clock":
            self.clock_s = _float_or_none(rest)
        elif word == "tool":
            name, _, version = rest.partition(" ")
            if name in Tools.__dataclass_fields__:
                self._tools[name] = version.strip()[:100]
        elif word == "free":
            fields = rest.split()
            if len(fields) >= 4 and fields[-3].isdecimal():
                self.free_bytes = int(fields[-3]) * 1024
        elif word == "status" and rest.isdecimal():
            self.tar_status = int(rest)
        else:
            raise HostileDataError(f"the host answered with {record[:80]!r}")

    def _entry(self, record: bytes) -> None:
        match = _ENTRY.fullmatch(record)
        if match:
            if len(self.entries) >= self._max_entries:
                raise HostileDataError(f"the listing holds more than {self._max_entries} entries")
            kind, size, seconds, fraction, path = match.groups()
            mtime_ns = int(seconds) * 1_000_000_000 + int((fraction or b"").ljust(9, b"0"))
            self.entries.append(RemoteEntry(path, kind.decode("latin-1"), int(size), mtime_ns))
        elif record.startswith(b"end ") and record[4:].isdigit():
            self.find_status = int(record[4:])
            self._take = _ignore
        else:
            raise HostileDataError(f"the listing holds {record[:80]!r}")


def _ignore(record: bytes) -> None:
    """Take what follows the end of a listing."""


def _float_or_none(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
