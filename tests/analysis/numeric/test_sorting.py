"""Orders of small integers, and searches in many slices at once, are what NumPy's own functions give."""

from __future__ import annotations

import numpy as np

from cluster_analysis.numeric.sorting import (
    distinct,
    first_positions,
    ranges,
    searchsorted_within,
    stable_order,
)


def test_small_integers_are_ordered_as_a_stable_sort_orders_them() -> None:
    rng = np.random.default_rng(1)
    for largest in (3, 70_000, 2**33, 2**60):
        codes = rng.integers(0, largest, 2000)
        assert np.array_equal(stable_order(codes), np.argsort(codes, kind="stable"))


def test_distinct_values_are_found_whether_they_lie_close_together_or_far_apart_or_in_order() -> None:
    rng = np.random.default_rng(3)
    for values in (
        rng.integers(-5, 60, 40),
        rng.integers(-(2**40), 2**40, 40),
        np.arange(9) // 2,
        np.empty(0, int),
    ):
        found, inverse = distinct(values)
        expected, positions = np.unique(values, return_inverse=True)
        assert found.tolist() == expected.tolist()
        assert inverse.tolist() == positions.tolist()


def test_the_first_place_of_each_code_is_found() -> None:
    assert first_positions(np.array([1, 0, 1, 2, 0])).tolist() == [1, 0, 3]


def test_ranges_are_laid_one_after_the_other() -> None:
    assert ranges(np.array([5, 1, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]
    assert ranges(np.empty(0, int), np.empty(0, int)).tolist() == []


def test_values_are_found_in_slices_as_in_arrays_of_their_own() -> None:
    rng = np.random.default_rng(2)
    lengths = np.array([0, 1, 7, 64, 0, 3])
    bounds = np.r_[0, np.cumsum(lengths)]
    values = np.concatenate([np.sort(rng.integers(0, 9, one)).astype(float) for one in lengths])
    own = rng.integers(0, len(lengths), 500)
    wanted = rng.integers(-1, 10, 500).astype(float)
    for side in ("left", "right"):
        found = searchsorted_within(values, bounds[own], bounds[own + 1], wanted, side=side)  # type: ignore[arg-type]
        alone = [
            bounds[one] + np.searchsorted(values[bounds[one] : bounds[one + 1]], value, side=side)  # type: ignore[arg-type]
            for one, value in zip(own, wanted, strict=True)
        ]
        assert found.tolist() == alone
