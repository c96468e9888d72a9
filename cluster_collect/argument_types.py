"""The values of options: what people write, and what it stands for."""

from __future__ import annotations

import argparse
import math
import re
import shlex
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from cluster_run.command_line import number_above_0
from cluster_run.ids import parse_size

_T = TypeVar("_T")


def key_value(text: str) -> tuple[str, str]:
    """Parse `KEY=VALUE`."""
    key, equals, value = text.partition("=")
    if not equals or not key or not value:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def moment(text: str) -> float:
    """Parse a point in time, or a time ago, into seconds since 1970."""
    ago = re.fullmatch(r"(\d{1,9})([mhdw])", text)
    try:
        if ago is not None:
            return time.time() - int(ago[1]) * {"m": 60, "h": 3600, "d": 86400, "w": 604800}[ago[2]]
        if text.startswith("@"):
            return _since_1970(text[1:])
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError, OSError):
        wrong = f"{text!r} is not a time; write it like 2025-01-31T12:00, 12h or @1735689600"
        raise argparse.ArgumentTypeError(wrong) from None


def _since_1970(text: str) -> float:
    if not re.fullmatch(r"\d{1,11}(\.\d{1,9})?", text):
        raise ValueError(text)
    return float(text)


def time_limit(text: str) -> float:
    """Parse a number of seconds; `0` and `none` are without end."""
    return math.inf if text in ("0", "none") else number_above_0(text)


def size(text: str) -> int:
    """Parse a size above 0 into bytes."""
    size = size_or_nothing(text)
    if size == 0:
        raise argparse.ArgumentTypeError(f"{text!r} lets nothing through; write it like 50M or 1.5G")
    return size


def size_or_nothing(text: str) -> int:
    """Parse a size into bytes."""
    size = parse_size(text)
    if size is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write it like 50M or 1.5G")
    return size


def _meant(word: str) -> str:
    """Return which option a bare word was probably meant for: a file of hosts, a run, or names of hosts."""
    if word.startswith("-"):
        return ""
    if Path(word).is_dir():
        option = "--like"
    else:
        option = "--inventory" if Path(word).is_file() or Path(word).suffix else "--hosts"
    return f"\n  did you mean: cluster-collect {option} {shlex.quote(word)}"


def parsed(parser: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; the program ends with code 2 where a word is none, and says what it may mean."""
    given, unknown = parser.parse_known_args(argv)
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{_meant(unknown[0])}")
    return given


def host_defaults(given: argparse.Namespace) -> dict[str, str | int]:
    """Return the keys of a host that a command line sets."""
    defaults: dict[str, str | int] = dict(given.set)
    for key, value in (
        ("profiler_root", given.profiler_root),
        ("user", given.user),
        ("bandwidth", given.host_bandwidth),
    ):
        if value is not None:
            defaults[key] = value
    return defaults


def made(kind: type[_T], given: argparse.Namespace, **worked_out: object) -> _T:
    """Return a dataclass of what was given: each option is stored under the name of its field."""
    names = kind.__dataclass_fields__  # type: ignore[attr-defined]
    return kind(**{name: getattr(given, name) for name in names if hasattr(given, name)} | worked_out)
