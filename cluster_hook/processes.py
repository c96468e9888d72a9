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
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

#: How many of the last lines a command wrote to stderr are kept, to say why it failed.
_N_KEPT_LINES = 30
#: What a command gets to end by itself after SIGTERM.
_GRACE_S = 10.0
#: How long the scheduler's own commands may take; they answer in milliseconds or not at all.
SCHEDULER_DEADLINE_S = 60.0


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


def our_command(package: str, *arguments: str) -> list[str]:
    """Return the command line of one of the project's packages, run by the same interpreter."""
    return [sys.executable, "-m", package, *arguments]


def run_command(
    argv: Sequence[str],
    *,
    name: str,
    deadline_s: float,
    capture: bool = False,
    environment: Mapping[str, str] | None = None,
) -> CommandEnd:
    """Run `argv` to its end; its stderr goes on to ours, its stdout too unless `capture`.

    A command that cannot be started ends with code 127. When we are interrupted, the command is ended first.
    """
    tail: deque[str] = deque(maxlen=_N_KEPT_LINES)
    captured: list[str] = []
    try:
        process = subprocess.Popen(  # noqa: S603  the command lines are ours, never a shell's
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if capture else None,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, **environment} if environment else None,
            start_new_session=True,
        )
    except OSError as error:
        return CommandEnd(name, 127, "", (f"{argv[0]}: {error.strerror}",), deadline_s)
    assert process.stderr is not None
    readers = [threading.Thread(target=_pass_on, args=(process.stderr, tail), daemon=True)]
    if process.stdout is not None:
        readers.append(threading.Thread(target=_keep, args=(process.stdout, captured), daemon=True))
    for reader in readers:
        reader.start()
    code: int | None
    try:
        code = process.wait(deadline_s)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        end_group(process)
    for reader in readers:
        reader.join(_GRACE_S)
    for stream in (process.stderr, process.stdout):
        if stream is not None:
            stream.close()
    return CommandEnd(name, code, "".join(captured), tuple(tail), deadline_s)


def end_group(process: subprocess.Popen[str]) -> None:
    """End a process that was started in its own session, and everything it started there."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
    # Also after a normal end: a worker left behind would hold the pipes, and the job's node.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _pass_on(stream: IO[str], tail: deque[str]) -> None:
    for line in stream:
        tail.append(line.rstrip("\n"))
        sys.stderr.write(line)
        sys.stderr.flush()


def _keep(stream: IO[str], captured: list[str]) -> None:
    captured.extend(stream)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
