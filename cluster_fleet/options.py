"""The command line of `cluster-fleet`."""

from __future__ import annotations

import argparse
import os
from datetime import datetime, timezone

from cluster_run.command_line import (
    Commands,
    Parser,
    add_about,
    add_language,
    add_valued,
    exit_codes_help,
    named_path,
    number_above_0,
)
from cluster_run.errors import ExitCode
from cluster_run.layout import FLEET_VARIABLE

_CODES = {
    ExitCode.INCOMPLETE: "status: there is no run, so nothing can be said",
    ExitCode.FINDINGS: "status, show: a device or host is slow",
}


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser: argparse.ArgumentParser = Parser(
        prog="cluster-fleet",
        description="Remembers the results of runs by device, host and link: which are slow, and since when.",
        epilog=exit_codes_help(_CODES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_about(parser)
    _add_common(parser, os.environ.get(FLEET_VARIABLE, ""), None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, dest="command")
    add = _command(commands, "add", "remember analysed runs; the same run twice counts once")
    add.add_argument(
        "runs", nargs="+", type=named_path, metavar="RUN", help="run directory that cluster-analyse has read"
    )
    add.add_argument(
        "--results", type=named_path, metavar="DIR", help="where the findings and tables of a single run are"
    )
    add_valued(add, "--hours", number_above_0, 1.0, "H", "how long each job ran")
    add.add_argument(
        "--show-addresses",
        action="store_true",
        help="call hosts as the rank table does; else by their own name",
    )
    add.add_argument("-q", "--quiet", action="store_true", help="print nothing")
    status = _command(
        commands, "status", "devices and hosts that are slow, and since when; the costliest first"
    )
    _add_form(status)
    status.add_argument("--page", type=named_path, metavar="FILE", help="write a page, too")
    status.add_argument(
        "--metrics", type=named_path, metavar="FILE", help="write metrics for Prometheus, too"
    )
    show = _command(commands, "show", "all that is known of a device or host")
    show.add_argument(
        "unit", metavar="DEVICE", help="node017:5, 'device 5 of node017', a host's name, or a key"
    )
    _add_form(show)
    export = _command(commands, "export", "write all runs to a file, names and keys as hashes")
    export.add_argument("file", type=named_path, metavar="FILE")
    export.add_argument(
        "--salt",
        default="",
        help="the same salt gives the same hashes, so that a later export goes on; random by default",
    )
    export.add_argument("--with-names", action="store_true", help="leave names and keys as they are")
    bring = _command(commands, "import", "add the runs of such a file")
    bring.add_argument("file", type=named_path, metavar="FILE")
    forget = _command(commands, "forget", "delete old runs, and devices that are in no other run")
    forget.add_argument(
        "--before", type=date_s, required=True, metavar="DATE", help="a date like 2026-05-31, UTC"
    )
    return parser


def _add_form(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for programs")


def _command(commands: Commands, name: str, text: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text)
    _add_common(parser, argparse.SUPPRESS, argparse.SUPPRESS)
    return parser


def _add_common(parser: argparse.ArgumentParser, db: str, language: str | None) -> None:
    text = f"a file, or the URL of a PostgreSQL database; ${FLEET_VARIABLE} by default"
    parser.add_argument("--db", default=db, metavar="DB", help=text)
    add_language(parser, ", not of JSON", language)


def date_s(text: str) -> float:
    """Parse a date as seconds since 1970, for `type=`."""
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=timezone.utc).timestamp()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date like 2026-05-31") from None
