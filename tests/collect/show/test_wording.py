"""Numbers, tables and texts of strangers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_collect.show.summary import Trouble, fold_troubles
from cluster_collect.wording import count, format_bytes, format_seconds, printable
from cluster_run.said.tables import display_width, format_table


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (9_800, "9.8 kB"),
        (99_949, "99.9 kB"),
        (99_950, "100 kB"),
        (338_000_000, "338 MB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (1_500_000_000_000, "1.5 TB"),
        (5e18, "5000.0 PB"),
    ],
)
def test_sizes_have_three_digits(n_bytes: float, text: str) -> None:
    assert format_bytes(n_bytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (99, "99 s"),
        (100, "2 min"),
        (3599, "1 h 00 min"),
        (7500, "2 h 05 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


def test_counts_know_their_plural() -> None:
    assert (count(0, "file"), count(1, "file"), count(1203, "file")) == ("0 files", "1 file", "1,203 files")


@given(st.text())
def test_no_text_of_a_host_reaches_the_terminal_as_a_command(text: str) -> None:
    assert printable(text).isprintable()


def test_harmless_text_stays_as_it_is() -> None:
    assert printable("größe 尺寸 a-b_c.csv") == "größe 尺寸 a-b_c.csv"
    assert printable("a\x1b[2Jb\nc\udcff") == "a\\x1b[2Jb\\nc\\udcff"


def test_columns_line_up_numbers_to_the_right_and_lines_end_without_blanks() -> None:
    text = format_table(("name", "n", "note"), [("a", "1", ""), ("尺寸", "100", "x")], numbers={1})
    assert text == "name    n  note\na       1\n尺寸  100  x\n"


def test_empty_columns_can_be_left_out() -> None:
    assert format_table(("a", "b"), [("1", "")], empty_columns=False) == "a\n1\n"
    assert format_table(("a", "b"), [], empty_columns=False) == "a  b\n"


@given(st.lists(st.tuples(st.text("ab尺é", max_size=5), st.text("12", max_size=5)), max_size=5))
def test_every_cell_of_a_column_begins_or_ends_in_one_place(rows: list[tuple[str, str]]) -> None:
    lines = format_table(("head", "n"), [(*row,) for row in rows], numbers={1}).splitlines()
    with_numbers = [line for line, row in zip(lines[1:], rows, strict=True) if row[1]]
    assert len({display_width(line) for line in [lines[0], *with_numbers]}) == 1


def test_hosts_with_the_same_trouble_share_a_line() -> None:
    troubles = [
        Trouble(
            (f"n{number}",),
            f"no answer from 10.0.0.{number}",
            f"ping {number}",
            f"10.0.0.{number}",
        )
        for number in (1, 2, 11)
    ]
    (shared,) = fold_troubles([*troubles[:2], troubles[2]])
    assert shared.names == ("n1", "n2", "n11")
    assert shared.reason == "no answer from 10.0.0.1"
    assert shared.advice == "ping 1"


def test_different_troubles_stay_apart_in_order() -> None:
    troubles = [Trouble(("b",), "down", ""), Trouble(("a",), "key", ""), Trouble(("c",), "down", "")]
    assert [(one.names, one.reason) for one in fold_troubles(troubles)] == [
        (("b", "c"), "down"),
        (("a",), "key"),
    ]


def test_details_keep_troubles_apart() -> None:
    troubles = [
        Trouble(("a",), "2 files", "", details=("x", "y")),
        Trouble(("b",), "2 files", "", details=("z",)),
    ]
    assert len(fold_troubles(troubles)) == 2
