"""Orders of small integers, and searches in many slices at once, are what NumPy's own functions give."""

from __future__ import annotations

import numpy as np

from cluster_analysis.sorting import renumbered, searchsorted_within, stable_order


def test_small_integers_are_ordered_as_a_stable_sort_orders_them() -> None:
    rng = np.random.default_rng(1)
    for largest in (3, 70_000, 2**33, 2**60):
        codes = rng.integers(0, largest, 2000)
        assert np.array_equal(stable_order(codes), np.argsort(codes, kind="stable"))


def test_codes_are_numbered_in_their_order() -> None:
    codes = np.array([7, 0, 7, 300, 2])
    assert renumbered(codes).tolist() == np.unique(codes, return_inverse=True)[1].tolist()
    assert renumbered(np.empty(0, np.int32)).tolist() == []


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
