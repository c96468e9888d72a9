"""A columns file as arrays. It came from another machine: nothing that it says is believed unchecked.

The form is that of `cluster_reduce.form`.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources.errors import BadFileError
from cluster_reduce.form import SCHEMA
from cluster_run.facts import fact

_MAX_HEAD_BYTES = 16 << 20
_BYTES = 8
_MAX_DECIMALS = 18


class Column(msgspec.Struct, frozen=True):
    """One column, as the head describes it."""

    name: str
    form: str
    n: int
    n_bytes: int
    n_planes: int = 0
    is_delta: bool = False
    n_decimals: int = 0
    base: tuple[str, ...] = ()
    at: str = ""


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
    columns: tuple[Column, ...]
    tables: tuple[DatabaseTable, ...] = ()
    wanted: dict[str, tuple[str, ...] | None] = {}


_HEAD: msgspec.json.Decoder[_Head] = msgspec.json.Decoder(_Head)


class ColumnsFile:
    """The columns of one file. Every method raises BadFileError where the file is damaged."""

    def __init__(self, path: Path, kind: str) -> None:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise BadFileError(fact("unreadable", detail=str(error.strerror or error))) from error
        head, begin = _head(content)
        if head.kind != kind:
            raise _damaged(f"columns of {head.kind[:40]!r}, not of {kind!r}")
        self.tables = head.tables
        #: Columns of a database that the host looked for, by table, in lower case; None is all of them.
        self.wanted = head.wanted
        self._columns: dict[str, tuple[Column, bytes]] = {}
        for column in head.columns:
            # No row without a byte in the file that it was read from.
            if not (0 <= column.n <= head.source_bytes and 0 <= column.n_bytes <= len(content) - begin):
                raise _damaged(f"column {column.name[:40]!r}")
            self._columns[column.name] = (column, content[begin : begin + column.n_bytes])
            begin += column.n_bytes
        self._ints: dict[str, npt.NDArray[np.int64]] = {}
        self._decimals: dict[str, tuple[int, npt.NDArray[np.int64]]] = {}

    def ints(self, name: str) -> npt.NDArray[np.int64]:
        """Return whole numbers."""
        if name not in self._ints:
            self._ints[name] = self._whole(*self._column(name, "ints"))
        return self._ints[name]

    def floats(self, name: str) -> npt.NDArray[np.float64]:
        """Return numbers, NaN for a missing one."""
        column, content = self._column(name, "decimals", "doubles")
        if column.form == "doubles":
            return self._unsigned(column, content, _BYTES).view(np.float64)
        n_decimals, whole = self._whole_decimals(name)
        numbers: npt.NDArray[np.float64] = whole / np.float64(10**n_decimals)
        return numbers

    def texts(self, name: str) -> pa.Array:
        """Return texts, null for a missing one."""
        return self._distinct(name).take(self._places(name))

    def names(self, name: str) -> pa.Array:
        """Return texts whose numbers are columns of their own."""
        places = self.ints(f"{name}.places")
        forms = self._distinct(name)
        parts = [(text or "").split("\0") for text in forms.to_pylist()]
        if all(len(one) == 1 for one in parts):
            return self.texts(name)
        given = [self.ints(f"{name}.{at}") for at in range(max(map(len, parts)) - 1)]
        lengths = np.array([len(one) - 1 for one in parts], np.int64)
        self._places(name)
        n_numbers = lengths[places]
        rows_of = [np.flatnonzero(n_numbers > at) for at in range(len(given))]
        if any(len(rows) != len(values) for rows, values in zip(rows_of, given, strict=True)):
            raise _damaged(f"column {name!r}")
        columns = []
        for rows, values in zip(rows_of, given, strict=True):
            whole = np.zeros(len(places), np.int64)
            whole[rows] = values
            columns.append(whole)
        order = np.argsort(places, kind="stable")
        bounds = np.searchsorted(places[order], np.arange(len(parts) + 1))
        made = []
        for form, texts in enumerate(parts):
            rows = order[bounds[form] : bounds[form + 1]]
            pieces: list[Any] = [pa.scalar(texts[0])]
            for text, column in zip(texts[1:], columns, strict=False):
                pieces += [pc.cast(pa.array(column[rows]), pa.string()), pa.scalar(text)]
            one = (
                pc.binary_join_element_wise(*pieces, "") if len(texts) > 1 else pa.repeat(texts[0], len(rows))
            )
            made.append(one)
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return pa.concat_arrays(made).take(pa.array(back))

    def _distinct(self, name: str) -> pa.Array:
        column, content = self._column(name, "bytes")
        letters = _unpacked(content, column.n)
        lengths = self.ints(f"{name}.lengths")
        offsets = np.concatenate([[0], np.cumsum(np.maximum(lengths, 0))])
        if len(lengths) and (int(lengths.min()) < -1 or int(lengths.max()) > len(letters)):
            raise _damaged(f"column {name!r}")
        if offsets[-1] != len(letters):
            raise _damaged(f"column {name!r}")
        texts = [
            None if length < 0 else letters[begin : begin + length]
            for begin, length in zip(offsets.tolist(), lengths.tolist(), strict=False)
        ]
        try:
            return pa.array([None if text is None else text.decode() for text in texts], pa.string())
        except UnicodeDecodeError as error:
            raise _damaged(f"column {name!r}") from error

    def _places(self, name: str) -> pa.Array:
        places, n_texts = self.ints(f"{name}.places"), len(self.ints(f"{name}.lengths"))
        if len(places) and not 0 <= int(places.min()) <= int(places.max()) < n_texts:
            raise _damaged(f"column {name!r}")
        return pa.array(places)

    def _whole_decimals(self, name: str) -> tuple[int, npt.NDArray[np.int64]]:
        """Return how many decimals, and the whole numbers."""
        if name in self._decimals:
            return self._decimals[name]
        column, content = self._column(name, "decimals")
        whole = self._whole(column, content)
        if not 0 <= column.n_decimals <= _MAX_DECIMALS:
            raise _damaged(f"column {name!r}")
        # A base stands before: a circle of them would never end.
        if any(not self._is_before(one, name) for one in column.base):
            raise _damaged(f"column {name!r}")
        for one in column.base:
            n_decimals, base = self._whole_decimals(one)
            if column.at:
                at = self.ints(column.at)
                if len(at) and not 0 <= int(at.min()) <= int(at.max()) < len(base):
                    raise _damaged(f"column {name!r}")
                base = base[at]
            if len(base) != len(whole) or n_decimals > column.n_decimals:
                raise _damaged(f"column {name!r}")
            whole = whole + base * 10 ** (column.n_decimals - n_decimals)
        self._decimals[name] = column.n_decimals, whole
        return self._decimals[name]

    def _is_before(self, name: str, other: str) -> bool:
        order = list(self._columns)
        return name in self._columns and order.index(name) < order.index(other)

    def _whole(self, column: Column, content: bytes) -> npt.NDArray[np.int64]:
        folded = self._unsigned(column, content, column.n_planes)
        values = (folded >> np.uint64(1)).view(np.int64) ^ -(folded & np.uint64(1)).view(np.int64)
        return np.cumsum(values) if column.is_delta else values

    def _unsigned(self, column: Column, content: bytes, n_planes: int) -> npt.NDArray[np.uint64]:
        if not 1 <= n_planes <= _BYTES:
            raise _damaged(f"column {column.name[:40]!r}")
        planes = np.frombuffer(_unpacked(content, column.n * n_planes), np.uint8)
        octets = np.zeros((column.n, _BYTES), np.uint8)
        octets[:, :n_planes] = planes.reshape(n_planes, column.n).T
        return octets.reshape(-1).view("<u8").astype(np.uint64, copy=False)

    def _column(self, name: str, *forms: str) -> tuple[Column, bytes]:
        found = self._columns.get(name)
        if found is None or found[0].form not in forms:
            raise _damaged(f"no column {name!r}")
        return found


def _head(content: bytes) -> tuple[_Head, int]:
    """Return the head of a file, and where it ends."""
    schema, _, rest = content.partition(b"\n")
    length, _, packed = rest.partition(b"\n")
    if schema != SCHEMA.encode() or not length.isdigit() or len(length) > len(str(_MAX_HEAD_BYTES)):
        raise _damaged(f"it begins with {schema[:40]!r}, not with {SCHEMA}")
    n_bytes = int(length)
    unpacker = zlib.decompressobj()
    try:
        head = unpacker.decompress(packed[:n_bytes], _MAX_HEAD_BYTES)
        return _HEAD.decode(head), len(content) - len(packed) + n_bytes
    except (zlib.error, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _damaged(str(error)) from error


def _unpacked(content: bytes, n_bytes: int) -> bytes:
    """Return what was compressed, which must be so long: a bomb is never unpacked."""
    unpacker = zlib.decompressobj()
    try:
        # 0 would mean no limit.
        found = unpacker.decompress(content, n_bytes + 1)
    except zlib.error as error:
        raise _damaged(str(error)) from error
    if len(found) != n_bytes or not unpacker.eof:
        raise _damaged("a column of another length than it says")
    return found


def _damaged(detail: str) -> BadFileError:
    return BadFileError(fact("not_of_form", detail=f"columns: {detail}"), "collect_again")
