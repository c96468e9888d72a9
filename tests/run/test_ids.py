"""Number ranges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_run.errors import UsageError
from cluster_run.ids import format_number_ranges, parse_number_ranges


@given(st.sets(st.integers(0, 200), min_size=1))
def test_formatting_and_parsing_are_inverse(numbers: set[int]) -> None:
    assert parse_number_ranges(format_number_ranges(numbers)) == numbers


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([3], "3"), ([3, 4], "3-4"), ([5, 0, 1, 2], "0-2,5"), ([1, 3, 5], "1,3,5"), ([7, 7], "7")],
)
def test_the_form_is_the_shortest(numbers: list[int], text: str) -> None:
    assert format_number_ranges(numbers) == text


def test_blanks_and_overlaps_are_allowed() -> None:
    assert parse_number_ranges(" 0-2, 2-3 ,9") == {0, 1, 2, 3, 9}


@pytest.mark.parametrize(
    "text",
    ["", ",", "a", "1-", "-1", "3-1", "1-2-3", "1.5", "0-99999999999", "9" * 5000, "0-" + "9" * 5000, "1 2"],
)
def test_what_is_no_list_of_numbers_is_refused_with_advice(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_number_ranges(text)
    assert caught.value.advice
