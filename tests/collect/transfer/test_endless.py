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
from tests.collect.liar import LISTING, TOOLS, Liar, entry, met

pytestmark = pytest.mark.slow  # many servers are started


def endless(channel: paramiko.Channel, data: bytes) -> None:
    """Send until the collector hangs up."""
    while True:
        channel.sendall(data)


@pytest.mark.parametrize(
    "stream", [b"f 1 1.0 a_ascend_pt/%d\0", b"f 1 1.0 x" + b"x" * 500, b"\0", b"f 1 1.0 a\0" * 500]
)
def test_a_listing_without_end_is_cut_off(tmp_path: Path, keys: tuple[Path, Path], stream: bytes) -> None:
    class Endless(Liar):
        def answer(self, channel: paramiko.Channel, marker: bytes) -> None:
            channel.sendall(TOOLS + b"listing\0")
            endless(channel, stream)

    options = replace(FULL, max_entries_per_host=20_000)
    outcome = met(tmp_path, keys, Endless(b"", lambda channel, marker: None), options=options)
    assert outcome.state == "failed"
    assert "listing holds" in outcome.reason


def test_a_million_entries_are_too_many(tmp_path: Path, keys: tuple[Path, Path]) -> None:
    listing = b"".join(b"f 1 1.0 a_ascend_pt/%d\0" % n for n in range(30_000))
    options = replace(FULL, max_entries_per_host=20_000)
    outcome = met(tmp_path, keys, Liar(listing, lambda channel, marker: None), options=options)
    assert outcome.reason == "the listing holds more than 20000 entries"


def test_names_without_end_do_not_fill_the_memory(tmp_path: Path, keys: tuple[Path, Path]) -> None:
    """Each entry is allowed, and so is their number: together their names are 1.2 GB."""

    class LongNames(Liar):
        def answer(self, channel: paramiko.Channel, marker: bytes) -> None:
            channel.sendall(TOOLS + b"listing\0")
            for first in range(0, 400_000, 100):
                name = b"/".join([b"n" * 250] * 11)
                channel.sendall(
                    b"".join(b"f 1 1.0 a_ascend_pt/%b/%d\0" % (name, first + n) for n in range(100))
                )
            channel.sendall(b"end 0\0")

    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = met(tmp_path, keys, LongNames(b"", lambda channel, marker: None))
    assert (outcome.failure, outcome.reason) == (
        "hostile-data",
        "the listing holds more than 96 MiB",
    )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 300_000


def test_an_archive_without_end_is_cut_off(tmp_path: Path, keys: tuple[Path, Path]) -> None:
    def fetch(channel: paramiko.Channel, marker: bytes) -> None:
        channel.sendall(entry("./a_ascend_pt/good.json", b"good") + bytes(1024))
        endless(channel, bytes(30_000))

    outcome = met(tmp_path, keys, Liar(LISTING, fetch))
    assert outcome.reason == "the archive does not end"


def test_a_bomb_stops_at_what_was_announced(tmp_path: Path, keys: tuple[Path, Path]) -> None:
    """A gigabyte of zeros in a few dozen KiB: neither memory nor disk may take it."""
    compressor = zstandard.ZstdCompressor(level=1).compressobj()
    header = tarfile.TarInfo("./a_ascend_pt/bad.json")
    header.size = 4
    bomb = compressor.compress(header.tobuf(tarfile.GNU_FORMAT) + b"evil" + bytes(508))
    bomb += b"".join(compressor.compress(bytes(1 << 20)) for _ in range(1024)) + compressor.flush()
    assert len(bomb) < 200_000
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = met(tmp_path, keys, Liar(LISTING, lambda channel, marker: channel.sendall(bomb), has_zstd=True))
    assert outcome.state in ("failed", "partial")
    assert "does not end" in outcome.reason
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 100_000
    assert sum(path.stat().st_size for path in (tmp_path / "run").rglob("*") if path.is_file()) < 100_000


def test_a_file_that_comes_with_a_thousand_times_its_size_is_refused(
    tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    header = tarfile.TarInfo("./a_ascend_pt/bad.json")
    header.size = 200 << 20

    def fetch(channel: paramiko.Channel, marker: bytes) -> None:
        channel.sendall(header.tobuf(tarfile.GNU_FORMAT))
        endless(channel, bytes(30_000))

    outcome = met(tmp_path, keys, Liar(LISTING, fetch))
    assert "was announced with 4 bytes and comes with 209715200" in outcome.reason
