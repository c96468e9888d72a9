"""Printing where a terminal or file knows few characters: signs become plain ones, and nothing is an error.

A log of Slurm, a Windows terminal or `PYTHONIOENCODING=ascii` cannot hold `▲` or `→`. A result that was
found must be printed all the same.
"""

from __future__ import annotations

import codecs
import io
import sys
import unicodedata

_NAME = "plain-signs"
_PLAIN = {
    "✓": "OK",
    "▲": "!",
    "▼": "v",
    "■": "#",
    "●": "*",
    "·": "|",
    "•": "*",
    "→": "->",
    "←": "<-",
    "↔": "<->",
    "↳": ">",
    "×": "x",
    "µ": "u",
    "μ": "u",
    "±": "+-",
    "−": "-",
    "–": "-",
    "—": "-",
    "…": "...",
    "≥": ">=",
    "≤": "<=",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "─": "-",
    "━": "-",
    "│": "|",
    "╸": "-",
    "╺": "-",
    "，": ", ",
    "：": ": ",
    "；": "; ",
    "。": ". ",
    "（": " (",
    "）": ") ",
    "、": ", ",
}


def print_plainly_where_needed() -> None:
    """Let stdout and stderr write what their encoding lacks as plain signs, instead of failing."""
    codecs.register_error(_NAME, _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_NAME)


def plain_signs(text: str) -> str:
    """Return `text` in ASCII; a character that has no plain form is written as its number, `\\u4e2d`."""
    return "".join(map(_plain_character, text))


def _plain_character(character: str) -> str:
    if character in _PLAIN:
        return _PLAIN[character]
    bare = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode("ascii")
    return bare or character.encode("ascii", "backslashreplace").decode("ascii")


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return plain_signs(error.object[error.start : error.end]), error.end
