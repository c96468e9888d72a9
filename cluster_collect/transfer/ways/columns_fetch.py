"""Fetches files over one command as columns: our reader, which runs on the host, in the place of tar."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import replace

from cluster_collect.entries import RemoteEntry
from cluster_collect.faults import HostileDataError, LostConnectionError, NoColumnsError
from cluster_collect.remote.decompress import unpacking
from cluster_collect.remote.host_stream import HostSource, Trailer, stream_from
from cluster_collect.remote.programs import PACKERS, columns_program
from cluster_collect.remote.reader import reader, request
from cluster_collect.selection.select import PlacedFile
from cluster_collect.spec import Codec, CollectOptions
from cluster_collect.transfer.ways.intake import Intake, TarIntake
from cluster_collect.transfer.ways.tar_fetch import MAX_ARCHIVE_PADDING, ArchiveStream
from cluster_collect.wording import last_line, printable
from cluster_reduce.form import OVER_LIMITS, READY, UNFIT

_MAX_LINE_BYTES = 400
#: A reader that computes says so this often in the time after which it would be taken for one that hangs.
_SIGNS_IN_A_DEADLINE = 5


class _ColumnsStream:
    """The stream: a plain line that says whether the reader works, then the archive, packed."""

    def __init__(self, archive: ArchiveStream, codec: Codec) -> None:
        self._line = b""
        self._unpack = unpacking(codec, archive.feed)

    def feed(self, data: bytes | memoryview) -> None:
        """Take bytes as they come."""
        if self._line != READY:
            self._line += bytes(data)
            line, end, rest = self._line.partition(b"\n")
            if len(line) > _MAX_LINE_BYTES:
                raise NoColumnsError("the reader did not start on the host")
            if not end:
                return
            if line.startswith(UNFIT):
                raise NoColumnsError(printable(line.removeprefix(UNFIT).decode(errors="replace")))
            if line + end != READY:
                raise NoColumnsError("the reader did not start on the host")
            self._line, data = READY, rest
        self._unpack(bytes(data))

    @property
    def is_ready(self) -> bool:
        """Whether the reader said that it works."""
        return self._line == READY


async def fetch_columns(
    source: HostSource,
    files: Sequence[PlacedFile],
    intake: Intake,
    options: CollectOptions,
    works: Callable[[], None],
) -> tuple[dict[bytes, RemoteEntry], bytes, Set[bytes]]:
    """Fetch `files` into `intake`, the large ones as columns.

    Returns what the host lists afterwards, what the reader says of files that it could not open, and those
    that came as they are because they take more time or memory than their reader has.

    `works` is that of `ArchiveStream`. What came whole stays, however the
    stream ends; what a host sent that lies is removed.

    Raises:
        NoColumnsError: the host does not run our reader.
        LostConnectionError: the stream ended early.
        HostError: it is not what was asked for.
    """
    settings: dict[str, str | int | float | bool] = {
        "as_root": options.columns_as_root,
        "while_running": options.while_running,
        "devices": options.columns_devices,
        "memory_bytes": options.columns_memory_bytes,
        "deadline_s": options.columns_deadline_s,
        "packer": PACKERS[source.codec],
        "sign_s": options.progress_deadline_s / _SIGNS_IN_A_DEADLINE,
    }
    data = request([file.entry.path for file in files], settings)
    program = columns_program(source.spec, reader().boot.encode(), data, source.codec)
    known = {file.entry.path: file.entry for file in files}
    trailer = Trailer(program.marker, source.max_entries, MAX_ARCHIVE_PADDING, known)
    as_it_comes = replace(source, codec="none")
    with TarIntake(files, intake, takes_columns=True) as sink:
        stream = _ColumnsStream(ArchiveStream(sink, trailer, source.brought, works), source.codec)
        try:
            result = await stream_from(as_it_comes, program, stream.feed, trailer, hold_input=True)
        except HostileDataError:
            sink.close(keep=False)
            for placed in files:
                intake.unstore(placed)
            raise
    if not stream.is_ready:
        raise NoColumnsError(f"the reader did not start: {printable(last_line(result.errors))}")
    if not trailer.listing.complete:
        raise LostConnectionError(
            f"the reader ended early (status {result.exit_status}): {printable(last_line(result.errors))}"
        )
    over_limits, errors = _reported(result.errors)
    after = {entry.path: entry for entry in trailer.listing.entries}
    return after, errors, over_limits & known.keys()


def _reported(errors: bytes) -> tuple[Set[bytes], bytes]:
    """Return the files that the reader calls over its limits, and what else it says."""
    lines = errors.split(b"\n")
    over = {line.removeprefix(OVER_LIMITS) for line in lines if line.startswith(OVER_LIMITS)}
    return over, b"\n".join(line for line in lines if not line.startswith(OVER_LIMITS))
