"""A columns file as arrays. It came from another machine, so everything in it is checked.

The form is that of `cluster_reduce.form` and `cluster_reduce.packing`.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.sources.columns.columns import Columns, are_places, damaged
from cluster_analysis.sources.errors import as_bad_file
from cluster_reduce.form import MOST_HEAD_BYTES, MOST_NUMBERS, SCHEMA
from cluster_reduce.packing import N_BYTES, RAW_WINDOW

#: The largest heads of real databases have some hundred columns.
_MAX_COLUMNS = 20_000
#: No operator, task or link is written with less than a hundred bytes; more are read nowhere in one file.
_MAX_ROWS = 10_000_000
#: Memory of all numbers of a file: real files take at most 50 times their size.
_WORDS = 10_000
_MAX_EXPANSION, _LEAST_BYTES, _MAX_BYTES = 128, 4 << 20, 512 << 20
_MAX_DECIMALS = 18
_MAX_INT = (1 << 63) - 1
#: Most digits of a number in a name, and most bytes of all names of a column.
_MOST_DIGITS, _MOST_LETTERS = 19, (1 << 31) - 1
_NOTHING = np.zeros(0, np.int64)
#: Bytes of the numbers that a column is made into, before they have a sign.
_SIZES = (2, 4, N_BYTES)
#: Original value of each folded byte.
_UNFOLDED = np.array([(value >> 1) ^ -(value & 1) for value in range(256)], np.int64)


class Column(msgspec.Struct, frozen=True):
    """One column, as the head describes it."""

    name: str
    form: str
    n: int
    n_planes: int = 0
    is_delta: bool = False
    begin: int = 0
    n_decimals: int = 0


class TableColumn(msgspec.Struct, frozen=True):
    """A column of a table in a database."""

    name: str
    type: str
    is_key: bool


class DatabaseTable(msgspec.Struct, frozen=True):
    """A table of a database; each index as the names of its columns."""

    name: str
    columns: tuple[TableColumn, ...]
    indexes: tuple[tuple[str, ...], ...]


class _Head(msgspec.Struct, frozen=True):
    kind: str
    source_bytes: int
    crc32: int
    columns: tuple[Column, ...]
    tables: tuple[DatabaseTable, ...] = ()
    wanted: dict[str, tuple[str, ...] | None] = {}


class ColumnsFile(Columns):
    """The columns of one file. Every method raises BadFileError where the file is damaged."""

    def __init__(self, path: Path, kind: str) -> None:
        with as_bad_file():
            content = path.read_bytes()
        head, begin = _head(content)
        if zlib.crc32(memoryview(content)[begin:]) != head.crc32:
            raise damaged("other bytes than were written")
        if head.kind != kind:
            raise damaged(f"columns of {head.kind[:40]!r}, not of {kind!r}")
        self.tables = head.tables
        #: Columns of a database that the host looked for, by table, in lower case; None is all of them.
        self.wanted = head.wanted
        self._columns = {column.name: column for column in head.columns}
        _require_bounds(head, len(self._columns), len(content))
        self._planes = _planes(head, memoryview(content)[begin:])
        self._ints: dict[str, IntArray] = {}

    def has(self, name: str) -> bool:
        """Return whether there is such a column."""
        return name in self._columns

    def ints(self, name: str) -> IntArray:
        """Return whole numbers, or points in time in ns."""
        if name not in self._ints:
            self._ints[name] = self._whole(self._column(name, "ints"))
        return self._ints[name]

    def floats(self, name: str) -> FloatArray:
        """Return numbers, NaN for a missing one."""
        column = self._column(name, "decimals", "doubles")
        if column.form == "doubles":
            return self._doubles(column)
        if not 0 <= column.n_decimals <= _MAX_DECIMALS:
            raise damaged(f"column {name!r}")
        numbers: FloatArray = self._whole(column) / np.float64(10**column.n_decimals)
        return numbers

    def coded(self, name: str) -> tuple[IntArray, list[str | None]]:
        """Return which text each row has, and the distinct texts, None for a missing one."""
        return self._places(name), self._distinct(name)

    def names(self, name: str) -> pa.Array:
        """Return texts one by one; what they share is in the file once, and their numbers are columns."""
        places, known = self.coded(name)
        stems = [(text or "").split("\0") for text in known]
        n_numbers = np.array([len(stem) - 1 for stem in stems], np.int64)
        n_most = int(n_numbers.max(initial=0))
        if n_most > MOST_NUMBERS:
            raise damaged(f"column {name!r}")
        is_number = np.arange(n_most) < n_numbers[places][:, None]
        n_letters = np.array([sum(len(part.encode()) for part in stem) for stem in stems], np.int64)
        if n_letters[places].sum() + _MOST_DIGITS * np.count_nonzero(is_number) > _MOST_LETTERS:
            raise damaged("names")
        numbers = np.zeros(is_number.shape, np.int64)
        for at in range(n_most):
            given = self.ints(f"{name}.{at}")
            if len(given) != np.count_nonzero(is_number[:, at]) or int(given.min(initial=0)) < 0:
                raise damaged(f"column {name!r}")
            numbers[is_number[:, at], at] = given
        if not len(places):
            return pa.array([], pa.string())
        forms = ["%d".join(part.replace("%", "%%") for part in stem) for stem in stems]
        # One text of all names: Python makes it in a third of the time that it takes name by name.
        texts = "\0".join(map(forms.__getitem__, places.tolist())) % tuple(numbers[is_number].tolist())
        return pa.array(texts.split("\0"), pa.string())

    def _distinct(self, name: str) -> list[str | None]:
        self._column(name, "bytes")
        letters, begin = bytes(self._planes[name][0]), 0
        texts: list[str | None] = []
        try:
            for length in self.ints(f"{name}.lengths").tolist():
                texts.append(None if length < 0 else letters[begin : begin + length].decode())
                begin += max(0, length)
        except UnicodeDecodeError as error:
            raise damaged(f"column {name!r}") from error
        if begin != len(letters):
            raise damaged(f"column {name!r}")
        return texts

    def _places(self, name: str) -> IntArray:
        places, n_texts = self.ints(f"{name}.places"), len(self.ints(f"{name}.lengths"))
        if not are_places(places, n_texts):
            raise damaged(f"column {name!r}")
        return places

    def _whole(self, column: Column) -> IntArray:
        values = _unfolded(self._planes[column.name], column.n)
        if column.is_delta:
            values = values.cumsum()
        if not -_MAX_INT - 1 <= column.begin <= _MAX_INT:
            raise damaged(f"column {column.name[:40]!r}")
        # Wraps where the file lies; it never raises.
        return values + np.int64(column.begin) if column.begin else values

    def _doubles(self, column: Column) -> FloatArray:
        planes = self._planes[column.name]
        if len(planes) != N_BYTES:
            raise damaged(f"column {column.name[:40]!r}")
        return _octets(planes, column.n, N_BYTES).view("<f8").astype(np.float64, copy=False)

    def _column(self, name: str, *forms: str) -> Column:
        found = self._columns.get(name)
        if found is None or found.form not in forms:
            raise damaged(f"no column {name!r}")
        return found


def _require_bounds(head: _Head, n_names: int, n_bytes: int) -> None:
    """Raise BadFileError where a head asks for more than a file of `n_bytes` holds; nothing is unpacked."""
    if len(head.columns) > _MAX_COLUMNS:
        raise damaged(f"more than {_MAX_COLUMNS} columns")
    if n_names < len(head.columns):
        raise damaged("two columns of one name")
    n_taken = n_numbers = 0
    for column in head.columns:
        # A column without rows has a plane, too: an empty one.
        if not (0 <= column.n <= _MAX_ROWS and 1 <= column.n_planes <= N_BYTES):
            raise damaged(f"column {column.name[:40]!r}: {column.n} rows of {column.n_planes} bytes")
        n_numbers += column.n
        n_taken += column.n * (N_BYTES + column.n_planes)
    # Each number took a byte of the file that it was read from, but for a few about the whole file.
    if n_numbers > head.source_bytes + _WORDS or n_taken > min(
        _LEAST_BYTES + _MAX_EXPANSION * n_bytes, _MAX_BYTES
    ):
        raise damaged(f"{n_numbers} numbers in {n_bytes} bytes: more than any file holds")


def _planes(head: _Head, body: memoryview) -> dict[str, list[memoryview]]:
    """Return the planes of each column, by its name."""
    n_bytes = sum(column.n * column.n_planes for column in head.columns)
    all_planes, place = memoryview(_unpacked(body, n_bytes)), 0
    planes: dict[str, list[memoryview]] = {}
    for column in head.columns:
        own = planes.setdefault(column.name, [])
        for _ in range(column.n_planes):
            own.append(all_planes[place : place + column.n])
            place += column.n
    return planes


def _unfolded(planes: list[memoryview], n: int) -> IntArray:
    """Return whole numbers (n,) of the bytes that they were written as."""
    if not n:
        return _NOTHING
    if not planes:
        raise damaged("numbers without bytes")
    if len(planes) == 1:
        return _UNFOLDED[np.frombuffer(planes[0], np.uint8)]
    n_bytes = next(size for size in _SIZES if size >= len(planes))
    folded = _octets(planes, n, n_bytes).view(f"<u{n_bytes}").astype(np.uint64)
    return (folded >> np.uint64(1)).view(np.int64) ^ -(folded & np.uint64(1)).view(np.int64)


def _octets(planes: list[memoryview], n: int, n_bytes: int) -> npt.NDArray[np.uint8]:
    """Return numbers of `n_bytes` bytes each, one behind the other."""
    octets = np.zeros((n, n_bytes), np.uint8)
    for place, plane in enumerate(planes):
        octets[:, place] = np.frombuffer(plane, np.uint8)
    return octets.reshape(-1)


def _head(content: bytes) -> tuple[_Head, int]:
    """Return the head of a file, and where it ends."""
    schema, _, rest = content.partition(b"\n")
    length, _, packed = rest.partition(b"\n")
    if schema != SCHEMA.encode() or not length.isdigit() or len(length) > len(str(MOST_HEAD_BYTES)):
        raise damaged(f"it begins with {schema[:40]!r}, not with {SCHEMA}")
    n_bytes = int(length)
    unpacker = zlib.decompressobj()
    try:
        head = unpacker.decompress(packed[:n_bytes], MOST_HEAD_BYTES)
        return msgspec.json.decode(head, type=_Head), len(content) - len(packed) + n_bytes
    except (zlib.error, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise damaged(str(error)) from error


def _unpacked(content: memoryview, n_bytes: int) -> bytes:
    """Return what was compressed; it must be as long as stated: a bomb is never unpacked."""
    unpacker = zlib.decompressobj(RAW_WINDOW)
    try:
        # 0 would mean no limit.
        found = unpacker.decompress(content, n_bytes + 1)
    except zlib.error as error:
        raise damaged(str(error)) from error
    if len(found) != n_bytes or not unpacker.eof:
        raise damaged("planes of another length than it says")
    return found
