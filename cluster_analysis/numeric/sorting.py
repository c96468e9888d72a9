"""Number, count and find small integers: most keys here are ranks, groups or operators."""

from __future__ import annotations

from typing import Literal, TypeVar

import numpy as np

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray

_Rows = TypeVar("_Rows", FloatArray, IntArray)

#: Above the half-octaves of all sizes that a 64-bit number holds.
_UNKNOWN_SIZE = 200


def half_octaves(sizes: FloatArray) -> IntArray:
    """Number sizes by half-octaves: within one of them the time of a transfer is proportional to its size.

    Unknown sizes (NaN) have a number of their own.
    """
    octaves = np.rint(2 * np.log2(np.maximum(sizes, 1.0)))
    return np.asarray(np.nan_to_num(octaves, nan=_UNKNOWN_SIZE), np.int32)


def distinct(values: IntArray) -> tuple[IntArray, IntArray]:
    """Return the sorted distinct values and each one's position among them."""
    found, inverse = np.unique(values, return_inverse=True)
    return found, inverse.astype(np.int32)


def combined(*parts: IntArray) -> tuple[int, IntArray]:
    """Number the distinct tuples of integers: how many there are, and each row's number."""
    if not len(parts[0]):
        return 0, np.empty(0, np.int32)
    code = np.zeros(len(parts[0]), np.int64)
    for part in parts:
        low = int(part.min())
        code = code * (int(part.max()) - low + 1) + (part - low)
    found, inverse = distinct(code)
    return len(found), inverse


def begins(ordered: IntArray) -> BoolArray:
    """Mark where a run of equal values begins."""
    first = np.ones(len(ordered), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return first


def places_in_runs(is_first: BoolArray) -> IntArray:
    """Return the place of each entry in its run (N,), from 0 on where a run begins."""
    at = np.arange(len(is_first))
    return at - np.maximum.accumulate(np.where(is_first, at, 0)) if len(at) else at


def first_positions(codes: IntArray) -> IntArray:
    """Return where each code from 0 comes first; every one is there."""
    first = np.empty(int(codes.max(initial=-1)) + 1, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first


def ranges(starts: IntArray, lengths: IntArray) -> IntArray:
    """Concatenate arange(start, start + length) of each pair."""
    behind = np.cumsum(lengths)
    if not len(behind) or not behind[-1]:
        return np.empty(0, np.intp)
    offsets = np.repeat(starts - (behind - lengths), lengths)
    offsets += np.arange(len(offsets))
    return offsets


def rows_at(wanted: IntArray, keys: IntArray, rows: _Rows, missing: float) -> _Rows:
    """Return the rows (K, …) of the wanted keys (W,), `missing` where there is none; `keys` are sorted."""
    is_known = np.isin(wanted, keys)
    found = np.full((len(wanted), *rows.shape[1:]), missing, rows.dtype)
    found[is_known] = rows[np.searchsorted(keys, wanted[is_known])]
    return found


def searchsorted_within(
    values: FloatArray, begin: IntArray, end: IntArray, wanted: FloatArray, *, side: Literal["left", "right"]
) -> IntArray:
    """Do what `np.searchsorted` does, for each of `wanted` (N,) in a sorted slice of its own.

    Args:
        values: all slices (M,), M > 0.
        begin: where each slice begins in `values` (N,).
        end: where it ends (N,).
        wanted: what to look for (N,).
        side: before or behind equal values.

    Returns:
        Positions in `values` (N,), from `begin` to `end`.
    """
    is_before = np.less_equal if side == "right" else np.less
    low, high = begin.copy(), end.copy()
    is_open = low < high
    while is_open.any():
        middle = (low + high) // 2
        goes_on = is_before(values[np.minimum(middle, len(values) - 1)], wanted)
        low = np.where(is_open & goes_on, middle + 1, low)
        high = np.where(is_open & ~goes_on, middle, high)
        is_open = low < high
    return low


def n_distinct(groups: IntArray, values: IntArray, n_groups: int) -> IntArray:
    """Return how many distinct values each group 0…G-1 has (G,), of a group and a value each (N,)."""
    first = first_positions(combined(groups, values)[1])
    return np.bincount(groups[first], minlength=n_groups)
