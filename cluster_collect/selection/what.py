"""What `--what` names: one of three kinds of files, globs that narrow it, or globs alone."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence

ANALYSIS, COLUMNS, FULL = "analysis", "columns", "full"
KINDS = (ANALYSIS, COLUMNS, FULL)
#: A word as near to a kind as this is that kind, mistyped: `colums`, `analyse`.
_NEAR = 0.75


def what_arguments(parser: argparse.ArgumentParser, texts: Sequence[str]) -> tuple[str, ...]:
    """Return what was given, part by part; ends the program with code 2 when it cannot be meant."""
    what = tuple(part for text in texts for part in text.split(",") if part)
    if len(set(KINDS) & set(what)) > 1 or not what:
        parser.error(
            "--what takes 'analysis', 'columns' or 'full', globs, or one of them and globs that narrow it"
        )
    for word in what:
        if meant := _mistyped(word):
            glob = f"[{word[0]}]{word[1:]}"
            parser.error(f"--what {word}: did you mean {meant}? Files of that name are taken by {glob!r}")
    return what


def _mistyped(word: str) -> str:
    """Return the kind that a word nearly is; nothing for kinds themselves, globs and paths."""
    if word in KINDS or not word.isalpha():
        return ""
    return next(iter(difflib.get_close_matches(word.lower(), KINDS, n=1, cutoff=_NEAR)), "")
