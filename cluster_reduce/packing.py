"""Whole numbers → as few bytes as the standard library makes of them.

A column is written byte by byte: all lowest bytes, then all second ones. Times differ in their lowest bytes
as noise does, and hardly in the others: so each plane gets codes of its own, unless one stream is shorter.
With a sign numbers are folded first (0, -1, 1, -2 → 0, 1, 2, 3).

| said of a column | means |
| --- | --- |
| n, n_planes | how many numbers, of how many bytes each |
| cuts | the bytes of each plane, where each is a stream of its own; a plane of `n` bytes is not compressed |
| is_delta | each number is the difference from the one before |
| begin, step | the numbers were begin + step × what is written: clocks count in steps |

Streams are raw deflate, of `zlib`: every Python has it.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Sequence
from math import gcd

N_BYTES = 8
#: Window of a stream without head and checksum; the file has one for all.
RAW_WINDOW = -15
_LEVEL, _MEMORY = 9, 9
_MASK = (1 << 64) - 1
#: What a cut costs in the head.
_CUT_BYTES = 4
#: Shorter columns are on any grid.
_LEAST_ON_GRID = 64
#: Of longer columns the first rows say which way is the shortest.
_MANY, _N_TRIED = 1 << 16, 1 << 13


def packed(values: Sequence[int]) -> tuple[bytes, dict[str, object]]:
    """Return numbers of 64 bits as bytes, and what has to be said of them.

    Raises:
        OverflowError: a number of more bits.
    """
    begin, step = _grid(values)
    if step > 1:
        values = [(value - begin) // step for value in values]
    ways = [_numbers, _differences]
    if len(values) > _MANY:
        tried = values[:_N_TRIED]
        ways = [min(ways, key=lambda way: len((way(tried) or _numbers(tried))[0]))]
    found = [one for way in ways for one in [way(values)] if one is not None]
    content, about = min(found or [_numbers(values)], key=lambda one: len(one[0]))
    if step > 1:
        about.update(begin=begin, step=step)
    return content, about


def packed_doubles(values: Sequence[float]) -> tuple[bytes, dict[str, object]]:
    """Return float64 as bytes, and what has to be said of them."""
    return _shortest(array("Q", array("d", values).tobytes()), N_BYTES)


def deflated(content: bytes) -> bytes:
    """Return bytes compressed; as they are where that is no shorter."""
    return min((content, _stream(content, zlib.Z_DEFAULT_STRATEGY)), key=len)


def _grid(values: Sequence[int]) -> tuple[int, int]:
    """Return a begin and the largest step from which all these can be reached."""
    if len(values) < _LEAST_ON_GRID:
        return 0, 1
    begin, step = values[0], 0
    for value in values:
        step = gcd(step, value - begin)
        if step == 1:
            break
    return begin, max(1, step)


def _numbers(values: Sequence[int]) -> tuple[bytes, dict[str, object]]:
    folded = array("Q", [((value << 1) ^ (value >> 63)) & _MASK for value in array("q", values)])
    n_planes = max(1, (max(folded).bit_length() + 7) // 8) if folded else 1
    return _shortest(folded, n_planes)


def _differences(values: Sequence[int]) -> tuple[bytes, dict[str, object]] | None:
    """Do the same with each number less the one before; None where one has more than 64 bits."""
    try:
        content, about = _numbers([after - before for before, after in zip([0, *values[:-1]], values)])
    except OverflowError:
        return None
    return content, dict(about, is_delta=True)


def _shortest(values: array[int], n_planes: int) -> tuple[bytes, dict[str, object]]:
    if sys.byteorder == "big":
        values.byteswap()
    content = values.tobytes()
    planes = [content[place::N_BYTES] for place in range(n_planes)]
    about: dict[str, object] = {"n": len(values), "n_planes": n_planes}
    joined = deflated(b"".join(planes))
    alone = [_plane(plane) for plane in planes]
    if n_planes == 1 or len(joined) <= sum(map(len, alone)) + _CUT_BYTES * n_planes:
        return (alone[0] if n_planes == 1 else joined), about
    about["cuts"] = [len(plane) for plane in alone]
    return b"".join(alone), about


def _plane(plane: bytes) -> bytes:
    ways = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY)
    return min((plane, *(_stream(plane, way) for way in ways)), key=len)


def _stream(content: bytes, strategy: int) -> bytes:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, RAW_WINDOW, _MEMORY, strategy)
    return packer.compress(content) + packer.flush()
