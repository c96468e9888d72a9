"""Fetches many files over one command: an archive, compressed, with a second listing at its end."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from cluster_collect.decompress import Codec, unpacking
from cluster_collect.entries import RemoteEntry
from cluster_collect.faults import HostileDataError, LostConnectionError, NoShellError, RemoteFailureError
from cluster_collect.intake import Intake, TarIntake
from cluster_collect.remote import ListingReader, MarkerFilter, RemoteProgram, fetch_program
from cluster_collect.select import PlacedFile
from cluster_collect.spec import CollectOptions
from cluster_collect.tar_stream import TarParser
from cluster_collect.transport import HostConnection, RunningCommand, run

#: Blocking factor 20: an archive ends with zero blocks up to this size.
_MAX_ARCHIVE_PADDING = 64 * 1024
#: Headers, long names and the listing may take this much more than the files themselves.
_OVERHEAD_BYTES_PER_ENTRY = 16 * 1024
_SLACK_BYTES = 128 << 20


class _ArchiveStream:
    """The unpacked stream: archive, marker, tar's status, second listing; bounded as a whole."""

    def __init__(
        self, files: Sequence[PlacedFile], program: RemoteProgram, sink: TarIntake, limit: int
    ) -> None:
        requested = {file.entry.path: file.entry.size_bytes for file in files}
        self._left_bytes = 2 * sum(requested.values()) + _OVERHEAD_BYTES_PER_ENTRY * len(files) + _SLACK_BYTES
        self._parser = TarParser(requested, sink)
        self._marker = MarkerFilter(program.marker)
        self._n_padding = 0
        self.listing = ListingReader(limit)

    def feed(self, data: bytes | memoryview) -> None:
        """Take unpacked bytes."""
        self._left_bytes -= len(data)
        if self._left_bytes < 0 and not self._parser.finished:
            raise HostileDataError("the host sends more than it announced")
        rest = self._parser.feed(data)
        if len(rest):
            self._trailer(bytes(rest))

    def _trailer(self, data: bytes) -> None:
        if not self._marker.found:
            self._n_padding += len(data)
        answer = self._marker.feed(data)
        if answer:
            self.listing.feed(answer)
        elif self._n_padding > _MAX_ARCHIVE_PADDING:
            raise HostileDataError("the archive does not end")


async def fetch_by_tar(
    connection: HostConnection,
    profiler_root: str,
    files: Sequence[PlacedFile],
    *,
    codec: Codec,
    options: CollectOptions,
    intake: Intake,
    book: Callable[[int], float],
    shell: RunningCommand | None,
) -> tuple[dict[bytes, RemoteEntry], bytes]:
    """Fetch `files` into `intake`; return what the host lists afterwards, and tar's messages.

    `shell` is the host's probe, if it still waits for a program; a new command is started otherwise.
    `book` is told the size of what arrives and returns the pause that the bandwidth caps ask for.

    Raises:
        HostError: the stream broke, or is not what was asked for; files that came whole stay stored.
    """
    program = fetch_program(
        os.fsencode(profiler_root), (file.entry.path for file in files), codec, options.remote_niceness
    )
    noise = MarkerFilter(program.marker)
    sink = TarIntake(files, intake)
    stream = _ArchiveStream(files, program, sink, options.max_entries_per_host)
    unpack = unpacking(codec, stream.feed)

    def receive(data: bytes) -> float:
        pause_s = book(len(data))
        answer = noise.feed(data)
        if answer and not stream.listing.complete:
            unpack(answer)
            intake.note_down()
        return pause_s

    try:
        if shell is None:
            result = await run(connection, program.command, program.stdin, receive)
        else:
            shell.redirect(receive)
            shell.send(program.follow_up)
            shell.end_input()
            result = await shell.wait()
    finally:
        sink.close()
        intake.note_down()
        intake.report()
    if not noise.found:
        if shell is not None:
            raise LostConnectionError("the shell on the host ended while it waited for its turn")
        raise NoShellError("the host did not run our program")
    listing = stream.listing
    if not listing.complete:
        if result.exit_status is None:
            raise LostConnectionError("the connection broke in the middle of the transfer")
        raise RemoteFailureError(
            f"the archive ended early (status {result.exit_status}): {last_line(result.errors)}",
            "log in and look at tar, the compressor, and the host's memory",
        )
    return {entry.path: entry for entry in listing.entries}, result.errors


def last_line(errors: bytes) -> str:
    """Return the last thing a command said, fit for a message."""
    lines = errors.decode(errors="replace").strip().splitlines()
    return lines[-1].strip()[:300] if lines else "no message"
