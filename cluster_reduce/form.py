"""The form of a columns file: what a large file of a capture holds, as far as the analysis reads it.

`SCHEMA` and a line end; the length of the head in bytes, as a line; the head: JSON, compressed by zlib, with
the kind of the file and each column's name, form and length; then the columns, each compressed by zlib. Whole
numbers are written byte by byte: all lowest bytes, then all second ones; with a sign they are folded first
(0, -1, 1, -2 → 0, 1, 2, 3).

| form | holds |
| --- | --- |
| ints | whole numbers of 64 bits; with `is_delta` each is the difference from the one before |
| decimals | whole numbers, to be divided by 10 to the power `n_decimals`: exactly the float64 of the file |
| doubles | float64, 8 planes; NaN for what is missing |
| bytes | UTF-8 of all texts, one behind the other |

Decimals with `base` are what is left without the sum of those columns, at the places that the column `at`
names.
"""

from __future__ import annotations

import json
import math
import re
import sys
import zlib
from array import array
from collections.abc import Sequence

SCHEMA = "cluster-columns/1"
#: What a file's name ends in when its columns lie in its place.
SUFFIX = ".columns"

#: What the reader says first where it works; otherwise it begins with UNFIT, and says why.
READY, UNFIT = b"columns 1\n", b"unfit "

_MOST_DECIMALS = 9
_N_TRIED = 64
_BYTES = 8
_LEVEL = 9
_MIN_INT, _MAX_INT, _MASK = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1
#: A number in a name: one that is spelled in one way only, and that fits 64 bits.
_NUMBER = re.compile(r"(?<![0-9])(0|[1-9][0-9]{0,17})(?![0-9])")
_MOST_NUMBERS = 8
#: Whole numbers up to this are float64 exactly.
_MAX_EXACT = 1 << 53


class UnfitError(Exception):
    """The file holds something that this reader does not know: it travels as it is."""


class Writer:
    """Takes columns and gives the content of the file."""

    def __init__(self, kind: str, source_bytes: int) -> None:
        self._head: dict[str, object] = {"kind": kind, "source_bytes": source_bytes}
        self._columns: list[dict[str, object]] = []
        self._parts: list[bytes] = []
        self._ints: dict[str, Sequence[int]] = {}
        self._decimals: dict[str, tuple[int, list[int]]] = {}

    def ints(self, name: str, values: Sequence[int]) -> None:
        """Add whole numbers."""
        self._ints[name] = values
        content, about = _smallest(values)
        self._add(name, content, dict(about, form="ints"))

    def floats(
        self,
        name: str,
        values: Sequence[float | None],
        bases: Sequence[tuple[str, ...]] = (),
        at: str = "",
    ) -> None:
        """Add numbers, None for a missing one; one of `bases` names columns whose sum may be near to them."""
        decimals = _as_decimals(values)
        if decimals is None:
            doubles = array("d", [math.nan if value is None else value for value in values])
            planes = _planes(_little(array("Q", doubles.tobytes())), _BYTES)
            self._add(name, zlib.compress(planes, _LEVEL), {"form": "doubles", "n": len(values)})
            return
        self._decimals[name] = decimals
        content, about = _smallest(decimals[1])
        about = dict(about, form="decimals", n_decimals=decimals[0])
        for base in bases:
            rest = self._rest(decimals, base, at)
            less, about_less = (content, about) if rest is None else _smallest(rest[1])
            if rest is not None and len(less) < len(content):
                content = less
                about = dict(about_less, form="decimals", n_decimals=rest[0], base=base, at=at)
        self._add(name, content, about)

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
        self._add(name, zlib.compress(joined, _LEVEL), {"form": "bytes", "n": len(joined)})

    def names(self, name: str, values: Sequence[str]) -> None:
        """Add texts that differ in a few numbers: what they share as texts, the numbers as columns."""
        if any("\0" in value for value in values):
            raise UnfitError("a name with a NUL in it")
        split = [_NUMBER.split(value) for value in values]
        split = [
            parts if len(parts) <= 2 * _MOST_NUMBERS + 1 else [value] for value, parts in zip(values, split)
        ]
        self.texts(name, ["\0".join(parts[::2]) for parts in split])
        for at in range(max(map(len, split), default=1) // 2):
            found = [int(parts[2 * at + 1]) for parts in split if len(parts) > 2 * at + 1]
            self.ints(f"{name}.{at}", found)

    def content(self, **said: object) -> bytes:
        """Return the file; `said` is added to its head."""
        head = json.dumps(dict(self._head, columns=self._columns, **said), separators=(",", ":"))
        packed = zlib.compress(head.encode(), _LEVEL)
        return b"%s\n%d\n" % (SCHEMA.encode(), len(packed)) + packed + b"".join(self._parts)

    def _add(self, name: str, content: bytes, about: dict[str, object]) -> None:
        self._columns.append(dict(about, name=name, n_bytes=len(content)))
        self._parts.append(content)

    def _rest(
        self, decimals: tuple[int, list[int]], base: Sequence[str], at: str
    ) -> tuple[int, list[int]] | None:
        """Return decimals less the sum of the columns in `base`; None where one of these is none itself."""
        if not all(name in self._decimals for name in base):
            return None
        columns = [decimals, *(self._decimals[name] for name in base)]
        most = max(n_decimals for n_decimals, _ in columns)
        own, *others = [[value * 10 ** (most - n) for value in whole] for n, whole in columns]
        known = [sum(parts) for parts in zip(*others)]
        if at:
            known = [known[place] for place in self._ints[at]]
        if any(value > _MAX_EXACT for values in (own, *others) for value in values):
            return None
        return most, [value - guess for value, guess in zip(own, known)]


def _smallest(values: Sequence[int]) -> tuple[bytes, dict[str, object]]:
    """Return whole numbers compressed, as they are or as differences, and how."""
    try:
        plain = _compressed(values)
        steps = [after - before for before, after in zip([0, *values[:-1]], values)]
        delta = _compressed(steps) if steps and min(steps) >= _MIN_INT and max(steps) <= _MAX_INT else plain
    except OverflowError:
        raise UnfitError("a whole number of more than 64 bits") from None
    is_delta = len(delta[0]) < len(plain[0])
    content, n_planes = delta if is_delta else plain
    return content, {"n": len(values), "n_planes": n_planes, "is_delta": is_delta}


def _compressed(values: Sequence[int]) -> tuple[bytes, int]:
    folded = array("Q", [((value << 1) ^ (value >> 63)) & _MASK for value in array("q", values)])
    n_planes = max(1, (max(folded).bit_length() + 7) // 8) if folded else 1
    return zlib.compress(_planes(_little(folded), n_planes), _LEVEL), n_planes


def _planes(values: array[int], n_planes: int) -> bytes:
    content = values.tobytes()
    return b"".join(content[place::_BYTES] for place in range(n_planes))


def _little(values: array[int]) -> array[int]:
    if sys.byteorder == "big":
        values.byteswap()
    return values


def _as_decimals(values: Sequence[float | None]) -> tuple[int, list[int]] | None:
    """Return how many decimals numbers have, and the whole ones; None where that would not be exact."""
    given = [value for value in values if value is not None and -_MAX_EXACT <= value <= _MAX_EXACT]
    if len(given) < len(values):
        return None
    for n_decimals in range(_MOST_DECIMALS + 1):
        scale = 10**n_decimals
        if all(round(value * scale) / scale == value for value in given[:_N_TRIED]):
            whole = [round(value * scale) for value in given]
            # Both sides are float64 and the division rounds once, so equal bytes are equal everywhere.
            same = array("d", [value / scale for value in whole]).tobytes() == array("d", given).tobytes()
            if same and all(-_MAX_EXACT <= value <= _MAX_EXACT for value in whole):
                return n_decimals, whole
    return None
