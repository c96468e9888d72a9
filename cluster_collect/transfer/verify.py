"""Has a host hash what it has sent, and compares: `--verify`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence

from cluster_collect.faults import HostileDataError, NoShellError, RemoteFailureError
from cluster_collect.remote.host_stream import HostSource
from cluster_collect.remote.listing import MarkerFilter
from cluster_collect.remote.programs import RemoteProgram, hash_program
from cluster_collect.selection.select import PlacedFile
from cluster_collect.transports.protocol import run
from cluster_run.manifest import CollectedFile

_RECORD = re.compile(rb"([0-9a-f]{64}) [ *]\./(.*)", re.DOTALL)
_OVERHEAD_BYTES_PER_FILE = 80
_SLACK_BYTES = 4096


async def differing(
    source: HostSource, files: Sequence[PlacedFile], here: Mapping[bytes, CollectedFile]
) -> list[PlacedFile]:
    """Return those of `files` whose content on the host is not the one that `here` holds.

    Raises:
        RemoteFailureError: the host cannot hash files.
        HostError: it did not answer.
    """
    wanted = [placed for placed in files if placed.entry.path in here]
    hashes = await _hashes(source, [placed.entry.path for placed in wanted]) if wanted else {}
    return [placed for placed in wanted if hashes.get(placed.entry.path) != here[placed.entry.path].sha256]


async def _hashes(source: HostSource, names: Sequence[bytes]) -> dict[bytes, str]:
    """Return the host's SHA-256 of each file that it could read."""
    program = hash_program(source.profiler_root, names, source.niceness)
    limit = sum(map(len, names)) + _OVERHEAD_BYTES_PER_FILE * len(names) + _SLACK_BYTES
    answer = await hashes_of(source, program, limit)
    matches = [_RECORD.fullmatch(record) for record in answer.split(b"\0")]
    hashes = {match[2]: match[1].decode() for match in matches if match is not None}
    if not hashes:
        raise RemoteFailureError(
            "it cannot be verified: the host runs no sha256sum for us", "call it without --verify"
        )
    return hashes


async def hashes_of(source: HostSource, program: RemoteProgram, max_bytes: int) -> bytes:
    """Return what the host's program prints of hashes; nothing where the host runs none for us.

    Raises:
        HostileDataError: it sends more than `max_bytes`.
        HostError: it did not answer.
    """
    noise = MarkerFilter(program.marker)
    answer = bytearray()

    def receive(data: bytes) -> float:
        pause_s = source.book(len(data))
        answer.extend(noise.feed(data))
        if len(answer) > max_bytes:
            raise HostileDataError("the host sends more hashes than it was asked for")
        return pause_s

    with contextlib.suppress(NoShellError):  # as where it does not answer
        await run(source.connection, program.command, program.stdin, receive)
    return bytes(answer)
