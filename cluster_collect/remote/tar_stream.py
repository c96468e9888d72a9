"""A tar parser that is fed as bytes arrive and trusts nothing in them.

It takes regular files; which ones, and how large, its receiver decides. Links, devices, other entry
types and oversized headers end the transfer. Reads what GNU tar, bsdtar and busybox write: ustar,
GNU long names, pax `path` and `size`, base-256 sizes.
"""

from __future__ import annotations

from typing import Protocol

from cluster_collect.faults import HostileDataError

_BLOCK = 512
_ZERO_BLOCK = bytes(_BLOCK)
_MAX_EXTENSION_BYTES = 1 << 20

_REGULAR = frozenset((b"0", b"\0", b"7"))


class TarReceiver(Protocol):
    """Takes the files out of the stream, one after the other, in pieces as they arrive."""

    def begin_file(self, name: bytes, size_bytes: int) -> None:
        """The file `name` (without `./`) begins; `size_bytes` of content follow.

        Raises:
            HostileDataError: it was not asked for.
        """

    def file_data(self, data: memoryview) -> None:
        """More content of the file that began last; the view is valid during the call only."""

    def end_file(self) -> None:
        """All content of the file has been given, and the archive goes on behind it."""


class TarParser:
    """Takes an archive in pieces of any size and hands the files in it to a receiver."""

    def __init__(self, receiver: TarReceiver) -> None:
        self._receiver = receiver
        self._partial = bytearray()
        self._remaining = 0
        self._padding = 0
        self._extension = bytearray()
        self._extension_kind = b""
        self._long_name: bytes | None = None
        self._long_size: int | None = None
        self._has_file = False
        self.finished = False
        #: Bytes of files that have come: headers and padding are none.
        self.n_content_bytes = 0
        #: Global headers that have come: they say nothing of files, but that the sender works.
        self.n_global_headers = 0

    def feed(self, data: bytes | memoryview) -> memoryview:
        """Take the next bytes; return those that follow the end of the archive (empty before it).

        Raises:
            HostileDataError: the stream is not an archive, or holds what was not asked for.
        """
        view = memoryview(data)
        while view and not self.finished:
            if self._remaining:
                view = self._content(view)
            elif self._padding:
                skipped = min(self._padding, len(view))
                self._padding -= skipped
                view = view[skipped:]
            else:
                view = self._header_block(view)
        return view

    def _content(self, view: memoryview) -> memoryview:
        n_bytes = min(self._remaining, len(view))
        self._remaining -= n_bytes
        if self._extension_kind:
            self._extension += view[:n_bytes]
            if not self._remaining:
                self._end_extension()
            return view[n_bytes:]
        self.n_content_bytes += n_bytes
        self._receiver.file_data(view[:n_bytes])
        return view[n_bytes:]

    def _header_block(self, view: memoryview) -> memoryview:
        missing = _BLOCK - len(self._partial)
        self._partial += view[:missing]
        view = view[missing:]
        if len(self._partial) == _BLOCK:
            block = bytes(self._partial)
            self._partial.clear()
            return self._header(block, view)
        return view

    def _header(self, block: bytes, view: memoryview) -> memoryview:
        """Take a header and what follows it; return what is left of that."""
        is_end = block == _ZERO_BLOCK
        if not is_end:
            _verify_checksum(block)
        # Where the sender was cut off, what follows would have filled up the file.
        if self._has_file:
            self._has_file = False
            self._receiver.end_file()
        if is_end:
            self.finished = True
            return view
        kind = block[156:157]
        size_bytes = _number(block[124:136])
        if kind in (b"L", b"x", b"g"):
            if size_bytes > _MAX_EXTENSION_BYTES or size_bytes == 0:
                raise HostileDataError(f"an archive header of {size_bytes} bytes")
            self._extension_kind = kind
            self.n_global_headers += kind == b"g"
            self._begin_content(size_bytes)
            return view
        if kind not in _REGULAR:
            raise HostileDataError(f"the archive holds an entry of type {kind!r}, only files were asked for")
        name = self._long_name or _short_name(block)
        if self._long_size is not None:
            size_bytes = self._long_size
        self._long_name = self._long_size = None
        self._receiver.begin_file(name.removeprefix(b"./"), size_bytes)
        self.n_content_bytes += 1  # one without content is something, too
        self._has_file = True
        self._begin_content(size_bytes)
        return view

    def _begin_content(self, size_bytes: int) -> None:
        self._remaining = size_bytes
        self._padding = -size_bytes % _BLOCK

    def _end_extension(self) -> None:
        kind, content = self._extension_kind, bytes(self._extension)
        self._extension_kind = b""
        self._extension.clear()
        if kind == b"L":
            self._long_name = content.rstrip(b"\0")
        elif kind == b"x":
            records = _pax_records(content)
            self._long_name = records.get(b"path", self._long_name)
            if b"size" in records:
                self._long_size = _decimal(records[b"size"])


def _short_name(block: bytes) -> bytes:
    name = block[:100].split(b"\0", 1)[0]
    prefix = block[345:500].split(b"\0", 1)[0] if block[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def _verify_checksum(block: bytes) -> None:
    field = block[148:156]
    text = field.strip(b"\0 ")
    # It is the sum of all bytes, with spaces in the place of the sum itself.
    found = sum(block) - sum(field) + 8 * ord(" ")
    if text.strip(b"01234567") or int(text or b"0", 8) != found:
        raise HostileDataError("the stream is not a tar archive, or was damaged on the host")


def _number(field: bytes) -> int:
    if field[0] & 0x80:
        number = int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
        if field[0] & 0x40:
            raise HostileDataError("a negative number in an archive header")
        return number
    text = field.split(b"\0", 1)[0].strip(b" ")
    if text.strip(b"01234567"):
        raise HostileDataError("an archive header that holds no number where one belongs")
    return int(text or b"0", 8)


def _decimal(text: bytes) -> int:
    if not text.isdigit() or len(text) > 20:
        raise HostileDataError("a pax header with a size that is no number")
    return int(text)


def _pax_records(content: bytes) -> dict[bytes, bytes]:
    records: dict[bytes, bytes] = {}
    position = 0
    while position < len(content):
        length_text, space, _ = content[position : position + 24].partition(b" ")
        length = _decimal(length_text)
        record = content[position + len(length_text) + 1 : position + length]
        key, equals, value = record.partition(b"=")
        if not space or not equals or not value.endswith(b"\n") or position + length > len(content):
            raise HostileDataError("a pax header that cannot be read")
        records[key] = value[:-1]
        position += length
    return records
