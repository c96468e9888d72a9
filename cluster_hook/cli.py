"""The command line of `cluster-hook`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from cluster_hook.options import LANGUAGE
from cluster_hook.subcommands.check import add_check
from cluster_hook.subcommands.drain import add_drain
from cluster_hook.subcommands.nodes import add_node_collect
from cluster_hook.subcommands.slurm import add_slurm_post, add_slurm_submit
from cluster_hook.subcommands.sweep import add_sweep
from cluster_run.command_line import Parser, add_about, add_language, exit_code_of, exit_codes_help
from cluster_run.errors import ExitCode

_EXIT_CODES = {
    ExitCode.INCOMPLETE: "done, but hosts, ranks or files are missing or unreadable; "
    "drain: a request was given up; check: it could not tell"
}


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    argv, script_arguments = split_script_arguments(argv)
    arguments = build_parser().parse_args(argv)
    arguments.script_arguments = script_arguments
    return exit_code_of("cluster-hook", lambda: arguments.run(arguments), wanted=arguments.lang)


def split_script_arguments(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Take off what follows `--` for slurm-submit: arguments of the job's script, which argparse would mix
    with those of sbatch. With `--wrap` there is no script, and sbatch gets all from there on.
    """
    split = list(argv).index("--") if "--" in argv else len(argv)
    if "slurm-submit" not in argv[:split]:
        return argv, ()
    wraps = (at for at, one in enumerate(argv[:split]) if one.partition("=")[0] == "--wrap")
    wrap = next(wraps, split)
    return [*argv[:wrap], *([""] if wrap < split else []), *argv[wrap:split]], argv[split + 1 :]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all subcommands."""
    parser: argparse.ArgumentParser = Parser(
        prog="cluster-hook",
        description="Collects and analyses the profiler data of a job after it ended.",
        epilog=exit_codes_help(_EXIT_CODES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_about(parser)
    add_language(parser, LANGUAGE)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in (add_slurm_submit, add_slurm_post, add_drain, add_check, add_sweep, add_node_collect):
        add(commands)
    return parser
