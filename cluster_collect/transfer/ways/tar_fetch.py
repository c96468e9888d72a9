"""Fetches many files over one command: an archive, compressed, with a second listing at its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cluster_collect.entries import RemoteEntry
from cluster_collect.faults import HostileDataError, RemoteFailureError
from cluster_collect.remote.host_stream import HostSource, Trailer, stream_from
from cluster_collect.remote.programs import fetch_program
from cluster_collect.remote.tar_stream import TarParser
from cluster_collect.selection.select import PlacedFile
from cluster_collect.transfer.ways.intake import Intake, TarIntake
from cluster_collect.wording import last_line

#: An archive ends with zero blocks up to this size: with a blocking factor of 128 it is filled up to 64 KiB.
MAX_ARCHIVE_PADDING = 128 * 1024
#: Headers, long names and the listing may take this much more than the files themselves.
_OVERHEAD_BYTES_PER_ENTRY = 16 * 1024
_SLACK_BYTES = 128 << 20


class ArchiveStream:
    """The unpacked stream: archive and trailer; bounded as a whole by the sizes that `sink` awaits.

    `brought` gets the bytes of files, and of the listing behind them; `works` is called when the sender says
    that it works, though it sends nothing.
    """

    def __init__(
        self,
        sink: TarIntake,
        trailer: Trailer,
        brought: Callable[[int], None],
        works: Callable[[], None] = lambda: None,
    ) -> None:
        self._brought = brought
        self._works = works
        overhead_bytes = _OVERHEAD_BYTES_PER_ENTRY * len(sink.awaited) + _SLACK_BYTES
        self._left_bytes = 2 * sum(sink.awaited.values()) + overhead_bytes
        self._parser = TarParser(sink)
        self._trailer = trailer

    def feed(self, data: bytes | memoryview) -> None:
        """Take unpacked bytes."""
        self._left_bytes -= len(data)
        if self._left_bytes < 0 and not self._parser.finished:
            raise HostileDataError("the host sends more than it announced")
        n_before, n_signs = self._parser.n_content_bytes, self._parser.n_global_headers
        rest = self._parser.feed(data)
        n_bytes = self._parser.n_content_bytes - n_before
        if len(rest):
            n_bytes += self._trailer.feed(bytes(rest))
        if n_bytes:
            self._brought(n_bytes)
        if self._parser.n_global_headers > n_signs:
            self._works()


async def fetch_by_tar(
    source: HostSource, files: Sequence[PlacedFile], intake: Intake
) -> tuple[dict[bytes, RemoteEntry], bytes]:
    """Fetch `files` into `intake`; return what the host lists afterwards, and tar's messages.

    Raises:
        HostError: the stream broke, or is not what was asked for; files that came whole stay stored.
    """
    names = (file.entry.path for file in files)
    program = fetch_program(source.spec, names, source.codec)
    known = {placed.entry.path: placed.entry for placed in files}
    trailer = Trailer(program.marker, source.max_entries, MAX_ARCHIVE_PADDING, known)
    with TarIntake(files, intake) as sink:
        stream = ArchiveStream(sink, trailer, source.brought)
        result = await stream_from(source, program, stream.feed, trailer)
    if not trailer.listing.complete:
        raise RemoteFailureError(
            f"the archive ended early (status {result.exit_status}): {last_line(result.errors)}",
            "log in and look at tar, the compressor, and the host's memory",
        )
    return {entry.path: entry for entry in trailer.listing.entries}, result.errors
