"""Progress on stderr: one line with a bar that is written over, on a terminal only."""

from __future__ import annotations

import time
from typing import TextIO

from msgspec import Struct, field

from cluster_run.said.chinese import Language, translated

_CLEAR_LINE = "\r\x1b[K"
_EVERY_S = 0.1
_BAR = 20


class ProgressLine(Struct):
    """Shows `what done/total` on `stream`, and the time of each stage when verbose."""

    stream: TextIO
    shows_line: bool
    is_verbose: bool
    language: Language
    _what: str = ""
    _began_s: float = field(default_factory=time.monotonic)
    _shown_s: float = 0.0

    def show(self, what: str, done: int, total: int) -> None:
        """Show how far it is; seldom enough to cost nothing."""
        now = time.monotonic()
        if what != self._what:
            self._finish_stage(now)
            self._what, self._began_s, self._shown_s = what, now, 0.0
        if self.shows_line and (now - self._shown_s > _EVERY_S or done == total):
            self._shown_s = now
            self.stream.write(f"{_CLEAR_LINE}{bar(translated(what, self.language), done, total)}")
            self.stream.flush()

    def say(self, text: str) -> None:
        """Write a message of its own, when verbose."""
        if self.is_verbose:
            self.remark(text)

    def remark(self, text: str) -> None:
        """Write a message of its own."""
        self.end()
        self.stream.write(f"{translated(text, self.language)}\n")
        self.stream.flush()

    def end(self) -> None:
        """Take the line away."""
        self._finish_stage(time.monotonic())
        if self.shows_line:
            self.stream.write(_CLEAR_LINE)
            self.stream.flush()

    def _finish_stage(self, now_s: float) -> None:
        if self.is_verbose and self._what:
            clear = _CLEAR_LINE if self.shows_line else ""
            self.stream.write(
                f"{clear}{translated(self._what, self.language)}: {now_s - self._began_s:.2f} s\n"
            )
        self._what = ""


def bar(what: str, done: int, total: int) -> str:
    """Return `reading ranks ████████░░░░░░░░░░░░ 26/64`; a stage of one piece has no bar."""
    if total <= 1:
        return f"{what} …"
    full = _BAR * done // total
    return f"{what} {'█' * full}{'░' * (_BAR - full)} {done}/{total}"


def progress_on(stream: TextIO, language: Language, *, quiet: bool, verbose: int) -> ProgressLine:
    """Return a progress line for `stream`; silent when quiet, without a line when it is not a terminal."""
    return ProgressLine(
        stream, stream.isatty() and not quiet, is_verbose=verbose > 0 and not quiet, language=language
    )
