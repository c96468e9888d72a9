"""The options that say which files are fetched: `--what`, and those that name ranks."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster_run.command_line import named_path
from cluster_run.errors import UsageError
from cluster_run.ids import SUSPECTS, parse_number_ranges

ANALYSIS, COLUMNS, FULL = "analysis", "columns", "full"
#: Of captures only what the analysis needs.
NARROW = (ANALYSIS, COLUMNS)
KINDS = (*NARROW, FULL)
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


@dataclass(frozen=True)
class RankArguments:
    """What a command line says of ranks. With `suspects` they are those that the findings of `like` name,
    which lie in its output folder, unless `findings` is another file; that one needs no `like`.
    """

    like: Path | None
    findings: Path | None
    ranks: frozenset[int] | None
    suspects: bool
    whole_ranks: frozenset[int]


def add_rank_options(group: argparse._ArgumentGroup) -> None:
    """Add them to a parser's group."""
    group.add_argument(
        "--like",
        type=named_path,
        metavar="RUN",
        help="collect the same captures again from the hosts of this run directory, reached in the same way; "
        "into it, unless --output names another",
    )
    group.add_argument(
        "--ranks",
        metavar="RANKS",
        help="only these ranks: 0-7,13, or 'suspects': those that the findings of --like RUN name, "
        "and peers to compare with",
    )
    group.add_argument(
        "--findings",
        type=named_path,
        metavar="FILE",
        help="findings.json of --ranks suspects, where it is not in the run directory's own output folder",
    )
    group.add_argument(
        "--keep-raw",
        metavar="RANKS",
        help="fetch all files of these ranks, whole; of the others only columns, or what the analysis reads",
    )


def rank_arguments(
    parser: argparse.ArgumentParser, given: argparse.Namespace, what: tuple[str, ...]
) -> RankArguments:
    """Return what was given; ends the program with code 2 when it cannot be meant."""
    suspects = given.ranks == SUSPECTS
    if suspects and given.like is None and given.findings is None:
        parser.error(
            "--ranks suspects needs findings: --like RUN names the run directory that has them, "
            "or --findings FILE"
        )
    if given.findings is not None and not suspects:
        parser.error("--findings goes with --ranks suspects")
    if given.keep_raw == SUSPECTS:
        parser.error(
            "--keep-raw suspects: they are not known yet; call cluster-analyse RUN, and then "
            "cluster-collect --like RUN --ranks suspects --what full"
        )
    if given.keep_raw is not None and not set(NARROW) & set(what):
        parser.error("--keep-raw goes with --what columns or analysis: anything else is whole already")
    ranks, whole_ranks = (
        None if text is None or text == SUSPECTS else _numbers(parser, option, text)
        for option, text in (("--ranks", given.ranks), ("--keep-raw", given.keep_raw))
    )
    return RankArguments(given.like, given.findings, ranks, suspects, whole_ranks or frozenset())


def _numbers(parser: argparse.ArgumentParser, option: str, text: str) -> frozenset[int]:
    try:
        return parse_number_ranges(text)
    except UsageError as error:
        parser.error(f"{option}: {error}")
