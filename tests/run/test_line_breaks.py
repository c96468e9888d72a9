"""Lines of a terminal in both languages: what is kept together, and that nothing is lost."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cluster_run.said.line_breaks import kept_together, line_breaks


def broken(text: str, width: int) -> list[str]:
    starts = [0, *line_breaks(text, width), len(text)]
    return [text[start:end] for start, end in pairwise(starts)]


def cells(line: str) -> int:
    return sum(2 if "\u2e80" <= one <= "\uffef" else 1 for one in line)


@given(st.text("ab 1 5ms%\N{NO-BREAK SPACE}，。（）卡慢", max_size=60), st.integers(4, 30))
def test_lines_hold_all_of_the_text_and_are_no_wider_than_the_terminal(text: str, width: int) -> None:
    lines = broken(text, width)
    assert "".join(lines) == text
    assert all(cells(line.rstrip()) <= width for line in lines)


def test_a_number_keeps_its_unit_and_a_word_stays_whole() -> None:
    text = kept_together("lost 12.3 ms of 755 ms")
    assert broken(text, 10) == ["lost ", "12.3\N{NO-BREAK SPACE}ms of ", "755\N{NO-BREAK SPACE}ms"]


def test_a_line_of_chinese_ends_anywhere_but_before_a_closing_or_after_an_opening_mark() -> None:
    assert broken("慢卡五（主机一）。", 8) == ["慢卡五", "（主机", "一）。"]
