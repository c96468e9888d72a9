"""Lists and fetches without a shell: SFTP, or a file system of this machine; many requests in flight."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from cluster_collect.entries import (
    Allowance,
    Link,
    RemoteEntry,
    is_capture,
    unchanged,
    unsafe_because,
)
from cluster_collect.faults import HostileDataError, NoProfilerRootError, RemoteFailureError
from cluster_collect.remote.host_stream import HostSource
from cluster_collect.selection.select import PlacedFile
from cluster_collect.store.writer import FileRefusedError, IncomingFile
from cluster_collect.transfer.ways.intake import Intake
from cluster_collect.transports.protocol import RemoteFiles
from cluster_collect.watchdog import each

_MAX_DEPTH = 40
_N_SCANS = 16
#: What an empty directory counts, besides its names.
_BYTES_OF_A_SCAN = 100
N_FILES_IN_FLIGHT = 64


@dataclass
class Walked:
    """What a walk may follow, and what it reports besides the files."""

    follow: Sequence[str]
    pattern: bytes
    root: bytes = b""
    links: list[Link] = field(default_factory=list)
    unreadable: list[bytes] = field(default_factory=list)


async def walk(
    files: RemoteFiles,
    profiler_root: bytes,
    allowance: Allowance,
    walked: Walked,
    received: Callable[[int], None],
) -> list[RemoteEntry]:
    """List everything below the root that is not a directory.

    Links are listed; those to directories are judged, and followed as `walked` allows.

    Raises:
        NoProfilerRootError: the root cannot be listed.
        HostileDataError: unsafe names, too many entries, or directories without end.
    """
    try:
        root = walked.root = await files.real_path(profiler_root)
        level = [(b"", await files.scan(root, allowance))]
        received(_BYTES_OF_A_SCAN)
        for part in walked.pattern.split(b"/") if walked.pattern else ():
            level = await _matching(files, root, level, part, allowance)
    except RemoteFailureError as error:
        where = f"{profiler_root.decode(errors='replace')}: "
        raise NoProfilerRootError(
            f"{where}{error.message.removeprefix(where)}", "check profiler_root (or local) of this host"
        ) from None
    found: list[RemoteEntry] = []
    for _ in range(_MAX_DEPTH):
        directories: list[bytes] = []
        for prefix, names in level:
            for name in names:
                _require_bare_name(name.path)
                path = prefix + name.path
                allowance.take_bytes(len(prefix))
                if name.kind == "d":
                    directories.append(path)
                else:
                    found.append(replace(name, path=path))
                    is_nested = any(path.startswith(link.path + b"/") for link in walked.links)
                    if name.kind == "l" and not is_nested and await _link(files, path, allowance, walked):
                        directories.append(path)
        if not directories:
            return found
        level = await _scan_all(
            files,
            root,
            directories,
            allowance=allowance,
            unreadable=walked.unreadable,
            received=received,
        )
    raise HostileDataError(f"directories are nested deeper than {_MAX_DEPTH}")


async def _matching(
    files: RemoteFiles,
    root: bytes,
    level: Sequence[tuple[bytes, list[RemoteEntry]]],
    pattern: bytes,
    allowance: Allowance,
) -> list[tuple[bytes, list[RemoteEntry]]]:
    """Go down into the directories whose name matches one part of a pattern."""
    below = []
    for prefix, names in level:
        for name in names:
            if name.kind == "d" and fnmatchcase(name.path, pattern):
                _require_bare_name(name.path)
                path = prefix + name.path
                below.append((path + b"/", await files.scan(root + b"/" + path, allowance)))
    return below


async def _link(files: RemoteFiles, path: bytes, allowance: Allowance, walked: Walked) -> bool:
    """Note a link that leads to a directory, or nowhere; return whether what lies behind it is listed too."""
    here = walked.root + b"/" + path
    try:
        target = await files.real_path(here)
    except RemoteFailureError:
        target = here
    if target == here:  # it leads to itself, by itself or by others
        walked.links.append(Link(path, b"", is_dangling=True))
        return False
    if (here + b"/").startswith(target.rstrip(b"/") + b"/"):
        walked.links.append(Link(path, target))  # a circle
        return False
    try:
        names = await files.scan(here, allowance)
    except RemoteFailureError:  # a file, or nothing
        try:
            await files.stat(target)
        except RemoteFailureError:
            walked.links.append(Link(path, target, is_dangling=True))
        return False
    allowed = [await files.real_path(os.fsencode(one)) for one in walked.follow if one != "."]
    allowed += [walked.root] if walked.follow else []
    is_followed = any((target + b"/").startswith(one.rstrip(b"/") + b"/") for one in allowed)
    holds = is_capture(path.rpartition(b"/")[2]) or any(is_capture(name.path) for name in names)
    walked.links.append(Link(path, target, holds, is_followed=is_followed))
    return is_followed


def _require_bare_name(name: bytes) -> None:
    reason = "the name holds a '/'" if b"/" in name else unsafe_because(name)
    if reason:
        raise HostileDataError(f"the host lists {name[:100]!r}: {reason}")


async def _scan_all(
    files: RemoteFiles,
    root: bytes,
    directories: Sequence[bytes],
    *,
    allowance: Allowance,
    unreadable: list[bytes],
    received: Callable[[int], None],
) -> list[tuple[bytes, list[RemoteEntry]]]:
    async def scan(directory: bytes) -> tuple[bytes, list[RemoteEntry]]:
        try:
            names = await files.scan(root + b"/" + directory, allowance)
        except RemoteFailureError:
            unreadable.append(directory)
            return directory + b"/", []
        received(sum(len(name.path) for name in names) + _BYTES_OF_A_SCAN)
        return directory + b"/", names

    return sorted(await each(scan, directories, _N_SCANS), key=lambda pair: pair[0])


async def fetch_by_walker(
    files: RemoteFiles, source: HostSource, wanted: Sequence[PlacedFile], intake: Intake
) -> dict[bytes, RemoteEntry]:
    """Fetch `wanted` into `intake`; return each file's entry as it was after its last byte was read."""
    root = await files.real_path(os.fsencode(source.spec.root))
    after: dict[bytes, RemoteEntry] = {}

    async def fetch(placed: PlacedFile) -> None:
        entry = placed.entry
        if intake.cut_bytes(placed) > 0:
            incoming: IncomingFile | None = await intake.resume(placed, lambda: source.brought(0))
        else:
            incoming = intake.begin(placed)
        if incoming is None:
            return

        def receive(data: bytes) -> float:
            pause_s = source.book(len(data))
            source.brought(len(data))
            intake.received(len(data))
            intake.write(incoming, data)
            return pause_s

        try:
            await files.read(root + b"/" + entry.path, entry.size_bytes, receive, incoming.n_bytes)
            now = await files.stat(root + b"/" + entry.path)
            after[entry.path] = replace(now, path=entry.path)
            if incoming.n_bytes == entry.size_bytes or not unchanged(entry, after[entry.path]):
                intake.finish(placed, incoming)
            else:
                incoming.abandon()
                intake.refuse(placed, f"ended after {incoming.n_bytes} of {entry.size_bytes} bytes")
        except (RemoteFailureError, FileRefusedError) as error:
            reason = error.message if isinstance(error, RemoteFailureError) else str(error)
            intake.refuse(placed, reason)
        except HostileDataError:
            incoming.abandon()
            raise
        finally:
            intake.put_aside(incoming)

    await each(fetch, wanted, N_FILES_IN_FLIGHT)
    return after
