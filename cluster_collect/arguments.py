"""The command line of cluster-collect: options, their help, and the one frozen value they become.

Imports nothing heavy, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from cluster_collect.argument_types import (
    host_defaults,
    key_value,
    made,
    moment,
    parsed,
    size,
    size_or_nothing,
    time_limit,
)
from cluster_collect.live.options import LiveOptions, add_live_options, live_options
from cluster_collect.selection.options import (
    RankArguments,
    add_rank_options,
    rank_arguments,
    what_arguments,
)
from cluster_collect.spec import LIVE_HOST_DEADLINE_S, CollectOptions, Compression
from cluster_run.command_line import (
    Parser,
    add_about,
    add_language,
    add_valued,
    exit_codes_help,
    language_of,
    named_path,
    number_above_0,
    positive_number,
)
from cluster_run.errors import ExitCode
from cluster_run.said.chinese import Language

_DEFAULTS = CollectOptions()

_EXAMPLES = """\
examples:
  cluster-collect --inventory hosts.yaml --check
  cluster-collect --inventory hosts.yaml --output run1
  cluster-collect --hosts 'node[01-16]' --profiler-root /data/prof --rank-table hccl.json
  cluster-collect --like run1 --ranks suspects --what full
  cluster-collect --live 3 --inventory hosts.yaml

"""
_EXIT_CODES = {
    ExitCode.DONE: "done, everything asked for is there",
    ExitCode.INCOMPLETE: "done, but hosts, ranks or files are missing; the result says which",
    ExitCode.FINDINGS: None,
    ExitCode.INTERRUPTED: "interrupted; call it again with the same --output and it goes on",
}


@dataclass(frozen=True)
class Arguments:
    """A command line, parsed. `host_defaults` are keys of a host that the command line sets."""

    inventory: Path | None
    hosts: str | None
    limit: str | None
    rank_table: Path | None
    output: Path | None
    options: CollectOptions
    of_ranks: RankArguments
    live: LiveOptions | None
    host_defaults: Mapping[str, str | int]
    ask_password: bool
    ask_passphrase: bool
    json: bool
    print_reader: bool
    verbosity: int
    language: Language

    @property
    def mode(self) -> str:
        """What is to be done: `live`, `check`, `dry-run` or `collect`."""
        if self.live is not None:
            return "live"
        if self.options.check:
            return "check"
        return "dry-run" if self.options.dry_run else "collect"


def parse_arguments(argv: Sequence[str]) -> Arguments:
    """Parse a command line; ends the program with code 2 when it cannot be meant."""
    parser = make_parser()
    given = parsed(parser, argv)
    has_hosts = not given.inventory is given.hosts is given.rank_table is given.like is None
    if not (has_hosts or given.print_reader):
        parser.error("no hosts: give --inventory FILE, --hosts NODESET, --rank-table FILE or --like RUN")
    what = what_arguments(parser, given.what or _DEFAULTS.what)
    of_ranks = rank_arguments(parser, given, what)
    by_default_s = _DEFAULTS.host_deadline_s if given.live is None else LIVE_HOST_DEADLINE_S
    options = made(
        CollectOptions,
        given,
        what=what,
        ranks=of_ranks.ranks,
        whole_ranks=of_ranks.whole_ranks,
        exclude=tuple(given.exclude),
        host_deadline_s=given.host_deadline_s or by_default_s,
    )
    return made(
        Arguments,
        given,
        options=options,
        of_ranks=of_ranks,
        live=live_options(parser, given),
        host_defaults=host_defaults(given),
        verbosity=0 if given.quiet else 1 + given.verbose,
        language=language_of(given.lang, sys.stderr),
    )


def make_parser() -> argparse.ArgumentParser:
    """Return the parser; the documentation is compared with its help."""
    parser = Parser(
        prog="cluster-collect",
        usage="cluster-collect --inventory FILE | --hosts NODESET | --like RUN  [options]",
        description="Collects the profiler data of all hosts of a job over SSH into one run directory.",
        epilog=_EXAMPLES + exit_codes_help(_EXIT_CODES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_host_options(parser.add_argument_group("which hosts"))
    _add_data_options(parser.add_argument_group("what, and where to"))
    add_rank_options(parser.add_argument_group("some ranks"))
    add_live_options(parser.add_argument_group("capturing a job that runs (--live)"))
    _add_columns_options(parser.add_argument_group("reading on the hosts (--what columns)"))
    _add_limits(parser.add_argument_group("limits"))
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="write the result to stdout as JSON")
    add_language(output, " of the result and of progress, not of JSON")
    output.add_argument(
        "--hide-addresses",
        action="store_true",
        help="reasons and advices name no server, as in manifest.json; for logs that others read",
    )
    loudness = output.add_mutually_exclusive_group()
    loudness.add_argument("-v", "--verbose", action="count", default=0, help="say more; -vv names every file")
    loudness.add_argument(
        "-q", "--quiet", action="store_true", help="no progress; only warnings, errors and the result"
    )
    add_about(output)
    return parser


def _add_host_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--inventory",
        type=named_path,
        metavar="FILE",
        help="hosts and how to reach them: this project's YAML, an inventory of Ansible, a list of hosts, "
        "a rank table, or an r1.x account file",
    )
    group.add_argument(
        "--hosts", metavar="NODESET", help="hosts instead of the inventory's: 'node[01-16]', or ^FILE"
    )
    group.add_argument(
        "--limit", metavar="NODESET", help="only these hosts: 'node[01-04]', '@group', '*!node07'"
    )
    group.add_argument(
        "--rank-table",
        type=named_path,
        metavar="FILE",
        help="rank table of the job, in place of the inventory's; if no other hosts are named, collect "
        "from its hosts",
    )
    group.add_argument("--profiler-root", metavar="DIR", help="directory of the profiler data on the hosts")
    group.add_argument("--user", metavar="NAME", help="login name")
    group.add_argument(
        "--set",
        action="append",
        default=[],
        type=key_value,
        metavar="KEY=VALUE",
        help="any key of the inventory's defaults, for example --set jump=bastion.example",
    )
    group.add_argument("--ask-password", action="store_true", help="ask for one password for all hosts")
    group.add_argument(
        "--ask-passphrase",
        action="store_true",
        help="ask for one passphrase for all private keys, named or not",
    )
    group.add_argument(
        "--accept-new-host-keys",
        action="store_true",
        help="store keys of hosts never seen before; a changed key is always refused",
    )


def _add_data_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--output", type=named_path, metavar="DIR", help="run directory (default: run-<date>-<time>)"
    )
    group.add_argument(
        "--what",
        nargs="+",
        action="extend",
        metavar="WHAT",
        help="'analysis' (what cluster-analyse reads, the default), 'columns' (the same, large files "
        "reduced on their hosts), 'full', or globs of paths; globs after one of the three narrow it: "
        "analysis 'job-101/*'",
    )
    group.add_argument(
        "--exclude",
        nargs="+",
        action="extend",
        default=[],
        metavar="GLOB",
        help="leave out what matches by its path, its name or a directory above it",
    )
    group.add_argument(
        "--capture",
        default=_DEFAULTS.capture,
        metavar="WHICH",
        help="all captures (the default), the newest of each rank, or those of a NAME; NAME may be a glob",
    )
    group.add_argument(
        "--since",
        dest="since_s",
        type=moment,
        metavar="TIME",
        help="captures that were written later: 2025-01-31, 2025-01-31T12:00, 90m, 12h, 3d, or @SECONDS",
    )
    group.add_argument(
        "--compression",
        choices=get_args(Compression),
        default=_DEFAULTS.compression,
        help="compression on the wire (default: %(default)s, what the host has)",
    )
    group.add_argument(
        "--verify",
        action="store_true",
        help="hash every file on its host and here, those of earlier calls too, and fetch what differs",
    )
    mode = group.add_mutually_exclusive_group()
    mode.add_argument("--dry-run", action="store_true", help="show what would be copied, and how much")
    mode.add_argument("--check", action="store_true", help="log in and look at each host; copy nothing")


def _add_columns_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--print-reader", action="store_true", help="print the program that would run on the hosts, and end"
    )
    group.add_argument("--columns-as-root", action="store_true", help="run it for a login that is root, too")
    group.add_argument(
        "--while-running", action="store_true", help="run it while a process uses the host's devices, too"
    )
    group.add_argument(
        "--columns-memory",
        dest="columns_memory_bytes",
        type=size,
        default=_DEFAULTS.columns_memory_bytes,
        metavar="SIZE",
        help="memory of each of its processes; a file that needs more travels as it is "
        f"(default: {_DEFAULTS.columns_memory_bytes // 2**30}Gi)",
    )
    longest = "longest time for reducing on a host; what is not done then travels as it is"
    _add_limit(group, "--columns-deadline", "columns_deadline_s", number_above_0, "SECONDS", longest)


def _add_limits(group: argparse._ArgumentGroup) -> None:
    _add_limit(group, "--jobs", "n_jobs", positive_number, "N", "hosts that send at a time")
    tries = "attempts at a host, if trying again may help"
    _add_limit(group, "--attempts", "n_attempts", positive_number, "N", tries)
    in_all = "bytes a second in all, like 200M"
    group.add_argument("--bandwidth", dest="bandwidth_bytes_per_s", type=size, metavar="SIZE", help=in_all)
    group.add_argument("--host-bandwidth", type=size, metavar="SIZE", help="bytes a second of each host")
    group.add_argument(
        "--min-free",
        dest="min_free_bytes",
        type=size_or_nothing,
        default=_DEFAULTS.min_free_bytes,
        metavar="SIZE",
        help=f"space to leave free on this disk (default: {_DEFAULTS.min_free_bytes // 2**20}Mi)",
    )
    hangs = "a host that sends less in a second counts as hanging"
    _add_limit(group, "--least-rate", "least_bytes_per_s", size, "SIZE", hangs)
    by_default = f"(default: {_DEFAULTS.host_deadline_s:g}, with --live {LIVE_HOST_DEADLINE_S:g})"
    for name, default, text in (
        ("host-deadline", None, f"longest time for each host, without queues; 0: without end {by_default}"),
        ("deadline", _DEFAULTS.deadline_s, "longest time for all hosts (default: none)"),
    ):
        dest = f"{name.replace('-', '_')}_s"
        group.add_argument(
            f"--{name}", dest=dest, type=time_limit, default=default, metavar="SECONDS", help=text
        )
    for name, what in (
        ("give-up", "give up a host that brings nothing for this time, over all attempts"),
        ("connect-deadline", "longest wait for a connection"),
        ("login-deadline", "longest wait for logging in"),
        ("prepare-deadline", "longest wait for the prepare command"),
        ("listing-deadline", "longest wait for a name of a listing"),
        ("progress-deadline", "longest wait for content"),
    ):
        _add_limit(group, f"--{name}", f"{name.replace('-', '_')}_s", number_above_0, "SECONDS", what)


def _add_limit(
    group: argparse._ArgumentGroup,
    option: str,
    field: str,
    kind: Callable[[str], object],
    metavar: str,
    meaning: str,
) -> None:
    """Add an option for a field of `CollectOptions`, whose default it has."""
    add_valued(group, option, kind, getattr(_DEFAULTS, field), metavar, meaning, field)
