"""stdout and stderr as callers leave them: closed, on a full disk, unread, or knowing few characters.

A log of Slurm, a Windows terminal or `PYTHONIOENCODING=ascii` cannot hold `▲` or `→`. A result that was
found must be printed all the same: signs become plain ones, and nothing is an error.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NoReturn, TextIO

from cluster_run.errors import ClusterError, spoken

_NAME = "plain-signs"
_PLAIN = {
    "✓": "OK", "▲": "!", "▼": "v", "■": "#", "●": "*", "·": "|", "•": "*", "→": "->", "←": "<-",
    "↔": "<->", "↳": ">", "×": "x", "µ": "u", "μ": "u", "±": "+-", "−": "-", "–": "-", "—": "-",
    "…": "...", "≥": ">=", "≤": "<=", "‘": "'", "’": "'", "“": '"', "”": '"', "─": "-", "━": "-",
    "│": "|", "╸": "-", "╺": "-", "，": ", ", "：": ": ", "；": "; ", "。": ". ", "（": " (", "）": ") ",
    "、": ", ",
}  # fmt: skip


class UnwritableStdoutError(ClusterError):
    """stdout cannot be written, as on a full disk."""


class _Messages(io.TextIOWrapper):
    """stderr; what cannot be written there is dropped, for a message must not cost the result."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


def prepare_streams() -> None:
    """Put a stream in the place of each that the caller closed; have stderr never fail, and signs replaced.

    Else the next file that is opened would be stdout or stderr, and messages would be written into it.
    """
    for _ in range(3):
        number = os.open(os.devnull, os.O_RDWR)
        if number > 2:
            os.close(number)
            break
        os.set_inheritable(number, True)
    # Typeshed says that they are never None, but those that were closed when Python started are.
    streams: tuple[TextIO | None, TextIO | None] = (sys.stdout, sys.stderr)
    if streams[0] is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if streams[1] is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    elif isinstance(sys.stderr, io.TextIOWrapper):
        encoding = sys.stderr.encoding
        sys.stderr = _Messages(sys.stderr.detach(), encoding, line_buffering=True, write_through=True)
    codecs.register_error(_NAME, _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_NAME)


def command(main: Callable[[Sequence[str]], int]) -> Callable[[], NoReturn]:
    """Return the entry point of a command: it prepares the streams, and exits with the code of `main`."""

    def run() -> NoReturn:
        prepare_streams()
        if not sys.warnoptions:  # what libraries say to programmers; -W and PYTHONWARNINGS ask for it
            warnings.simplefilter("ignore")
        sys.exit(main(sys.argv[1:]))

    return run


def write_result(text: str) -> None:
    """Write `text` to stdout at once. A reader that has seen enough, as `head`, is no error.

    Raises:
        UnwritableStdoutError: stdout cannot be written, as on a full disk.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _write_no_more()
    except OSError as error:
        _write_no_more()
        raise UnwritableStdoutError(f"the result could not be written to stdout: {spoken(error)}") from None


@contextmanager
def as_log() -> Iterator[None]:
    """Treat output of `write_result` within as a log: a failed write is reported, and is no error."""
    try:
        yield
    except UnwritableStdoutError as error:
        print(error, file=sys.stderr)


def _write_no_more() -> None:
    # The rest of the buffer would fail once more when Python ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _plain_character(character: str) -> str:
    """Return a character in ASCII; one that has no plain form is written as its number, `\\u4e2d`."""
    if character in _PLAIN:
        return _PLAIN[character]
    bare = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode("ascii")
    return bare or character.encode("ascii", "backslashreplace").decode("ascii")


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_plain_character, error.object[error.start : error.end])), error.end
