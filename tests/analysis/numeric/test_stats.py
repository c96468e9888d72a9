import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_analysis.numeric.stats import (
    leave_one_out,
    median,
    medians_by,
    others_median,
    sigma,
    theil_sen,
)

numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)


@settings(deadline=None)
@given(numbers)
def test_the_median_is_numpys(values: list[float]) -> None:
    assert float(median(np.array(values))) == pytest.approx(float(np.median(values)))


@settings(deadline=None)
@given(numbers, st.integers(0, 5))
def test_missing_values_count_for_nothing(values: list[float], n_missing: int) -> None:
    with_holes = np.array([*values, *[math.nan] * n_missing])
    assert float(median(with_holes)) == pytest.approx(float(np.median(values)))


@settings(deadline=None)
@given(
    st.lists(st.lists(st.one_of(st.just(math.nan), st.floats(-1e6, 1e6)), min_size=4, max_size=4), min_size=1)
)
def test_a_median_along_an_axis_is_that_of_each_slice_alone(rows: list[list[float]]) -> None:
    values = np.array(rows)
    for axis, slices in ((0, values.T), (1, values)):
        assert np.array_equal(median(values, axis), [float(median(one)) for one in slices], equal_nan=True)


@settings(deadline=None)
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
