"""The form of a columns file: what a large file of a capture holds, as far as the analysis reads it.

`SCHEMA` and a line end; the length of the head in bytes, as a line; the head: JSON, compressed by zlib, with
the kind of the file, the CRC-32 of what follows, and each column's name, form and length; then the planes of
all columns as one stream. `packing` defines the form of whole numbers and the stream.

| form | holds |
| --- | --- |
| ints | whole numbers of 64 bits |
| decimals | whole numbers, to be divided by 10 to the power `n_decimals`: exactly the float64 of the file |
| doubles | float64, 8 planes; NaN for what is missing |
| bytes | UTF-8 of all texts, one behind the other |

Further forms saved 4 % of the bytes of real captures, and cost 2 % of those of simulated ones: sums that miss
a decimal by some bits, halves, quarters of a µs, numbers less those of other columns, planes of noise as
streams of their own. Steps of clocks and common words of heads saved 4 and 7 %, of what is 2 % of a file.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, cast

from cluster_reduce.packing import Packed, deflated, packed, packed_doubles

#: Transports whose sums each operator has, in the spelling of link entries.
TRANSPORTS = ("HCCS", "RDMA", "PCIE", "SIO")
#: Those of links inside a host, whose sum SDMA is, where they have entries of their own.
OF_HOST = ("HCCS", "PCIE", "SIO")
#: Times of operators of which hosts only send sums.
SUMMED = ("transit", "wait", "synchronization", "idle")
SCHEMA = "cluster-columns/4"
#: Suffix of a file whose columns lie in its place.
SUFFIX = ".columns"
#: Suffix in transit where the columns only say that the host had no time or memory.
UNREAD_SUFFIX = ".unread"

#: First words of the reader if it works; otherwise UNFIT and the reason.
READY, UNFIT = b"columns 1\n", b"unfit "
#: Prefix on standard error of a file that comes whole for lack of time or memory.
OVER_LIMITS = b"over limits: ./"

_MOST_DECIMALS = 9
#: Numbers that are tried to see whether all others are worth a look.
_N_TRIED = 64
_LEVEL = 9
#: Numbers handled at once: single ones take five times the memory of an array.
_PART = 1 << 14
#: A number in a name: one that is spelled in one way only, and that fits 64 bits.
_NUMBER = re.compile(r"(?<![0-9])(0|[1-9][0-9]{0,17})(?![0-9])")
#: Most numbers of one name that have columns.
MOST_NUMBERS = 8
#: Whole numbers up to this are float64 exactly.
_MAX_EXACT = 1 << 53


#: The kind that the head of its columns names, by the file's name.
_KINDS: list[tuple[re.Pattern[bytes], str]] = [
    (re.compile(rb"communication\.json"), "communication"),
    (re.compile(rb"communication_matrix\.json"), "matrix"),
    (re.compile(rb"kernel_details\.csv"), "kernels"),
    (re.compile(rb"trace_view\.json"), "timeline"),
    (re.compile(rb"(analysis|communication_analyzer)\.db"), "database"),
    (re.compile(rb"ascend_(pytorch|mindspore)_profiler(_[0-9]{1,6})?\.db"), "database"),
]
#: The head of a columns file ends within this many bytes.
MOST_HEAD_BYTES = 4 << 20


class UnfitError(Exception):
    """The file holds something that this reader does not know: it travels as it is."""


def has_columns(path: bytes) -> bool:
    """Return whether a file of this name may come as columns."""
    return kind_of(path) is not None


def kind_of(path: bytes) -> str | None:
    """Return the kind of columns that a file of this name has, None where it has none."""
    return next((kind for pattern, kind in _KINDS if pattern.fullmatch(path.rpartition(b"/")[2])), None)


def why_not_of(path: bytes, begin: bytes) -> str:
    """Say why a file that begins so is not the columns of the file `path`; empty when it may be.

    `begin` is the whole file, or at least its head.
    """
    kind = kind_of(path)
    if kind is None:
        return "such files have no columns"
    schema, _, rest = begin.partition(b"\n")
    length, _, packed = rest[:40].partition(b"\n")
    if schema != SCHEMA.encode() or not length.isdigit() or int(length) > MOST_HEAD_BYTES:
        return f"it begins with {schema[:40]!r}, not with {SCHEMA}"
    packed = rest[len(length) + 1 :][: int(length)]
    try:
        head = json.loads(zlib.decompressobj().decompress(packed, MOST_HEAD_BYTES).decode())
        found = head["kind"]
    except (zlib.error, ValueError, KeyError, TypeError, RecursionError):
        return "its head cannot be read"
    return "" if found == kind else f"it says to be of the kind {str(found)[:40]!r}, not {kind!r}"


class Writer:
    """Takes columns and gives the content of the file."""

    def __init__(self, kind: str, source_bytes: int) -> None:
        self._head: dict[str, object] = {"kind": kind, "source_bytes": source_bytes}
        self._columns: list[dict[str, object]] = []
        self._planes: list[bytes] = []

    def ints(self, name: str, values: Sequence[int]) -> None:
        """Add whole numbers."""
        self._add(name, _packed(values), form="ints")

    def floats(self, name: str, values: Sequence[float | None]) -> None:
        """Add numbers, None for a missing one."""
        decimals = _as_decimals(values)
        if decimals is None:
            doubles = packed_doubles([math.nan if value is None else value for value in values])
            self._add(name, doubles, form="doubles")
        else:
            self._add(name, _packed(decimals[1]), form="decimals", n_decimals=decimals[0])

    def texts(self, name: str, values: Sequence[str | None]) -> None:
        """Add texts, each distinct one once; None is missing."""
        places: dict[str | None, int] = {}
        self.ints(name + ".places", [places.setdefault(value, len(places)) for value in values])
        try:
            distinct = [b"" if value is None else value.encode() for value in places]
        except UnicodeEncodeError:
            raise UnfitError("a text that is no UTF-8") from None
        self.ints(
            name + ".lengths", [-1 if value is None else len(text) for value, text in zip(places, distinct)]
        )
        joined = b"".join(distinct)
        self._add(name, Packed([joined], {"n": len(joined), "n_planes": 1}), form="bytes")

    def names(self, name: str, values: Sequence[str]) -> None:
        """Add texts that differ in a few numbers: what they share as texts, the numbers as columns."""
        if any("\0" in value for value in values):
            raise UnfitError("a name with a NUL in it")
        split = [_NUMBER.split(value) for value in values]
        split = [
            parts if len(parts) <= 2 * MOST_NUMBERS + 1 else [value] for value, parts in zip(values, split)
        ]
        self.texts(name, ["\0".join(parts[::2]) for parts in split])
        for at in range(max(map(len, split), default=1) // 2):
            found = [int(parts[2 * at + 1]) for parts in split if len(parts) > 2 * at + 1]
            self.ints(f"{name}.{at}", found)

    def take(self, columns: Iterable[tuple[str, str, Sequence[Any]]]) -> None:
        """Add columns, each as its form (a method of this class), its name and its values."""
        for form, name, values in columns:
            getattr(self, form)(name, values)

    def content(self, **said: object) -> bytes:
        """Return the file; `said` is added to its head."""
        body = deflated(b"".join(self._planes))
        self._head.update(said, columns=self._columns, crc32=zlib.crc32(body))
        head = zlib.compress(json.dumps(self._head, separators=(",", ":")).encode(), _LEVEL)
        return b"%s\n%d\n" % (SCHEMA.encode(), len(head)) + head + body

    def _add(self, name: str, column: Packed, **about: object) -> None:
        self._columns.append(dict(column.about, name=name, **about))
        self._planes += column.planes


def _packed(values: Sequence[int]) -> Packed:
    try:
        return packed(values)
    except OverflowError:
        raise UnfitError("a whole number of more than 64 bits") from None


def _as_decimals(values: Sequence[float | None]) -> tuple[int, Sequence[int]] | None:
    """Return how many decimals make all numbers whole, and these; None where that would not be exact."""
    if not all(value is not None and -_MAX_EXACT <= value <= _MAX_EXACT for value in values):
        return None
    given = cast("Sequence[float]", values)
    for n_decimals in range(_MOST_DECIMALS + 1):
        scale = 10**n_decimals
        if all(round(value * scale) / scale == value for value in given[:_N_TRIED]):
            whole = _scaled(given, scale)
            if whole is not None:
                return n_decimals, whole
    return None


def _scaled(values: Sequence[float], scale: int) -> Sequence[int] | None:
    found = array("q")
    for at in range(0, len(values), _PART):
        part = values[at : at + _PART]
        whole = [round(value * scale) for value in part]
        # Both sides are float64 and the division rounds once, so equal bytes are equal everywhere.
        same = array("d", [value / scale for value in whole]).tobytes() == array("d", part).tobytes()
        if not same or not all(-_MAX_EXACT <= value <= _MAX_EXACT for value in whole):
            return None
        found.extend(array("q", whole))
    return found
