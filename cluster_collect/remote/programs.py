"""The programs that the collector has hosts run, as text for a shell; `listing` reads the answers.

The command line is the same for everybody: a shell that reads its program from standard input.
No name, path or setting ever stands in it, whatever the login shell is. Answers begin after a
random marker, so that what start-up files print before it does no harm.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cluster_collect.entries import RemoteEntry
from cluster_collect.spec import Codec, HostSpec

_FUNCTIONS = rb"""
LC_ALL=C; export LC_ALL
newline='
'
say() { printf '%s\0' "$1"; }
enter() { cd -P -- "$root" 2>/dev/null && { [ -r . ] || ls . >/dev/null 2>&1; }; }
list() {
  export follow newline
  # All in one walk: on a file server each one takes long. GNU find writes what it has before it starts look.
  # What it complains about belongs into the list: on its own way it would come sooner or later than the list.
  {
    unread=$(eval "find $tops -type l -exec sh -c \"\$look\" look {} + , \
      ! -type d -printf '%y %s %T@ %p\\0'" </dev/null 2>&1 >&3 3>&-)
    status=$?
  } 3>&1
  [ -z "$unread" ] || unread=$(printf '%s' "$unread" | head -c 15000)
  say "end $status $unread"
}
"""

#: For each link: where it leads, whether captures lie there, and, where it may be followed, what lies there.
LOOK = rb"""
set -f
for link do
  # A link to a file stands in the list anyhow: only to be followed it needs a second look.
  [ -n "$follow" ] || [ -d "$link" ] || [ ! -e "$link" ] || continue
  real=$(readlink -f -- "$link") || real=
  holds='?'
  if [ -e "$link" ]; then
    holds=-
    case $PWD/ in "$real"/*) ;; *)
      case ${link##*/} in *_ascend_pt|*_ascend_ms|PROF_*) holds=+ ;; *)
        [ -z "$(find -H "$link" -mindepth 1 -maxdepth 3 \( -name '*_ascend_pt' -o -name '*_ascend_ms' \
          -o -name 'PROF_*' -o -name 'profiler*' \) -print -quit 2>/dev/null)" ] || holds=+ ;;
      esac
      IFS=:
      for root in $follow; do
        root=$(readlink -f -- "$root") && case $real/ in "${root%/}"/*) holds='>' ;; esac
      done ;;
    esac
  fi
  # A link to a file that is not followed is in the list of files already.
  [ "$holds" = - ] && [ ! -d "$link" ] && continue
  printf 'link %s %s//%s\0' "$holds" "${link#./}" "$real"
  [ "$holds" != '>' ] || find -H "$link" ! -type d -printf '%y %s %T@ %p\0'
done
exit 0
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
  say "root $(pwd -P)"
  say listing
  # Another find would print its complaints, or not know -printf at all.
  case $version in *GNU*) list ;; *) say "end 0" ;; esac
else
  above=$root
  while [ ! -d "$above" ] && [ "${above%/*}" != "$above" ]; do above=${above%/*}; done
  [ -d "$above" ] || above=/
  say "above $above"; say "there $(ls "$above" 2>/dev/null </dev/null | head -n 12)"; say missing
fi
# The clock may be asked for again. One more program may follow: a login shell costs more than all the rest.
while read -r length && [ "$length" = clock ]; do say "clock $(date +%s.%N)"; done
[ -z "$length" ] || eval "$(dd bs=1 count=$length 2>/dev/null)"
"""

# tar writes as much as a pipe holds: in its usual 10 KiB it costs a big host a sixth more of all its time.
_ARCHIVE = rb"""
pack() {
  $low tar $dereference --null --no-unquote --no-recursion --hard-dereference --format=gnu \
    --quoting-style=literal --blocking-factor=128 -T - -cf -
  status=$?
  # Behind an archive that was cut off nothing may follow: it would be taken for content.
  [ $status -gt 128 ] || ending
}
send() { packed pack; }
"""

#: The same by the reader of columns: a plain line says whether it works here. It packs by itself, as a
#: compressor keeps what it has until it has enough.
_COLUMNS = rb"""
send() {
  if command -v python3 >/dev/null 2>&1; then
    ionice -c 3 true >/dev/null 2>&1 && low="ionice -c 3 $low"
    $low python3 -E -s -S -B -c "$boot" && { status=0; packed ending; }
  else
    printf 'unfit no python3\n'
  fi
}
"""

_REST = rb"""
pack() {
  $low tail -c "+$first" -- "$name" </dev/null | head -c "$length"
  say "$marker"; say "status 0"; say listing
  find -H "$name" -maxdepth 0 -printf '%y %s %T@ %p\0'; say "end $?"
}
send() { packed pack; }
"""

_SEND = rb"""
say "$marker"
enter || { echo 'its profiler root cannot be entered any more' >&2; exit 91; }
low=
# Options that a host has for its users: they would leave files out, or cost it time.
unset TAR_OPTIONS GZIP ZSTD_CLEVEL ZSTD_NBTHREADS
# No lower than that: on a host with much to do a reader of the lowest priority takes too long to begin.
nice true >/dev/null 2>&1 && low=nice
ending() { say "$marker"; say "status $status"; say listing; list; }
packed() { if [ -n "$codec" ]; then "$@" | eval "$codec"; else "$@"; fi; }
send
"""

#: What packs standard input, as a line of the shell.
# With threads of its own zstd takes more of the host's time. Before 1.3.4 it had none, nor this option.
# Half its usual window costs 0.2 % more bytes, and saves a quarter of a MiB a host on our side.
# SSH authenticates every packet: a checksum of the content beside that costs both ends time for nothing.
PACKERS: Mapping[Codec, str] = {
    "zstd": (
        "$low zstd -1 --no-check --zstd=wlog=18 --single-thread -q -c || [ $? -ne 1 ] || $low zstd -1 -q -c"
    ),
    "gzip": "$low gzip -1 -c",
    "none": "",
}

_HASHES = rb"""
say "$marker"
enter || { echo 'its profiler root cannot be entered any more' >&2; exit 91; }
nice sh -c "$hashed"
"""

_PREPARE = rb"""
say "$marker"
exec 2>&1 </dev/null
sh -c "$prepare"
"""

#: A program in dialogue with us: it reads and writes no stream of files.
_TALK = rb"""
say "$marker"
command -v python3 >/dev/null 2>&1 || { printf 'unfit no python3\n'; exit 0; }
exec python3 -E -s -S -B -c "$boot"
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
        """The input by which a probe that is still running becomes this program."""
        return b"%d\n" % len(self.text) + self.text + self.data


def _program(script: bytes, settings: dict[bytes, bytes], data: bytes = b"") -> RemoteProgram:
    marker = secrets.token_hex(16).encode()
    assignments = b"".join(name + b"=" + value + b"\n" for name, value in settings.items())
    program = b"marker=" + marker + b"\n" + assignments + _FUNCTIONS + script
    return RemoteProgram(program, data, marker)


def _root(spec: HostSpec) -> bytes:
    root = os.fsencode(spec.root)
    if root == b"~" or root.startswith(b"~/"):
        return b'"$HOME"' + quoted(root[1:])
    if not root.startswith(b"/"):
        # A shell that goes on with one more program is below the root by then.
        return b'"$HOME"' + quoted(b"/" + root)
    return quoted(root)


def _sent(spec: HostSpec, codec: Codec) -> dict[bytes, bytes]:
    """Return what every program needs that sends files."""
    return {b"root": _root(spec), b"codec": quoted(PACKERS[codec].encode())}


def _listed(spec: HostSpec) -> dict[bytes, bytes]:
    """Return what every listing needs: all links are reported, and those below `follow_links` followed."""
    follow = (".", *spec.follow_links) if spec.follow_links else ()
    return {
        b"tops": quoted(_tops(spec.pattern)),
        b"follow": quoted(os.fsencode(":".join(follow))),
        b"look": quoted(LOOK),
        b"dereference": b"--dereference" if follow else b"",
    }


def _tops(pattern: bytes) -> bytes:
    """Return what below the root is listed: the shell expands wildcards, and takes the rest as it is."""
    if not pattern:
        return b"."
    return b"./" + b"".join(
        part if part in b"*?" or part.startswith(b"[") else quoted(part)
        for part in re.split(rb"([*?]|\[[^\]/'\"\\`$]+\])", pattern)
        if part
    )


def probe_program(spec: HostSpec) -> RemoteProgram:
    """Return the program that reports clock, tools and free space and lists everything below the root."""
    return _program(_PROBE, {b"root": _root(spec), **_listed(spec)})


def fetch_program(spec: HostSpec, names: Iterable[bytes], codec: Codec) -> RemoteProgram:
    """Return the program that sends the files `names` as one archive, and then lists everything again."""
    # The ./ keeps a name that begins with a dash from being read as an option by old tars.
    data = b"".join(b"./" + name + b"\0" for name in names)
    return _program(_ARCHIVE + _SEND, {**_sent(spec, codec), **_listed(spec)}, data)


def columns_program(spec: HostSpec, boot: bytes, data: bytes, codec: Codec) -> RemoteProgram:
    """Return the program that gives `data` to the Python program `boot`, and then lists everything again."""
    settings = {**_sent(spec, codec), b"boot": quoted(boot), **_listed(spec)}
    return _program(_COLUMNS + _SEND, settings, data)


def rest_program(spec: HostSpec, entry: RemoteEntry, begin: int, codec: Codec) -> RemoteProgram:
    """Return the program that sends a file from byte `begin` to its listed end, and then lists it again."""
    settings = {
        **_sent(spec, codec),
        b"name": quoted(b"./" + entry.path),
        b"first": b"%d" % (begin + 1),
        b"length": b"%d" % (entry.size_bytes - begin),
    }
    return _program(_REST + _SEND, settings)


def hash_program(spec: HostSpec, names: Iterable[bytes]) -> RemoteProgram:
    """Return the program that sends `HASH  ./NAME` and a NUL byte for each of the files `names`."""
    data = b"".join(b"./" + name + b"\0" for name in names)
    return _hashing(spec, b"xargs -0 sha256sum -z --", data)


def samples_program(spec: HostSpec, parts: Iterable[tuple[bytes, int, int]]) -> RemoteProgram:
    """Return the program that hashes parts of files: name, first byte and number of bytes of each."""
    hashed = b"".join(
        b"tail -c +%d -- %b </dev/null | head -c %d | sha256sum\n"
        % (begin + 1, quoted(b"./" + name), n_bytes)
        for name, begin, n_bytes in parts
    )
    return _hashing(spec, hashed)


def _hashing(spec: HostSpec, line: bytes, data: bytes = b"") -> RemoteProgram:
    return _program(_HASHES, {b"root": _root(spec), b"hashed": quoted(line)}, data)


def prepare_program(command: str) -> RemoteProgram:
    """Return the program that runs the inventory's `prepare` command, both outputs as one."""
    return _program(_PREPARE, {b"prepare": quoted(command.encode())})


def asking_program(script: bytes) -> RemoteProgram:
    """Return a program that only reads and prints; it says its marker itself."""
    return _program(script, {})


def talk_program(boot: bytes, data: bytes) -> RemoteProgram:
    """Return the program that gives `data` to the Python program `boot`, which answers what it is sent."""
    return _program(_TALK, {b"boot": quoted(boot)}, data)
