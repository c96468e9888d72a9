"""Unpacking in small pieces."""

from __future__ import annotations

import gzip
import zlib

import pytest
import zstandard

from cluster_collect.faults import HostileDataError
from cluster_collect.remote.decompress import unpacking
from cluster_collect.spec import Codec

TEXT = b"the quick brown fox " * 60_000


def packed(codec: Codec, data: bytes) -> bytes:
    if codec == "zstd":
        return zstandard.ZstdCompressor(level=1).compress(data)
    return gzip.compress(data, 1) if codec == "gzip" else data


@pytest.mark.parametrize("codec", ["zstd", "gzip", "none"])
@pytest.mark.parametrize("piece", [1000, 32 * 1024, 10 << 20])
def test_content_comes_back_whatever_the_pieces(codec: Codec, piece: int) -> None:
    out: list[bytes] = []
    take = unpacking(codec, lambda data: out.append(bytes(data)))
    data = packed(codec, TEXT)
    for begin in range(0, len(data), piece):
        take(data[begin : begin + piece])
    assert b"".join(out) == TEXT
    if codec != "none":
        assert max(map(len, out)) <= 256 * 1024


@pytest.mark.parametrize("codec", ["zstd", "gzip"])
@pytest.mark.parametrize("piece", [1, 1000, 10 << 20])
def test_streams_that_follow_one_another_come_back_as_one(codec: Codec, piece: int) -> None:
    out: list[bytes] = []
    take = unpacking(codec, lambda data: out.append(bytes(data)))
    data = packed(codec, b"first") + packed(codec, b"") + packed(codec, TEXT[:3000])
    for begin in range(0, len(data), piece):
        take(data[begin : begin + piece])
    assert b"".join(out) == b"first" + TEXT[:3000]


@pytest.mark.parametrize("codec", ["zstd", "gzip"])
def test_a_bomb_meets_the_limit_behind_it_after_a_quarter_mebibyte(codec: Codec) -> None:
    """One 32 KiB packet that holds hundreds of MiB must never be unpacked as a whole."""

    class LimitError(Exception):
        pass

    n_seen = 0

    def sink(data: bytes | memoryview) -> None:
        nonlocal n_seen
        n_seen += len(data)
        if n_seen > 1 << 20:
            raise LimitError

    compressor = (
        zstandard.ZstdCompressor(level=1).compressobj() if codec == "zstd" else zlib.compressobj(9, wbits=31)
    )
    bomb = b"".join(compressor.compress(bytes(1 << 20)) for _ in range(64)) + compressor.flush()
    assert len(bomb) < 100_000
    with pytest.raises(LimitError):
        unpacking(codec, sink)(bomb)
    assert n_seen <= (1 << 20) + 256 * 1024


def test_a_window_that_would_need_gigabytes_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(1, window_log=28, enable_ldm=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    data = compressor.compress(b"x" * 1000) + compressor.flush()
    with pytest.raises(HostileDataError, match="zstd"):
        unpacking("zstd", lambda _: None)(data)


@pytest.mark.parametrize("codec", ["zstd", "gzip"])
def test_what_is_not_packed_is_refused(codec: Codec) -> None:
    with pytest.raises(HostileDataError, match=codec):
        unpacking(codec, lambda _: None)(b"command not found" * 100)
