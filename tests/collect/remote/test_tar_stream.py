"""The push parser: what it takes, and what it refuses."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_collect.faults import HostileDataError
from cluster_collect.remote.tar_stream import TarParser


class Kept:
    """Collects files; `unfinished` is the name of one whose end has not come."""

    def __init__(self) -> None:
        self.files: dict[bytes, bytes] = {}
        self.unfinished: bytes | None = None
        self._content = b""
        self._size = -1

    def begin_file(self, name: bytes, size_bytes: int) -> None:
        self.unfinished, self._content, self._size = name, b"", size_bytes

    def file_data(self, data: memoryview) -> None:
        self._content += bytes(data)

    def end_file(self) -> None:
        assert self.unfinished is not None
        assert len(self._content) == self._size
        self.files[self.unfinished] = self._content
        self.unfinished = None


def archive(files: Mapping[str, bytes], form: int = tarfile.GNU_FORMAT, prefix: str = "./") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(
        fileobj=stream, mode="w", format=form, encoding="utf-8", errors="surrogateescape"
    ) as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(prefix + name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def entry(kind: bytes, name: str = "a", link: str = "", size: int = 0) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, size
    return info.tobuf(tarfile.GNU_FORMAT)


def parsed(data: bytes, piece: int = 1 << 20) -> tuple[Kept, TarParser, bytes]:
    kept, rest = Kept(), b""
    parser = TarParser(kept)
    for begin in range(0, len(data), piece):
        rest += bytes(parser.feed(data[begin : begin + piece]))
    return kept, parser, rest


NAMES = st.text("ab/-é\udcff.", min_size=1, max_size=120).map(
    lambda text: "/".join(part for part in text.split("/") if part not in ("", ".", "..")) or "x"
)


@settings(max_examples=60, deadline=None)
@given(
    files=st.dictionaries(NAMES, st.binary(max_size=2000), max_size=5),
    form=st.sampled_from([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
    piece=st.sampled_from([1, 7, 511, 512, 513, 100_000]),
    tail=st.binary(max_size=30),
)
def test_what_went_in_comes_out_whatever_the_pieces(
    files: dict[str, bytes], form: int, piece: int, tail: bytes
) -> None:
    if form == tarfile.USTAR_FORMAT:
        files = {name[:80].rstrip("/"): content for name, content in files.items()}
    wanted = {name.encode("utf-8", "surrogateescape"): content for name, content in files.items()}
    data = archive(files, form)
    kept, parser, rest = parsed(data + tail, piece)
    assert kept.files == wanted
    assert parser.finished
    assert rest.endswith(tail)


@pytest.mark.parametrize("piece", [511, 512, 513, 100_000, 1 << 20])
@pytest.mark.parametrize("size", [(64 << 10) - 1, 64 << 10, (64 << 10) + 1, 300_000])
def test_a_file_that_the_pieces_cut_comes_out_whole_small_or_large(size: int, piece: int) -> None:
    files = {"before": b"1", "cut": bytes(range(250)) * (size // 250) + b"x" * (size % 250), "after": b"2"}
    kept, parser, _ = parsed(archive(files), piece)
    assert kept.files == {name.encode(): text for name, text in files.items()}
    assert (parser.finished, kept.unfinished) == (True, None)


def test_every_prefix_of_an_archive_is_unfinished_and_no_file_is_taken_early() -> None:
    files = {"a": b"x" * 600, "b": b"y" * 10}
    data = archive(files)
    # Each is taken when the block behind it is known to be one of the archive.
    content_ends = {"a": 512 + 1024 + 512, "b": 512 + 1024 + 512 + 512 + 512}
    for length in range(0, 512 * 7, 37):
        kept, parser, _ = parsed(data[:length])
        assert set(kept.files) == {name.encode() for name, end in content_ends.items() if end <= length}
        assert parser.finished == (length >= content_ends["b"])


def test_a_file_that_other_text_fills_up_behind_an_archive_that_was_cut_off_is_not_taken() -> None:
    data = archive({"a": b"x" * 600, "b": b"y" * 600})
    kept = Kept()
    parser = TarParser(kept)
    with pytest.raises(HostileDataError):
        parser.feed(data[: 512 + 1024 + 512 + 500] + b"a listing " * 200)
    assert set(kept.files) == {b"a"}


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (tarfile.LNKTYPE, "type b'1'"),
        (tarfile.SYMTYPE, "type b'2'"),
        (tarfile.CHRTYPE, "type b'3'"),
        (tarfile.BLKTYPE, "type b'4'"),
        (tarfile.DIRTYPE, "type b'5'"),
        (tarfile.FIFOTYPE, "type b'6'"),
        (tarfile.GNUTYPE_SPARSE, "type b'S'"),
        (tarfile.GNUTYPE_LONGLINK, "type b'K'"),
    ],
)
def test_only_regular_files_are_taken(kind: bytes, message: str) -> None:
    with pytest.raises(HostileDataError, match=message):
        parsed(entry(kind, "a", "/etc/passwd"))


def test_sizes_beyond_octal_are_read() -> None:
    size = 20 << 30
    kept, parser, _ = parsed(entry(tarfile.REGTYPE, "a", size=size) + b"data")
    assert (kept.unfinished, parser.finished) == (b"a", False)


@pytest.mark.parametrize(
    "header",
    [
        entry(tarfile.GNUTYPE_LONGNAME, "././@LongLink", size=2 << 20),
        entry(tarfile.XHDTYPE, "pax", size=2 << 20),
    ],
)
def test_long_names_have_a_limit(header: bytes) -> None:
    with pytest.raises(HostileDataError, match="archive header of 2097152 bytes"):
        parsed(header)


@pytest.mark.parametrize(
    "records", [b"99 path=a\n", b"x path=a\n", b"12 size=99x\n", b"0 =\n", b"9 pathxy\n", b"-5 path=a\n"]
)
def test_pax_records_that_lie_are_refused(records: bytes) -> None:
    data = entry(tarfile.XHDTYPE, "pax", size=len(records)) + records.ljust(512, b"\0")
    with pytest.raises(HostileDataError, match="pax header"):
        parsed(data)


@pytest.mark.parametrize("field", [b"\xff" + b"\xff" * 11, b"9" * 11 + b"\0", b"-0000000001\0"])
def test_sizes_that_are_no_numbers_are_refused(field: bytes) -> None:
    block = bytearray(entry(tarfile.REGTYPE, "a"))
    block[124:136] = field
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    with pytest.raises(HostileDataError, match="number"):
        parsed(bytes(block))


def test_what_is_no_archive_is_refused_at_the_first_block() -> None:
    with pytest.raises(HostileDataError, match="not a tar archive"):
        parsed(b"Welcome to host 7!" + b"x" * 600)
