"""Hosts that send without end: none fills disk or memory."""

from __future__ import annotations

import resource
import tarfile
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest
import zstandard

from tests.collect.helpers import FULL
from tests.collect.liar import GOOD, LISTING, TOOLS, Liar, met, nothing

pytestmark = pytest.mark.slow  # many servers are started
Keys = tuple[Path, Path]
FEW_ENTRIES = replace(FULL, max_entries_per_host=20_000)


def endless(channel: paramiko.Channel, data: bytes) -> None:
    """Send until the collector hangs up, some thousand bytes at once: each packet costs both ends time."""
    data *= 1 + 10_000 // len(data)
    while True:
        channel.sendall(data)


def peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize(
    "stream", [b"f 1 1.0 a_ascend_pt/%d\0", b"f 1 1.0 x" + b"x" * 500, b"\0", b"f 1 1.0 a\0" * 500]
)
def test_a_listing_without_end_is_cut_off(tmp_path: Path, keys: Keys, stream: bytes) -> None:
    class Endless(Liar):
        def answer(self, channel: paramiko.Channel, marker: bytes) -> None:
            channel.sendall(TOOLS + b"listing\0")
            endless(channel, stream)

    outcome = met(tmp_path, keys, Endless(b"", nothing), options=FEW_ENTRIES)
    assert outcome.state == "failed"
    assert "listing holds" in outcome.reason


def test_a_million_entries_are_too_many(tmp_path: Path, keys: Keys) -> None:
    listing = b"".join(b"f 1 1.0 a_ascend_pt/%d\0" % n for n in range(30_000))
    outcome = met(tmp_path, keys, Liar(listing, nothing), options=FEW_ENTRIES)
    assert outcome.reason == "the listing holds more than 20000 entries"


def test_names_without_end_do_not_fill_the_memory(tmp_path: Path, keys: Keys) -> None:
    """Each entry is allowed, and so is their number: together their names are 1.2 GB."""

    class LongNames(Liar):
        def answer(self, channel: paramiko.Channel, marker: bytes) -> None:
            channel.sendall(TOOLS + b"listing\0")
            name = b"/".join([b"n" * 250] * 11)
            for first in range(0, 400_000, 100):
                names = (b"f 1 1.0 a_ascend_pt/%b/%d\0" % (name, first + n) for n in range(100))
                channel.sendall(b"".join(names))
            channel.sendall(b"end 0\0")

    before_kib = peak_kib()
    outcome = met(tmp_path, keys, LongNames(b"", nothing))
    assert (outcome.failure, outcome.reason) == ("hostile-data", "the listing holds more than 96 MiB")
    assert peak_kib() - before_kib < 300_000


def test_an_archive_without_end_is_cut_off(tmp_path: Path, keys: Keys) -> None:
    def fetch(channel: paramiko.Channel, marker: bytes) -> None:
        channel.sendall(GOOD + bytes(1024))
        endless(channel, bytes(30_000))

    assert met(tmp_path, keys, Liar(LISTING, fetch)).reason == "the archive does not end"


def header_of_bad(size_bytes: int) -> bytes:
    header = tarfile.TarInfo("./a_ascend_pt/bad.json")
    header.size = size_bytes
    return header.tobuf(tarfile.GNU_FORMAT)


def test_a_bomb_stops_at_what_was_announced(tmp_path: Path, keys: Keys) -> None:
    """A gigabyte of zeros in a few dozen KiB: neither memory nor disk may take it."""
    compressor = zstandard.ZstdCompressor(level=1).compressobj()
    bomb = compressor.compress(header_of_bad(4) + b"evil" + bytes(508))
    bomb += b"".join(compressor.compress(bytes(1 << 20)) for _ in range(1024)) + compressor.flush()
    assert len(bomb) < 200_000
    before_kib = peak_kib()
    outcome = met(tmp_path, keys, Liar(LISTING, lambda channel, marker: channel.sendall(bomb), has_zstd=True))
    assert outcome.state in ("failed", "partial")
    assert "does not end" in outcome.reason
    assert peak_kib() - before_kib < 100_000
    assert sum(path.stat().st_size for path in (tmp_path / "run").rglob("*") if path.is_file()) < 100_000


def test_a_file_that_comes_with_a_thousand_times_its_size_is_refused(tmp_path: Path, keys: Keys) -> None:
    def fetch(channel: paramiko.Channel, marker: bytes) -> None:
        channel.sendall(header_of_bad(200 << 20))
        endless(channel, bytes(30_000))

    reason = met(tmp_path, keys, Liar(LISTING, fetch)).reason
    assert "was announced with 4 bytes and comes with 209715200" in reason
