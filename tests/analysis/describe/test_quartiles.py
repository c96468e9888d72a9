"""Five numbers of a group of values."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_analysis.describe.quartiles import QUARTILES, quartiles


@settings(deadline=None)
@given(st.lists(st.floats(0.0, 1e9), min_size=1, max_size=50), st.integers(0, 3))
def test_quartiles_are_numpys_to_the_last_digit(values: list[float], n_missing: int) -> None:
    found = quartiles(np.array([*values, *[math.nan] * n_missing]))
    assert list(found.values()) == np.quantile(values, list(QUARTILES.values())).tolist()


def test_quartiles_of_nothing_are_not_known() -> None:
    assert set(quartiles(np.array([math.nan])).values()) == {None}
