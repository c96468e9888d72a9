"""Whole numbers → planes of bytes, and planes → as few bytes as the standard library makes of them.

A column is written byte by byte: all lowest bytes, then all second ones. Times differ in their lowest bytes
as noise does, and hardly in the others. With a sign numbers are folded first (0, -1, 1, -2 → 0, 1, 2, 3).

| said of a column | means |
| --- | --- |
| n, n_planes | how many numbers, of how many bytes each |
| is_delta | each number is the difference from the one before |
| begin | is added to what is written (and summed) |

All planes of a file are one stream: short columns have much in common, and whoever reads it unpacks once. It
is raw deflate, of `zlib`: every Python has it.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Sequence

N_BYTES = 8
#: Window of a stream without head and checksum; the file has one for all.
RAW_WINDOW = -15
_LEVEL, _MEMORY = 9, 9
_MASK = (1 << 64) - 1
#: Of longer columns the first rows say which way is the shortest.
_MANY, _N_TRIED = 1 << 16, 1 << 13
#: Numbers handled at once: single ones take five times the memory of an array.
_PART = 1 << 14


class Packed:
    """A column as planes.

    Attributes:
        planes: the bytes of each.
        about: what has to be said of the column.
        cost_bytes: about what it takes.
    """

    def __init__(self, planes: list[bytes], about: dict[str, object]) -> None:
        self.planes = planes
        self.about = about
        self.cost_bytes = sum(len(deflated(plane)) for plane in planes)


def packed(values: Sequence[int]) -> Packed:
    """Return numbers of 64 bits as planes.

    Raises:
        OverflowError: a number of more bits.
    """
    ways = [_numbers, _differences]
    if len(values) > _MANY:
        tried = values[:_N_TRIED]
        ways = [min(ways, key=lambda way: (way(tried) or _numbers(tried)).cost_bytes)]
    found = [one for way in ways for one in [way(values)] if one is not None]
    return min(found or [_numbers(values)], key=lambda one: one.cost_bytes)


def packed_doubles(values: Sequence[float]) -> Packed:
    """Return float64 as planes."""
    return _planes(array("Q", array("d", values).tobytes()), N_BYTES)


def deflated(content: bytes) -> bytes:
    """Return bytes as a stream."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, RAW_WINDOW, _MEMORY)
    return packer.compress(content) + packer.flush()


def _numbers(values: Sequence[int]) -> Packed:
    folded = _folded(values)
    return _planes(folded, _n_planes(folded))


def _differences(values: Sequence[int]) -> Packed | None:
    """Do the same with each number less the one before; None where one has more than 64 bits."""
    try:
        folded = _folded(_steps(values))
    except OverflowError:
        return None
    n_planes, begin = _n_planes(folded), 0
    if _n_planes(folded[1:]) < n_planes:
        # A clock shows many digits, and advances by few.
        begin, folded[0] = values[0], 0
        n_planes = _n_planes(folded)
    found = _planes(folded, n_planes)
    found.about.update(is_delta=True)
    if begin:
        found.about.update(begin=begin)
    return found


def _steps(values: Sequence[int]) -> array[int]:
    """Return the first number, and each other one less the one before."""
    last = 0
    found = array("q")
    for at in range(0, len(values), _PART):
        part = values[at : at + _PART]
        found.extend(array("q", [after - before for before, after in zip([last, *part[:-1]], part)]))
        last = part[-1]
    return found


def _folded(values: Sequence[int]) -> array[int]:
    found = array("Q")
    for at in range(0, len(values), _PART):
        part = array("q", values[at : at + _PART])
        found.extend(array("Q", [((value << 1) ^ (value >> 63)) & _MASK for value in part]))
    return found


def _n_planes(folded: array[int]) -> int:
    return max(1, (max(folded).bit_length() + 7) // 8) if folded else 1


def _planes(values: array[int], n_planes: int) -> Packed:
    if sys.byteorder == "big":
        values.byteswap()
    content = values.tobytes()
    planes = [content[place::N_BYTES] for place in range(n_planes)]
    return Packed(planes, {"n": len(values), "n_planes": n_planes})
