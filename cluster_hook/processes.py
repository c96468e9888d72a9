"""Runs the project's commands and the scheduler's as processes of their own.

A command that crashes, hangs or eats its memory must not take the hook down: each runs in its own process
group with a deadline, and how it ended is a value.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, Any

from cluster_hook.isolation import Identity, child_environment
from cluster_run.command_line import signals_after

#: How many of the last lines a command wrote to stderr are kept, to say why it failed.
_N_KEPT_LINES = 30
#: Time for a command to end by itself after SIGTERM.
_GRACE_S = 10.0
#: How often a command is looked after that may have to be stopped.
_STOP_POLL_S = 0.2
#: How long the scheduler's own commands may take; they answer in milliseconds or not at all.
SCHEDULER_DEADLINE_S = 60.0
#: No command of ours or of Slurm says more, in characters; what a user's process says beyond is dropped.
_MAX_CAPTURED = 64 << 20
_MAX_LOGGED = 200_000
_MAX_LINE = 64 << 10
#: The exit code of a command that is not here, or cannot be started.
NOT_STARTED = 127


@dataclass(frozen=True)
class CommandEnd:
    """How a command ended. `code` is negative for a signal, None when the deadline ended it."""

    name: str
    code: int | None
    stdout: str
    last_lines: tuple[str, ...]
    deadline_s: float

    @property
    def reason(self) -> str:
        """Why the command failed, in one line."""
        if self.code is None:
            return f"{self.name} did not end within {self.deadline_s:g} s and was stopped"
        if self.code < 0:
            return f"{self.name} was killed by {_signal_name(-self.code)}"
        said = next((line for line in reversed(self.last_lines) if line.strip()), "it said nothing")
        return f"{self.name} ended with code {self.code}: {said.strip()}"


def run_command(
    argv: Sequence[str],
    *,
    name: str,
    deadline_s: float,
    capture: bool = False,
    environment: Mapping[str, str] | None = None,
    stdin: str = "",
    log: IO[str] | None = None,
    held: int | None = None,
    identity: Identity | None = None,
    stop: threading.Event | None = None,
    rewritten: Callable[[str], str] = str,
) -> CommandEnd:
    """Run `argv` to its end; a command that cannot be started ends with `NOT_STARTED`.

    Args:
        argv: the command line.
        name: what to call the command in messages.
        deadline_s: when to stop it, in seconds.
        capture: whether its stdout is returned; else it goes on to ours.
        environment: variables on top of `child_environment`.
        stdin: what it may read.
        log: where its stderr goes on to; ours by default.
        held: a descriptor it inherits, to hold a lock as long as it lives.
        identity: whose name it runs in; ours by default.
        stop: ends the command when set.
        rewritten: what is passed on and kept in place of a line of its stderr.
    """
    said = _Said(deque(maxlen=_N_KEPT_LINES), log)
    captured: list[str] = []
    with ExitStack() as stack:
        try:
            process = started(
                stack,
                argv,
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE if capture else None,
                stderr=subprocess.PIPE,
                errors="replace",
                env=child_environment(environment, identity),
                cwd="/" if identity else None,
                pass_fds=() if held is None else (held,),
                user=identity.uid if identity else None,
                group=identity.gid if identity else None,
                extra_groups=identity.groups if identity else None,
            )
        except OSError as error:
            return CommandEnd(name, NOT_STARTED, "", (f"{argv[0]}: {error.strerror}",), deadline_s)
        threads = _attend(process, stdin, captured, lambda line: said.keep(rewritten(line)))
        code = _wait(process, deadline_s, stop)
    for thread in threads:
        thread.join(_GRACE_S)
    for stream in (process.stderr, process.stdout):
        if stream is not None:
            stream.close()
    return CommandEnd(name, code, "".join(captured), tuple(said.tail), deadline_s)


def started(stack: ExitStack, argv: Sequence[str], **how: Any) -> subprocess.Popen[str]:
    """Start a process in a session of its own; it is ended, with all that it started there, by `stack`.

    Raises:
        OSError: it cannot be started.
    """
    with signals_after():
        process: subprocess.Popen[str]
        process = subprocess.Popen(argv, text=True, start_new_session=True, **how)  # noqa: S603  never a shell's
        stack.callback(_end_group, process)
    return process


def _attend(
    process: subprocess.Popen[str], stdin: str, captured: list[str], passed_on: Callable[[str], None]
) -> list[threading.Thread]:
    """Start a thread for each pipe, so that none of them can fill up and stop the command."""
    work: list[tuple[Callable[..., None], tuple[object, ...]]] = [(_each, (process.stderr, passed_on))]
    if process.stdout is not None:
        work.append((_keep, (process.stdout, captured)))
    if process.stdin is not None:
        work.append((_feed, (process.stdin, stdin)))
    threads = [threading.Thread(target=target, args=parameters, daemon=True) for target, parameters in work]
    for thread in threads:
        thread.start()
    return threads


def _wait(process: subprocess.Popen[str], deadline_s: float, stop: threading.Event | None) -> int | None:
    """Return the exit code, or None after the deadline or a stop."""
    end_s = time.monotonic() + deadline_s
    while (left_s := end_s - time.monotonic()) > 0 and not (stop and stop.is_set()):
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(min(left_s, _STOP_POLL_S) if stop else left_s)
    return None


def _end_group(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
    # Also after a normal end: a worker left behind would hold the pipes, and the job's node.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _each(stream: IO[str], passed_on: Callable[[str], None]) -> None:
    while line := stream.readline(_MAX_LINE):
        passed_on(line)


@dataclass
class _Said:
    """Last lines of a command's stderr, and the rest that may still go to a log."""

    tail: deque[str]
    log: IO[str] | None
    n_left: int = _MAX_LOGGED

    def keep(self, line: str) -> None:
        self.tail.append(line.rstrip("\n"))
        if self.log is None or self.n_left > 0:
            target = self.log or sys.stderr
            with contextlib.suppress(OSError):  # a full disk must not stop whoever reads the command's pipe
                target.write(line if self.log is None or len(line) < self.n_left else "(more was said)\n")
                target.flush()
        self.n_left -= len(line)


def _feed(stream: IO[str], text: str) -> None:
    # A command that ends without reading is no error of ours.
    with contextlib.suppress(BrokenPipeError):
        stream.write(text)
    with contextlib.suppress(BrokenPipeError):
        stream.close()


def _keep(stream: IO[str], captured: list[str]) -> None:
    n_left = _MAX_CAPTURED
    # Read to its end all the same: a full pipe would stop the command.
    while piece := stream.read(_MAX_LINE):
        captured.append(piece[: max(0, n_left)])
        n_left -= len(piece)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
