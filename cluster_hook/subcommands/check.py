"""The subcommand that says whether the hook works on this site: check."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cluster_hook.spool.check import check
from cluster_hook.spool.spool import Spool
from cluster_hook.subcommands.drain import DEFAULT_SPOOL
from cluster_hook.subcommands.json_lines import add_json, print_json
from cluster_run.command_line import named_path
from cluster_run.errors import ExitCode
from cluster_run.standard_streams import write_result

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_check(commands: Commands) -> None:
    """Add `check`."""
    parser = commands.add_parser(
        "check",
        help="say whether slurmctld runs the epilog, and whether the drain works",
        description="Says whether jobs that ended will be analysed on this site: whether slurmctld runs the "
        "epilog, whether it can drop requests, and whether a drain works them off.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--spool", type=named_path, default=DEFAULT_SPOOL, metavar="DIR", help="default: %(default)s"
    )
    parser.add_argument(
        "--probe",
        action="store_true",
        help="submit a job of one second where nothing else tells whether the epilog runs",
    )
    add_json(parser, "an answer")
    parser.set_defaults(run=_check)


def _check(arguments: argparse.Namespace) -> ExitCode:
    states = set()
    for answer in check(Spool(arguments.spool), probes=arguments.probe):
        if arguments.json:
            print_json("check", state=answer.state, text=answer.text, advice=answer.advice)
        else:
            write_result(f"{answer.line}\n")
        states.add(answer.state)
    if "problem" in states:
        return ExitCode.FAILED
    return ExitCode.INCOMPLETE if "unknown" in states else ExitCode.DONE
