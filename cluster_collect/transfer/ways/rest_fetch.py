"""Goes on with one large file that was cut off: the host sends the rest of it."""

from __future__ import annotations

from dataclasses import replace

from cluster_collect.entries import RemoteEntry
from cluster_collect.faults import HostileDataError
from cluster_collect.remote.host_stream import HostSource, Trailer, stream_from
from cluster_collect.remote.programs import rest_program
from cluster_collect.selection.select import PlacedFile
from cluster_collect.store.writer import FileRefusedError
from cluster_collect.transfer.ways.intake import Intake

#: Nothing but a part of the marker that follows may come behind the last byte.
_MAX_PADDING_BYTES = 64


async def fetch_rest(source: HostSource, placed: PlacedFile, intake: Intake) -> RemoteEntry | None:
    """Fetch what `intake` lacks of a file; return how the host lists it afterwards.

    None when it could not be resumed: what was here is removed then, and the file has to begin
    anew.

    Raises:
        HostError: the stream broke; what came of it is kept.
    """
    entry = placed.entry
    incoming = await intake.resume(placed, lambda: source.brought(0))
    begin = incoming.n_bytes
    program = rest_program(source.spec, entry, begin, source.codec)
    known = {entry.path: entry}
    trailer = Trailer(program.marker, 1, _MAX_PADDING_BYTES, known)
    n_missing = entry.size_bytes - begin

    def feed(data: bytes | memoryview) -> None:
        """Take the unpacked stream: as many bytes as are missing, and then the trailer."""
        nonlocal n_missing
        view = memoryview(data)
        content, after = view[:n_missing], view[n_missing:]
        if content:
            n_missing -= len(content)
            intake.received(len(content))
            intake.write(incoming, content)
        n_listed = trailer.feed(bytes(after)) if after else 0
        if len(content) + n_listed:
            source.brought(len(content) + n_listed)

    try:
        await stream_from(source, program, feed, trailer)
        if not trailer.listing.complete:
            incoming.abandon()  # it has become shorter meanwhile, or a tool is missing
            return None
        intake.finish(placed, incoming)
    except HostileDataError:
        incoming.abandon()
        raise
    except FileRefusedError as error:
        incoming.abandon()
        intake.refuse(placed, str(error))
    finally:
        intake.put_aside(incoming)
    return next((replace(now, path=entry.path) for now in trailer.listing.entries), None)
