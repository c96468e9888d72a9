"""What the command lines of all commands have in common."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from cluster_run.errors import ExitCode

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


def exit_codes_help(own: Mapping[ExitCode, str | None] | None = None) -> str:
    """Return the exit codes as the end of a help text.

    Args:
        own: what a code means to this command where that is more than it means to all; None for a code that
            the command never ends with.
    """
    meanings = {**_MEANING, **(own or {})}
    lines = (f"  {code.value:<4} {meaning}\n" for code, meaning in meanings.items() if meaning)
    return "exit codes:\n" + "".join(lines)


def language_of(wanted: str | None) -> Literal["en", "zh"]:
    """Return the language that `--lang` asks for, else that of the environment."""
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


def positive_number(text: str) -> int:
    """Parse a whole number from 1, for `type=` of an argument.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)
