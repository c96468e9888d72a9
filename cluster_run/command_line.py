"""Common parts of all commands: exit codes, arguments, and the signals that end them.

Those are Ctrl-C, SIGTERM of a scheduler, SIGHUP of a closed terminal.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TextIO, TypeAlias

from cluster_run.errors import ClusterError, ExitCode, InputError, InterruptedRunError, in_words
from cluster_run.said.chinese import LANGUAGES, Language, help_texts, in_chinese, translated
from cluster_run.said.line_breaks import Wide
from cluster_run.version import VERSION

#: Takes subcommands.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_MEANING = {
    ExitCode.DONE: "done, evidence complete",
    ExitCode.FAILED: "could not do it",
    ExitCode.USAGE: "wrong usage",
    ExitCode.INCOMPLETE: "done, but hosts, ranks or files are missing or unreadable; the result says which",
    ExitCode.FINDINGS: "done, and there is a finding at or above --fail-on",
    ExitCode.INTERRUPTED: "interrupted",
}
#: Where the environment says the language, the first one that is set.
_LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Seconds after which a signal is sent again if it met code whose errors Python ignores.
_AGAIN_S = 0.01
#: Seconds of four months.
_NO_TIME = 1e7
#: A longer usage hides what is wrong.
_MOST_USAGE_LINES = 3


def exit_codes_help(own: Mapping[ExitCode, str | None] | None = None) -> str:
    """Return the exit codes as the end of a help text.

    Args:
        own: what a code means to this command where that is more than it means to all; None for a code that
            the command never ends with.
    """
    meanings = {**_MEANING, **(own or {})}
    lines = (f"  {code.value:<4} {meaning}\n" for code, meaning in meanings.items() if meaning)
    return "exit codes:\n" + "".join(lines)


def language_of(wanted: str | None, stream: TextIO | None = None) -> Language:
    """Return the language that `--lang` asks for, else that of the environment if `stream` can write it."""
    if wanted is None and stream is not None:
        try:
            "慢卡".encode(stream.encoding or "ascii")
        except (UnicodeEncodeError, LookupError):
            return "en"
    named = wanted or next((os.environ[name] for name in _LOCALE if os.environ.get(name)), "")
    return "zh" if named.startswith("zh") else "en"


def named_path(text: str) -> Path:
    """Parse a path, for `type=` of an argument; an empty text would be the directory that one is in.

    Raises:
        argparse.ArgumentTypeError: it is empty.
    """
    if not text:
        raise argparse.ArgumentTypeError("an empty path: is a variable not set?")
    return Path(text)


class _PrintCompletion(argparse.Action):
    """Prints what makes a shell complete a command's options, and ends."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        from cluster_run.completions import completions  # noqa: PLC0415 - only where they are asked for

        sys.stdout.write(completions(parser, str(values), named_path))
        parser.exit()


def add_language(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup, of_what: str, default: str | None = None
) -> None:
    """Add `--lang`; a subcommand takes `SUPPRESS`, or it would take the place of what stands before it."""
    text = f"language{of_what} (default: that of LC_ALL or LANG)"
    parser.add_argument("--lang", choices=LANGUAGES, default=default, help=text)


def add_about(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add `--version` and `--print-completion SHELL`."""
    parser.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    parser.add_argument(
        "--print-completion",
        action=_PrintCompletion,
        choices=("bash", "zsh", "fish"),
        help="print completions for this shell, and end",
    )


def add_valued(
    group: argparse.ArgumentParser | argparse._ArgumentGroup,
    name: str,
    kind: Callable[[str], object],
    default: object,
    metavar: str,
    meaning: str = "",
    dest: str | None = None,
) -> None:
    """Add an option with a value whose help ends with its default; `dest` as argparse has it."""
    shown = "default: %(default)g" if isinstance(default, float) else "default: %(default)s"
    text = f"{meaning} ({shown})" if meaning else shown
    group.add_argument(name, type=kind, default=default, metavar=metavar, help=text, dest=dest)


class Parser(argparse.ArgumentParser):
    """A parser whose help and usage errors are Chinese where that is asked for; so are its subcommands'.

    Options are written out: what is short enough today may mean two of them tomorrow.
    """

    is_chinese = False

    def __init__(self, **how: Any) -> None:
        super().__init__(allow_abbrev=False, **how)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse as argparse does."""
        given = sys.argv[1:] if args is None else list(args)
        if not self.is_chinese and language_of(_asked_for(given), sys.stdout) == "zh":
            _translate(self, help_texts())
        return super().parse_known_args(given, namespace)

    def format_usage(self) -> str:
        """Return the usage in the language of the parser."""
        return self._of_usage(super().format_usage())

    def format_help(self) -> str:
        """Return the help in the language of the parser."""
        return self._of_usage(super().format_help())

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and how it is called where that is short; end with 2."""
        usage = self.format_usage()
        if usage.count("\n") <= _MOST_USAGE_LINES:
            sys.stderr.write(usage)
        said = f"error: {message}"
        if self.is_chinese:
            said = f"错误：{translated(message, 'zh')}"
        self.exit(2, f"{self.prog}: {said}\n")

    def _of_usage(self, text: str) -> str:
        return text.replace("usage: ", "用法：", 1) if self.is_chinese else text

    def _get_formatter(self) -> argparse.HelpFormatter:
        return Wide(prog=self.prog) if self.is_chinese else super()._get_formatter()


def _asked_for(given: Sequence[str]) -> str | None:
    """Return the value of `--lang`, None where it is not given; the parser itself checks it later."""
    for at, one in enumerate(given):
        if one == "--":
            break
        if one == "--lang":
            return given[at + 1] if at + 1 < len(given) else None
        if one.startswith("--lang="):
            return one.partition("=")[2]
    return None


def _translate(parser: Parser, said: Mapping[str, str]) -> None:
    """Put all texts of a parser, and of those of its subcommands, into Chinese."""
    parser.is_chinese = True
    parser.description, parser.epilog = (
        None if text is None else said.get(text, text) for text in (parser.description, parser.epilog)
    )
    for group in parser._action_groups:
        group.title = None if group.title is None else said.get(group.title, group.title)
    for action in parser._actions:
        inner: Sequence[argparse.Action] = ()
        if isinstance(action, argparse._SubParsersAction):
            inner = action._choices_actions
            for one in action.choices.values():
                _translate(one, said)
        for each in (action, *inner):
            each.help = None if each.help is None else said.get(each.help, each.help)


def positive_number(text: str) -> int:
    """Parse a whole number from 1, for `type=` of an argument.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def number_above_0(text: str) -> float:
    """Parse a number above 0, as of seconds, hours or days, for `type=` of an argument.

    Raises:
        argparse.ArgumentTypeError: it is no such number, or longer than any time.
    """
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < _NO_TIME:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


class _Signalled(KeyboardInterrupt):
    """Raised by a signal: no code of ours or of a library takes it for a failure of its own work."""


def is_ignored(number: signal.Signals) -> bool:
    """Whether our caller wants us to live through this signal, as nohup does with SIGHUP."""
    return signal.getsignal(number) is signal.SIG_IGN


@contextmanager
def signals_held() -> Iterator[None]:
    """Hold signals back while processes are forked: a child with our handlers would take them for its own.

    Each of them sets its own handlers first, and then calls `release_signals`.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def release_signals() -> None:
    """Take the signals that `signals_held` held back."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], None]) -> Iterator[dict[signal.Signals, Any]]:
    """Have `handler` take the signals; give what took them before, and takes them again after the block."""
    is_main = threading.current_thread() is threading.main_thread()  # it alone may say what signals do
    before = {number: signal.getsignal(number) for number in SIGNALS if is_main and not is_ignored(number)}
    for number in before:
        signal.signal(number, handler)
    try:
        yield before
    finally:
        for number, taken_before in before.items():
            signal.signal(number, taken_before)


@contextmanager
def signals_after() -> Iterator[None]:
    """Take signals after the block: a process that is started in it is known by then, and can be ended."""
    came: list[int] = []
    try:
        with _handled(lambda number, _: came.append(number)):
            yield
    finally:
        for number in came[:1]:
            signal.raise_signal(number)


@contextmanager
def interruptible(what_is_left: str = "") -> Iterator[None]:
    """Have signals end what is within, so that what was begun is cleaned up.

    Args:
        what_is_left: what the message says about the state that the interruption leaves behind.

    Raises:
        InterruptedRunError: a signal came.
    """
    came: list[signal.Signals] = []

    def interrupt(number: int, _: object) -> None:
        if number != signal.SIGALRM:
            came.append(signal.Signals(number))
        raise _Signalled

    def ignored(unraisable: sys.UnraisableHookArgs) -> None:
        # Python ignores what is raised in callbacks of weak references, and imports are full of them.
        if isinstance(unraisable.exc_value, _Signalled):
            before.setdefault(signal.SIGALRM, signal.signal(signal.SIGALRM, interrupt))
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        else:
            hook_before(unraisable)

    hook_before = sys.unraisablehook
    with _handled(interrupt) as before:
        sys.unraisablehook = ignored if before else hook_before
        try:
            yield
        except _Signalled:
            text = f"interrupted by {came[-1].name}"
            raise InterruptedRunError(f"{text}; {what_is_left}" if what_is_left else text) from None
        finally:
            sys.unraisablehook = hook_before
            if signal.SIGALRM in before:  # one that comes after this would kill the process
                signal.setitimer(signal.ITIMER_REAL, 0)


def exit_code_of(program: str, work: Callable[[], int], left: str = "", wanted: str | None = None) -> int:
    """Do a command's work, and return its exit code; what ends it early becomes one line on stderr.

    Args:
        program: what the line begins with.
        work: returns the exit code.
        left: what `interruptible` says of it.
        wanted: that of `language_of`.
    """
    try:
        # A scheduler sends SIGTERM first: the commands below us must end before we do.
        with interruptible(left):
            return int(work())
    except ClusterError as error:
        return told(program, error, wanted)
    except OSError as error:  # a full disk, or a file that was taken away meanwhile
        return told(program, InputError(in_words(error)), wanted)


def told(program: str, error: ClusterError, wanted: str | None = None) -> int:
    """Say on stderr why a command ends, in the language that `language_of` chooses; return its exit code."""
    said = str(error)
    if language_of(wanted, sys.stderr) == "zh":
        said = in_chinese(error.message) + (f"（{in_chinese(error.advice)}）" if error.advice else "")
    print(f"{program}: {said}", file=sys.stderr)
    return int(error.exit_code)
