"""Unpacks a compressed stream in small pieces, so that a bomb meets the limits behind it early."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

import zstandard

from cluster_collect.faults import HostileDataError
from cluster_collect.spec import Codec

Sink = Callable[[bytes | memoryview], object]

#: Below the size from which the C library asks the system for new pages each time, and gives them back.
_PIECE_BYTES = 124 * 1024
_MAX_WINDOW_BYTES = 128 << 20
_GZIP_WINDOW_BITS = 31


def unpacking(codec: Codec, sink: Sink) -> Callable[[bytes], object]:
    """Return a function that takes compressed bytes and gives the plain ones to `sink`, 124 KiB at a time.

    Several compressed streams may follow one another.

    The function raises HostileDataError for a stream that is not in `codec`'s format, and lets
    everything through that `sink` raises.
    """
    return _UNPACKING[codec](sink)


class _Writer:
    """The file that zstandard wants to write to."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, data: bytes | memoryview) -> int:
        self._sink(data)
        return len(data)


def _zstd(sink: Sink) -> Callable[[bytes], None]:
    decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
    writer = decompressor.stream_writer(_Writer(sink), write_size=_PIECE_BYTES)  # type: ignore[arg-type]

    def take(data: bytes) -> None:
        try:
            writer.write(data)
        except zstandard.ZstdError as error:
            raise HostileDataError(f"the zstd stream cannot be read: {error}") from None

    return take


def _gzip(sink: Sink) -> Callable[[bytes], None]:
    inflater = zlib.decompressobj(_GZIP_WINDOW_BITS)

    def take(data: bytes) -> None:
        nonlocal inflater
        while data:
            if inflater.eof:
                inflater = zlib.decompressobj(_GZIP_WINDOW_BITS)
            try:
                piece = inflater.decompress(data, _PIECE_BYTES)
            except zlib.error as error:
                raise HostileDataError(f"the gzip stream cannot be read: {error}") from None
            data = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            sink(piece)

    return take


_UNPACKING: Mapping[Codec, Callable[[Sink], Callable[[bytes], object]]] = {
    "zstd": _zstd,
    "gzip": _gzip,
    "none": lambda sink: sink,
}
