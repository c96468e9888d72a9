"""The options that name ranks: whose data are fetched, and whose stay whole where others come as columns."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from cluster_run.command_line import named_path
from cluster_run.errors import UsageError
from cluster_run.ids import SUSPECTS, parse_number_ranges


@dataclass(frozen=True)
class RankArguments:
    """What a command line says of ranks. With `suspects` they are those that the findings of `like` name,
    which lie in its output folder, unless `findings` is another file; that one needs no `like`.
    """

    like: Path | None = None
    findings: Path | None = None
    ranks: frozenset[int] | None = None
    suspects: bool = False
    whole_ranks: frozenset[int] = frozenset()


def add_rank_options(group: argparse._ArgumentGroup) -> None:
    """Add them to a parser's group."""
    group.add_argument(
        "--like",
        type=named_path,
        metavar="RUN",
        help="from the hosts of this run directory, reached as for it, and of the same captures; "
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
        help="of these ranks everything, whole, where the others come as columns or for the analysis alone",
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
            "--keep-raw suspects: nobody knows them yet; cluster-analyse RUN, and then "
            "cluster-collect --like RUN --ranks suspects --what full"
        )
    if given.keep_raw is not None and not {"analysis", "columns"} & set(what):
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
