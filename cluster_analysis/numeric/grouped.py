"""Means, medians and quantiles of many groups at once, by sorting: many values of small groups."""

from __future__ import annotations

import numpy as np

from cluster_analysis.numeric.arrays import FloatArray, IntArray


def medians_of(values: FloatArray, groups: IntArray, n_groups: int = 0) -> FloatArray:
    """Median of each group 0…G-1 of (N,), passing over NaN: (G,); NaN for a group without any number.

    G is `n_groups`, or one more than the largest of `groups` if that is more.
    """
    ordered, begin, count = _side_by_side(values, groups, n_groups)
    return _at(ordered, begin, count, (count - 1) // 2, count // 2)


def means_of(values: FloatArray, groups: IntArray, n_groups: int) -> FloatArray:
    """Mean of each group 0…G-1 of (N,), passing over NaN: (G,); NaN for a group without any number."""
    known = ~np.isnan(values)
    sums, counts = (np.bincount(groups[known], weights, n_groups) for weights in (values[known], None))
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def quantiles_of(values: FloatArray, groups: IntArray, quantile: float, n_groups: int = 0) -> FloatArray:
    """Quantile of each group 0…G-1 of (N,), passing over NaN: the value of the group below it (G,)."""
    ordered, begin, count = _side_by_side(values, groups, n_groups)
    place = ((count - 1) * quantile).astype(np.int64)
    return _at(ordered, begin, count, place, place)


def _side_by_side(
    values: FloatArray, groups: IntArray, n_groups: int
) -> tuple[FloatArray, IntArray, IntArray]:
    """Values by group and size, where each group begins, and how many it has; without NaN."""
    n_groups = max(n_groups, int(groups.max(initial=-1)) + 1)
    known = np.flatnonzero(np.isfinite(values))
    order = known[order_by(values[known], groups[known])]
    count = np.bincount(groups[order], minlength=n_groups)
    return values[order], np.cumsum(count) - count, count


def order_by(values: FloatArray, groups: IntArray) -> IntArray:
    """Return the order by group, and by value in each."""
    by_value = np.argsort(values)
    return by_value[np.argsort(groups[by_value], kind="stable")]


def _at(ordered: FloatArray, begin: IntArray, count: IntArray, low: IntArray, high: IntArray) -> FloatArray:
    result = np.full(len(count), np.nan)
    some = count > 0
    result[some] = (ordered[(begin + low)[some]] + ordered[(begin + high)[some]]) / 2
    return result
