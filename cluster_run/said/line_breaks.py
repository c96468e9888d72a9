"""Where a line of a terminal may end: not before a unit, nor before a closing mark of Chinese."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

_SPACE = "\N{NO-BREAK SPACE}"
#: A number, a blank, and its unit or the word of Chinese that counts: a line may not end between them.
_UNIT = re.compile(r"(?<=[0-9]) (?=(?:[µm]?s|[kKMG]i?B|[GM]B/s|GiB|MHz|%|×)(?![A-Za-z])|[张台步个次项条])")
#: Words stay whole, and two numbers with ～ between them; a line of Chinese may end anywhere else, as each
#: letter is two cells wide.
_WIDE = "\u2e80-\uffef"
_UNIT_OF_LINE = rf"(?:(?:[^{_WIDE}\s]|～)+|[{_WIDE}])"
#: Compiled where a line is broken first: that takes a twelfth of the start of a command.
_PIECE = (
    rf"[（「《“]*{_UNIT_OF_LINE}(?:{_SPACE}{_UNIT_OF_LINE})*[，。；：？！）、」》”]*|[^\S{_SPACE}]|{_SPACE}"
)


def kept_together(text: str) -> str:
    """Put a no-break space between each number and its unit."""
    return _UNIT.sub(_SPACE, text)


def line_breaks(text: str, width: int) -> list[int]:
    """Return the offsets at which lines of `width` cells begin, but for the first; `text` has no line feeds.

    What is longer than a line by itself is cut.
    """
    breaks: list[int] = []
    used = 0
    for piece in re.finditer(_PIECE, text):
        cells = sum(map(_cells, piece[0]))
        if used and used + cells > width and piece[0].strip():
            breaks.append(piece.start())
            used = 0
        if cells <= width:
            used += cells
            continue
        for at, letter in enumerate(piece[0], piece.start()):
            if used + _cells(letter) > width:
                breaks.append(at)
                used = 0
            used += _cells(letter)
    return breaks


def _cells(letter: str) -> int:
    return 2 if "\u2e80" <= letter <= "\uffef" else 1


class Wide(argparse.RawDescriptionHelpFormatter):
    """Breaks lines of Chinese, which has no blanks and is twice as wide."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return list(_wrapped(" ".join(text.split()), width))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = (_wrapped(line, width) if line[:1].strip() else iter((line,)) for line in text.split("\n"))
        return "\n".join(indent + line for broken in lines for line in broken)


def _wrapped(text: str, width: int) -> Iterator[str]:
    starts = [0, *line_breaks(text, width)]
    for start, end in zip(starts, [*starts[1:], None], strict=True):
        yield text[start:end].strip()
