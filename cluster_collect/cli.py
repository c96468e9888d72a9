"""cluster-collect: from the command line to the exit code."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Sequence
from contextlib import suppress

from cluster_collect.arguments import Arguments, parse_arguments
from cluster_collect.live.options import PROGRAM
from cluster_collect.remote.reader import reader
from cluster_collect.show.json_result import error_json
from cluster_collect.wording import printable
from cluster_run.command_line import interruptible
from cluster_run.errors import ClusterError, ExitCode, InputError, in_words
from cluster_run.said.chinese import translated
from cluster_run.standard_streams import write_result

#: Where Python looks for the user's name, in this order.
_NAMES = ("LOGNAME", "USER", "LNAME", "USERNAME")


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    arguments = parse_arguments(argv)
    _be_somebody()
    try:
        with interruptible():
            return _run(argv, arguments)
    except ClusterError as error:
        return _fail(arguments, error)
    except OSError as error:  # a full disk, or a file that was taken away meanwhile
        return _fail(arguments, InputError(in_words(error)))


def _be_somebody() -> None:
    """Have a name and a home: SSH asks for both, and in a container a user's number may be all there is."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        if not any(map(os.environ.get, _NAMES)):
            os.environ[_NAMES[0]] = str(os.getuid())
        os.environ.setdefault("HOME", "/")


def _run(argv: Sequence[str], arguments: Arguments) -> int:
    # Everything heavy comes with this import; `--help` and usage errors do without.
    if arguments.print_reader:
        write_result((reader() if arguments.live is None else reader(PROGRAM)).as_text())
        return ExitCode.DONE

    from cluster_collect.call import carry_out  # noqa: PLC0415

    result = carry_out(argv, arguments)
    write_result(result.text)
    if result.next_step and arguments.verbosity > 0:
        print(translated(f"next: {result.next_step}", arguments.language), file=sys.stderr)
    return result.code


def _fail(arguments: Arguments, error: ClusterError) -> int:
    print(f"cluster-collect: {translated(printable(error.message), arguments.language)}", file=sys.stderr)
    if error.advice:
        advice = "\n".join(map(printable, error.advice.split("\n")))  # lines to be copied stay lines
        print(f"  → {translated(advice, arguments.language)}", file=sys.stderr)
    if arguments.json:
        with suppress(ClusterError):  # the first error is what counts
            write_result(error_json(arguments.mode, error))
    return error.exit_code
