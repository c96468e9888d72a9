"""Shows a collection on stderr: a bar on a terminal, plain lines otherwise. Only this module uses rich."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Protocol, TextIO, get_args

from cluster_collect.show.tracker import Tracker, Verbosity
from cluster_collect.spec import HostSpec
from cluster_collect.wording import format_bytes
from cluster_run.manifest import HostState
from cluster_run.said.chinese import Language, translated, word

#: Without a terminal, how often a line says how far it is.
STATUS_INTERVAL_S = 10.0
#: A bar shows the mean rate of this time: it follows changes, and does not jump.
_RATE_OF_S = 5.0
#: The verb of a collection; others only look, and end with a table that says it all.
COLLECTING = "collecting"


class Display(Protocol):
    """Something that shows a tracker."""

    tracker: Tracker

    def tick(self) -> None:
        """Show how far it is, when it is time to. Called a few times a second."""


@contextmanager
def display(
    specs: Sequence[HostSpec],
    verbosity: Verbosity,
    stream: TextIO,
    verb: str = COLLECTING,
    language: Language = "en",
) -> Iterator[Display]:
    """Show a collection, or what else `verb` says, on `stream` while the block runs."""
    terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
    if verbosity > Verbosity.QUIET and terminal:
        with _Bar(specs, verbosity, stream, verb, language) as bar:
            yield bar
    else:
        yield _Lines(specs, verbosity, stream, verb, language)


class _Lines:
    """Plain lines, for logs and pipes."""

    def __init__(
        self, specs: Sequence[HostSpec], verbosity: Verbosity, stream: TextIO, verb: str, language: Language
    ) -> None:
        self._language = language
        self._stream = stream
        self._verb = verb
        self._quiet = verbosity == Verbosity.QUIET
        self._next_s = time.monotonic() + STATUS_INTERVAL_S
        lines_for: Sequence[HostState] = get_args(HostState) if verb == COLLECTING else ()
        self.tracker = Tracker(specs, verbosity, self._say, time.monotonic, lines_for)

    def tick(self) -> None:
        now = time.monotonic()
        if not self._quiet and now >= self._next_s and self.tracker.is_going:
            self._next_s = now + STATUS_INTERVAL_S
            self._say(f"{self._verb}: {self.tracker.status_line()}")

    def _say(self, line: str) -> None:
        print(translated(line, self._language), file=self._stream, flush=True)


class _Bar:
    """One bar over all hosts; lines appear above it."""

    def __init__(
        self, specs: Sequence[HostSpec], verbosity: Verbosity, stream: TextIO, verb: str, language: Language
    ) -> None:
        self._language = language
        # Imported here: a run without a terminal does not pay for it.
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn  # noqa: PLC0415

        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[figures]}", markup=False),
            console=self._console,
            transient=True,
            speed_estimate_period=_RATE_OF_S,
        )
        self._task = self._progress.add_task(word(verb, language), total=None, figures="")
        lines_for: Sequence[HostState] = ("partial", "failed") if verb == COLLECTING else ()
        self.tracker = Tracker(specs, verbosity, self._say, time.monotonic, lines_for)

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def tick(self) -> None:
        tally = self.tracker.tally
        self._progress.update(
            self._task,
            total=tally.n_bytes or None,
            completed=min(tally.n_bytes_done, tally.n_bytes),
            figures=self._figures(),
        )

    def _figures(self) -> str:
        tally = self.tracker.tally
        task = self._progress.tasks[0]
        parts = [f"{tally.n_hosts_done}/{tally.n_hosts} hosts"]
        if tally.n_files:
            parts.append(f"{tally.n_files_done:,}/{tally.n_files:,} files")
            parts.append(f"{format_bytes(tally.n_bytes_done)}/{format_bytes(tally.n_bytes)}")
            parts.append(f"{format_bytes(task.speed or 0)}/s")
            if task.time_remaining:
                parts.append(f"{timedelta(seconds=round(task.time_remaining))} left")
        elif names := self.tracker.waiting_for():
            parts.append(f"waiting for {names}")
        return "  ".join(translated(part, self._language) for part in parts)

    def _say(self, line: str) -> None:
        self._console.print(translated(line, self._language), soft_wrap=True)
