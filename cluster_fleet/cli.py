"""`cluster-fleet`: from its command line to the database."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cluster_fleet.options import make_parser
from cluster_run.command_line import exit_code_of
from cluster_run.errors import ExitCode, UsageError, extra
from cluster_run.layout import FLEET_VARIABLE

if TYPE_CHECKING:
    from cluster_fleet.store import Fleet

_PROGRAM = "cluster-fleet"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    arguments = make_parser().parse_args(argv)
    return exit_code_of(_PROGRAM, lambda: _run(arguments), wanted=arguments.lang)


def open_fleet(where: str, *, must_exist: bool = True, without: str = "") -> Fleet:
    """Open the database that an option or the environment names, `without` a run (as `Fleet` says).

    Raises:
        UsageError: neither does.
        InputError: it cannot be opened, or the library is missing (`extra`).
    """
    if not where:
        raise UsageError("no database is named", f"give --db FILE, or set {FLEET_VARIABLE}")
    with extra("fleet"):
        from cluster_fleet.store import Fleet  # noqa: PLC0415 - an extra
    return Fleet(where, must_exist=must_exist, without=without)


def _run(arguments: argparse.Namespace) -> ExitCode:
    with open_fleet(arguments.db, must_exist=arguments.command not in ("add", "import")) as fleet:
        from cluster_fleet.commands import COMMANDS  # noqa: PLC0415 - judges

        return COMMANDS[arguments.command](arguments, fleet)
