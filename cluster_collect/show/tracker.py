"""Counts what the transfer reports, and turns it into lines. Knows no terminal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum

from cluster_collect.inventory.nodesets import fold
from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import HostSpec
from cluster_collect.wording import count, format_bytes, format_seconds, printable
from cluster_run.ids import HostId
from cluster_run.manifest import HostOutcome, HostState

#: Most hosts named that are still at work.
MAX_WAITING_NAMED = 5


class Verbosity(IntEnum):
    """How much is said on stderr."""

    QUIET = 0
    NORMAL = 1
    NOTES = 2
    FILES = 3


@dataclass
class Tally:
    """Sums over all hosts; changes all the time, hence not frozen."""

    n_hosts: int
    n_hosts_done: int = 0
    n_files: int = 0
    n_files_done: int = 0
    n_bytes: int = 0
    n_bytes_done: int = 0


class Tracker(ProgressListener):
    """Keeps sums and outcomes, and says what is worth a line.

    `lines_for` are the states of hosts that get one when they end: a progress bar shows the complete ones
    already, and a mere look ends with a table of all.
    """

    def __init__(
        self,
        specs: Sequence[HostSpec],
        verbosity: Verbosity,
        say: Callable[[str], None],
        clock: Callable[[], float],
        lines_for: Collection[HostState],
    ) -> None:
        self._specs = {spec.host: spec for spec in specs}
        self._verbosity = verbosity
        self._say = say
        self._hidden: Callable[[HostId, str], str] = lambda _host, text: text
        self._clock = clock
        self._lines_for = lines_for
        self.collection_begins(len(specs))

    def collection_begins(self, n_hosts: int) -> None:
        """Count from 0: a watch collects in each round, and captures in between."""
        self.tally = Tally(n_hosts)
        self.outcomes: dict[HostId, HostOutcome] = {}
        #: In this order; each once, however often it is tried.
        self._started: dict[HostId, None] = {}
        self._listed: set[HostId] = set()
        self._has_said_sizes = False
        self._begin_s = self._clock()

    def hide(self, hidden: Callable[[HostId, str], str]) -> None:
        """Show no text about a host but as `hidden` returns it."""
        self._hidden = hidden

    def host_started(self, host: HostId) -> None:
        """Note that it is at work."""
        self._started[host] = None

    def plan_known(self, host: HostId, n_files: int, n_bytes: int) -> None:
        """Add to what is to come."""
        self.tally.n_files += n_files
        self.tally.n_bytes += n_bytes
        self._line(Verbosity.NOTES, host, f"{count(n_files, 'file')}, {format_bytes(n_bytes)} to fetch")
        self._listed.add(host)
        self._say_sizes()

    def bytes_received(self, host: HostId, n_bytes: int) -> None:
        """Add to what has come."""
        self.tally.n_bytes_done += n_bytes

    def file_stored(self, host: HostId, path: str, size_bytes: int) -> None:
        """Count the file."""
        self.tally.n_files_done += 1
        if self._verbosity >= Verbosity.FILES:
            self._line(Verbosity.FILES, host, f"stored {printable(path)} ({format_bytes(size_bytes)})")

    def retrying(self, host: HostId, reason: str, wait_s: float) -> None:
        """Say why it takes longer."""
        text = f"{printable(self._hidden(host, reason))}; trying again in {format_seconds(wait_s)}"
        self._line(Verbosity.NORMAL, host, text)

    def noted(self, host: HostId, text: str) -> None:
        """Say it to those who asked."""
        self._line(Verbosity.NOTES, host, printable(self._hidden(host, text)))

    def host_finished(self, outcome: HostOutcome) -> None:
        """Keep the outcome."""
        self.outcomes[outcome.host] = outcome
        self.tally.n_hosts_done += 1
        self._say_sizes()
        if outcome.state not in self._lines_for:
            return
        if outcome.state != "complete":
            reason = printable(self._hidden(outcome.host, outcome.reason))
            self._line(Verbosity.NORMAL, outcome.host, f"{outcome.state}: {reason}".removesuffix(": "))
        else:
            stored = f"{count(outcome.files.n_stored, 'file')}, {format_bytes(outcome.files.stored_bytes)}"
            self._line(
                Verbosity.NORMAL, outcome.host, f"complete, {stored} in {format_seconds(outcome.seconds)}"
            )

    @property
    def is_going(self) -> bool:
        """Whether hosts were started, and some of them have not ended."""
        return len(self._started) > self.tally.n_hosts_done

    def waiting_for(self) -> str:
        """Return the last few unfinished hosts, folded; empty while there are many."""
        if self.tally.n_hosts - self.tally.n_hosts_done > MAX_WAITING_NAMED:
            return ""
        return fold(self._name(host) for host in self._started if host not in self.outcomes)

    def status_line(self) -> str:
        """Return how far it is, in one line."""
        tally = self.tally
        parts = [f"{tally.n_hosts_done} of {count(tally.n_hosts, 'host')} done"]
        if tally.n_files:
            parts.append(f"{tally.n_files_done:,} of {count(tally.n_files, 'file')}")
            parts.append(f"{format_bytes(tally.n_bytes_done)} of {format_bytes(tally.n_bytes)}")
        rate = self.bytes_per_s()
        if rate:
            parts.append(f"{format_bytes(rate)}/s")
            if left := max(0, tally.n_bytes - tally.n_bytes_done):
                parts.append(f"about {format_seconds(left / rate)} left")
        if names := self.waiting_for():
            parts.append(f"waiting for {names}")
        return ", ".join(parts)

    def bytes_per_s(self) -> float:
        """Return the mean rate since the beginning."""
        elapsed = self._clock() - self._begin_s
        return self.tally.n_bytes_done / elapsed if elapsed > 0 else 0.0

    def _say_sizes(self) -> None:
        """Say once, when all hosts are listed, how much there is; a bar shows it all the time."""
        known = self._listed | set(self.outcomes)
        if self._has_said_sizes or len(known) < self.tally.n_hosts or "complete" not in self._lines_for:
            return
        self._has_said_sizes = True
        if self.tally.n_files > self.tally.n_files_done and self._verbosity >= Verbosity.NORMAL:
            what = f"{count(self.tally.n_files, 'file')}, {format_bytes(self.tally.n_bytes)}"
            self._say(f"to fetch: {what} from {count(len(self._listed), 'host')}")

    def _line(self, least: Verbosity, host: HostId, text: str) -> None:
        if self._verbosity >= least:
            self._say(f"{self._name(host)}: {text}")

    def _name(self, host: HostId) -> str:
        return printable(self._specs[host].server_id) if host in self._specs else host
