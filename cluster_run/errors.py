"""Errors that both halves raise, and the exit codes every command shares.

    ClusterError
    ├── UsageError          a command line that cannot be meant            (2)
    ├── InputError          a file or directory that cannot be used        (1)
    │   ├── SchemaError     an artefact of another schema version          (1)
    │   └── MissingExtraError   a library that is an extra is not there    (1)
    └── InterruptedRunError  stopped by the user or the scheduler       (130)

Errors take positional arguments only and carry nothing but strings, so that they survive the
pickling that Dask does between processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit status of a command. `worst` decides where several hold."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    INCOMPLETE = 3
    FINDINGS = 4
    INTERRUPTED = 130


#: Where several exit codes hold, the first one of these is reported.
_PRECEDENCE = (
    ExitCode.INTERRUPTED,
    ExitCode.USAGE,
    ExitCode.FAILED,
    ExitCode.FINDINGS,
    ExitCode.INCOMPLETE,
    ExitCode.DONE,
)


def worst(*codes: ExitCode) -> ExitCode:
    """Return the code to exit with when all of `codes` hold; DONE for none."""
    return min(codes, key=_PRECEDENCE.index, default=ExitCode.DONE)


class ClusterError(Exception):
    """Base of every error that a command reports as one line instead of a traceback.

    The message is the first argument and says what is wrong; the optional second one is the advice:
    what the reader can do about it.
    """

    exit_code = ExitCode.FAILED

    @property
    def message(self) -> str:
        """The problem, with its file, host or rank."""
        return str(self.args[0]) if self.args else type(self).__name__

    @property
    def advice(self) -> str:
        """The advice; empty when the message says it all."""
        return str(self.args[1]) if len(self.args) > 1 else ""

    def __str__(self) -> str:
        return f"{self.message} ({self.advice})" if self.advice else self.message


class UsageError(ClusterError):
    """The command line asks for something that cannot be meant."""

    exit_code = ExitCode.USAGE


class InputError(ClusterError):
    """A file or directory is missing, unreadable or not what it should be."""


class SchemaError(InputError):
    """An artefact was written with another schema version than this program reads."""


class MissingExtraError(InputError):
    """A library is not installed, which an extra of this package brings."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Import what the extra `name` brings.

    Raises:
        MissingExtraError: it is not there.
    """
    try:
        yield
    except ImportError as error:
        install = f"pip install 'cluster-profiler[{name}]'"
        raise MissingExtraError(f"{error.name} is not installed", install) from error


class InterruptedRunError(ClusterError):
    """Stopped by Ctrl-C or SIGTERM; what was done so far is kept."""

    exit_code = ExitCode.INTERRUPTED


def spoken(error: Exception) -> str:
    """What is wrong with a document, from its reader's error, without the name of a class."""
    if isinstance(error, KeyError):
        return f"{error} is missing"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, (TypeError, AttributeError)):
        return "a value has another form"
    return str(error) or "it ends too early"


def in_one_line(error: BaseException, otherwise: str = "") -> str:
    """Return what somebody else's error says, without a line break; `otherwise`, or its class, if nothing."""
    return " ".join(str(error).split()) or otherwise or type(error).__name__


@contextmanager
def read_as(what: str, advice: str = "") -> Iterator[None]:
    """Read a document within. If that fails, the error becomes an InputError: `what`, and why.

    That covers errors of the system, and of code that takes apart a document of another form. Errors of ours
    pass: they say what is wrong.
    """
    try:
        yield
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{what}: {spoken(error)}", advice) from error


def in_words(error: Exception) -> str:
    """Return what an error says, and its advice; of the system, what it refused, without a number.

    A working directory that was removed has no name any more.
    """
    if not isinstance(error, OSError):
        return str(error)
    name = os.fsdecode(error.filename) if error.filename else "a file"
    try:
        os.getcwd()
    except OSError as gone:
        name = name if error.filename or gone.errno != error.errno else "the working directory"
    return f"{name}: {spoken(error)}"
