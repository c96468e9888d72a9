"""Orders of small integers, and searches in many slices at once, are what NumPy's own functions give."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.numeric.grouped import medians_of
from cluster_analysis.numeric.sorting import (
    searchsorted_within,
)
from cluster_analysis.numeric.stats import leave_one_out, median, medians_by, others_median, sigma, theil_sen
from cluster_analysis.numeric.tails import binomial_tail, over_looks, student_tail

numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)


@given(numbers, st.integers(0, 5))
def test_missing_values_count_for_nothing(values: list[float], n_missing: int) -> None:
    with_holes = np.array([*values, *[math.nan] * n_missing])
    assert float(median(with_holes)) == pytest.approx(float(np.median(values)))


@given(
    st.lists(st.lists(st.one_of(st.just(math.nan), st.floats(-1e6, 1e6)), min_size=4, max_size=4), min_size=1)
)
def test_a_median_along_an_axis_is_that_of_each_slice_alone(rows: list[list[float]]) -> None:
    values = np.array(rows)
    for axis, slices in ((0, values.T), (1, values)):
        assert np.array_equal(median(values, axis), [float(median(one)) for one in slices], equal_nan=True)


@given(st.lists(st.one_of(st.floats(-1e6, 1e6), st.sampled_from([0.0, 1.0, math.nan])), max_size=80))
def test_medians_of_others_are_the_centres_without_each_one(values: list[float]) -> None:
    assert np.array_equal(others_median(np.array(values)), leave_one_out(np.array(values))[0], equal_nan=True)


def test_nothing_measured_gives_nan_and_no_warning() -> None:
    assert np.isnan(median(np.full((2, 3), np.nan), 0)).all()


def test_one_outlier_moves_neither_the_centre_nor_the_scale_it_is_judged_by() -> None:
    values = np.array([1.0, 1.1, 0.9, 1.05, 0.95, 9.0])
    centre, scale = leave_one_out(values)
    assert centre[-1] == pytest.approx(1.0)
    assert scale[-1] == pytest.approx(float(sigma(values[:-1])))
    assert scale[-1] < 0.2


def test_one_wild_step_does_not_make_a_slope() -> None:
    steady = np.array([[1.0, 1.0, 1.0, 90.0, 1.0, 1.0, 1.0, 1.0]])
    rising = np.arange(8.0)[None, :] * 0.5
    assert float(theil_sen(steady)[0]) == 0.0
    assert float(theil_sen(rising)[0]) == pytest.approx(0.5)


def test_the_slope_of_thousands_of_steps_is_that_of_the_medians_of_stretches() -> None:
    steps = np.arange(3076.0)
    noise = np.random.default_rng(1).normal(0.0, 5.0, 3076)
    noise[::50] += 1e4
    rising = np.stack([0.02 * steps + noise, noise])
    assert theil_sen(rising) == pytest.approx([0.02, 0.0], abs=1e-3)


def test_medians_by_group_are_those_of_each_group_alone_and_pass_over_nan() -> None:
    values = np.array([[3.0, 1.0], [np.nan, 2.0], [1.0, np.nan], [9.0, 4.0], [2.0, np.nan]])
    codes = np.array([7, 7, 7, 2, 5])
    expected = [median(values[codes == one], 0) for one in (2, 5, 7)]
    assert np.array_equal(medians_by(values, codes), np.array(expected), equal_nan=True)


def test_one_large_group_among_many_small_ones_needs_no_padding() -> None:
    codes = np.r_[np.zeros(500, int), np.arange(1, 300)]
    values = np.arange(len(codes), dtype=float)
    assert medians_by(values, codes).tolist() == [249.5, *range(500, 799)]


@pytest.mark.parametrize(
    ("t", "df", "tail"),
    [(2.015048, 5, 0.05), (3.36493, 5, 0.01), (2.763769, 10, 0.01), (0.0, 7, 0.5), (math.nan, 5, 1.0)],
)
def test_student_tails_are_those_of_the_tables(t: float, df: int, tail: float) -> None:
    assert float(student_tail(np.array([t]), df)[0]) == pytest.approx(tail, rel=1e-5)


@pytest.mark.parametrize(
    ("events", "trials", "rate", "tail"),
    [
        (2, 4, 0.5, 11 / 16),
        (0, 4, 0.5, 1.0),
        (5, 4, 0.5, 0.0),
        (4, 4, 1.5, 1.0),
        (1, 100, 1e-12, 1e-10),
        (2500, 5000, 0.5, 0.505642),
        (1030, 1030, 0.9, 0.9**1030),
    ],
)
def test_binomial_tails_are_exact_for_thousands_of_trials_too(
    events: int, trials: int, rate: float, tail: float
) -> None:
    assert binomial_tail(events, trials, rate) == pytest.approx(tail, rel=1e-5)


def test_groups_without_values_have_no_median() -> None:
    found = medians_of(np.array([1.0, 3.0, 5.0]), np.array([0, 0, 1]), 3)
    assert found == pytest.approx([2.0, 5.0, np.nan], nan_ok=True)


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


@given(st.lists(st.floats(1e-12, 1.0), min_size=1, max_size=4), st.integers(0, 4))
def test_tests_that_agree_are_one_look_and_one_alone_counts_as_often_as_there_are(
    chances: list[float], n_silent: int
) -> None:
    n_looks, least = len(chances) + n_silent, min(chances)
    found = over_looks(chances, n_looks)
    assert least * (1 - 1e-9) <= found <= min(1.0, n_looks * least) * (1 + 1e-9)
    assert over_looks([least] * n_looks, n_looks) == pytest.approx(least)
    assert over_looks([1e-9], n_looks) == pytest.approx(n_looks * 1e-9, rel=1e-6)


@pytest.mark.parametrize("alike", [0.0, 0.5, 0.9, 1.0])
def test_healthy_ranks_are_accused_no_more_often_where_their_tests_depend_on_each_other(alike: float) -> None:
    """Three tests of which each has a part in common with the others, on healthy ranks: p <= 1 % in 1 %."""
    dice = np.random.default_rng(17)
    shared, own = dice.normal(size=(60_000, 1)), dice.normal(size=(60_000, 3))
    chances = student_tail(np.sqrt(alike) * shared + np.sqrt(1 - alike) * own, 1e6)
    accused = np.mean([over_looks(row, 3) <= 0.01 for row in chances.tolist()])
    assert 0.007 <= accused <= 0.0125
