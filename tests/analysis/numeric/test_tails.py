import math

import numpy as np
import pytest

from cluster_analysis.numeric.tails import binomial_tail, student_tail


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
