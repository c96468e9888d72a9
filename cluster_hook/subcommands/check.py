"""The subcommand that says whether the hook works on this site: check."""

from __future__ import annotations

import argparse
import os
import pwd
from pathlib import Path

from cluster_hook.isolation import identity_of
from cluster_hook.options import LANGUAGE_OF_TEXT
from cluster_hook.spool.check import check
from cluster_hook.spool.probe import Probe
from cluster_hook.spool.spool import Spool
from cluster_hook.subcommands.drain import DEFAULT_SPOOL
from cluster_hook.subcommands.json_lines import add_json, print_line
from cluster_run.command_line import Commands, add_language, add_valued, named_path
from cluster_run.errors import ExitCode, UsageError


def add_check(commands: Commands) -> None:
    """Add `check`."""
    parser = commands.add_parser(
        "check",
        help="say whether slurmctld runs the epilog, and whether the drain works",
        description="Says whether jobs that ended will be analysed on this site: whether slurmctld runs the "
        "epilog, whether it can drop requests, and whether a drain works them off.",
    )
    add_valued(parser, "--spool", named_path, DEFAULT_SPOOL, "DIR")
    parser.add_argument(
        "--probe",
        action="store_true",
        help="submit a small job with a slow rank, and follow it: epilog, drain, analysis, message; "
        "takes as long as the drain lets it wait",
    )
    parser.add_argument(
        "--probe-user",
        default=os.environ.get("SUDO_USER", ""),
        metavar="USER",
        help="for root: whose job it is; an ordinary user who may submit (default: who called sudo)",
    )
    parser.add_argument(
        "--probe-dir",
        type=named_path,
        metavar="DIR",
        help="where it writes: a directory of that user that nodes and drain see (default: the home)",
    )
    add_language(parser, LANGUAGE_OF_TEXT, argparse.SUPPRESS)
    add_json(parser, "an answer")
    parser.set_defaults(run=_check)


def _probed(arguments: argparse.Namespace) -> Probe:
    """Return whose job is submitted, and where.

    Raises:
        UsageError: root named nobody, or somebody whom this host does not know.
    """
    if os.geteuid() == 0 and not arguments.probe_user:
        raise UsageError("a probe as root shows nothing about users", "name one who may submit: --probe-user")
    try:
        user = pwd.getpwnam(arguments.probe_user) if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    except KeyError:
        raise UsageError(f"user {arguments.probe_user!r} is not known on this host") from None
    return Probe(identity_of(user.pw_uid), (arguments.probe_dir or Path(user.pw_dir)).absolute())


def _check(arguments: argparse.Namespace) -> ExitCode:
    states = set()
    for answer in check(Spool(arguments.spool), _probed(arguments) if arguments.probe else None):
        values = {"state": answer.state, "text": answer.text, "advice": answer.advice}
        print_line(arguments, answer.line, "check", **values)
        states.add(answer.state)
    if "problem" in states:
        return ExitCode.FAILED
    return ExitCode.INCOMPLETE if "unknown" in states else ExitCode.DONE
