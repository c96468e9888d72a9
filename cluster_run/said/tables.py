"""Tables in plain text, with columns as wide as a terminal shows them."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence

_GAP = "  "


def format_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Collection[int] = (),
    empty_columns: bool = True,
) -> str:
    """Return aligned columns, those in `numbers` to the right, each line without trailing blanks.

    Without `empty_columns`, columns that are empty in every row are left out with their heads.
    """
    columns = [
        column for column in range(len(head)) if empty_columns or any(row[column] for row in rows) or not rows
    ]
    lines = [[line[column] for column in columns] for line in (head, *rows)]
    widths = [max(map(display_width, cells)) for cells in zip(*lines, strict=True)]
    text = ""
    for line in lines:
        cells = [
            _padded(cell, width, to_the_right=column in numbers)
            for column, cell, width in zip(columns, line, widths, strict=True)
        ]
        text += _GAP.join(cells).rstrip() + "\n"
    return text


def display_width(text: str) -> int:
    """Return how many columns of a terminal a text takes; East Asian characters take two."""
    return sum(
        0 if unicodedata.combining(character) else 1 + (unicodedata.east_asian_width(character) in "WF")
        for character in text
    )


def _padded(cell: str, width: int, to_the_right: bool) -> str:
    blanks = " " * (width - display_width(cell))
    return blanks + cell if to_the_right else cell + blanks
