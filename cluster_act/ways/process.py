"""Runs the site's commands: bounded, without a shell, their errors made ours."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial

from cluster_act.values import RefusedError, UncertainError
from cluster_run.command_line import signals_after
from cluster_run.errors import UsageError, spoken

DEADLINE_S = 60.0


def words(line: str, option: str) -> list[str]:
    """Return the words of a command line that an option holds, as a shell would split them.

    Raises:
        UsageError: there are none, or a quote is not closed.
    """
    try:
        found = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"{option} {line!r}: {error}") from error
    if not found:
        raise UsageError("no command is named", f"give {option} 'PROGRAM ARGUMENT…'")
    return found


def run(
    argv: Sequence[str], *, changes: bool, stdin: str = "", environment: Mapping[str, str] | None = None
) -> str:
    """Run a command to its end and return what it printed.

    Args:
        argv: the command.
        changes: whether it does or undoes something; else it only asks.
        stdin: what it reads.
        environment: variables beside ours.

    Raises:
        RefusedError: it cannot be started, or fails.
        UncertainError: it changes something, and was killed, by us because it did not end or by others.
    """
    cut_off = UncertainError if changes else RefusedError
    try:
        code, answer, errors = _ended(list(argv), stdin, {**os.environ, **(environment or {})})
    except (OSError, ValueError) as error:
        raise RefusedError(f"{argv[0]} cannot be started: {spoken(error)}") from error
    except subprocess.TimeoutExpired as error:
        raise cut_off(f"{argv[0]} did not end within {DEADLINE_S:g} s") from error
    if code < 0:
        raise cut_off(f"{argv[0]} was killed by signal {-code}")
    if code != 0:
        said = (errors.strip() or answer.strip() or "it said nothing").splitlines()[-1]
        raise RefusedError(f"{argv[0]} ended with {code}: {said}")
    return answer


def _ended(argv: Sequence[str], stdin: str, environment: Mapping[str, str]) -> tuple[int, str, str]:
    """Return the exit code, stdout and stderr; if it is cut off, no process that it started changes more."""
    pipe = subprocess.PIPE
    with ExitStack() as stack:
        with signals_after():
            process = stack.enter_context(subprocess.Popen(  # noqa: S603 - the site's own commands, never a shell's
                argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True, errors="replace",
                env=environment, start_new_session=True,
            ))  # fmt: skip
            stack.push(partial(_end_if_cut_off, process.pid))
        answer, errors = process.communicate(stdin, DEADLINE_S)
    return process.returncode, answer, errors


def _end_if_cut_off(group: int, kind: type[BaseException] | None, *_: object) -> None:
    if kind is not None:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def asked_about_node(argv: Sequence[str]) -> str:
    """Ask about a node, and return the answer.

    Raises:
        RefusedError: as by `run`; for an unknown node it says where its name is given.
    """
    try:
        return run(argv, changes=False)
    except RefusedError as error:
        if "not found" not in error.message:
            raise
        raise RefusedError(error.message, "give the nodes' names there with --node-name") from None
