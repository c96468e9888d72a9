"""Events that the transfer reports to whoever watches it. All calls come from the event loop's thread."""

from __future__ import annotations

from collections.abc import Callable

from cluster_run.ids import HostId
from cluster_run.manifest import HostOutcome


class ProgressListener:
    """Watches a collection; this one passes over all of it.

    Those that do more must return quickly: the transfer waits for them.
    """

    def collection_begins(self, n_hosts: int) -> None:
        """A collection begins; counts of earlier ones are forgotten."""

    def hide(self, hidden: Callable[[HostId, str], str]) -> None:
        """Show no text about a host but as `hidden` returns it (`--hide-addresses`)."""

    def host_started(self, host: HostId) -> None:
        """Connecting to `host` begins."""

    def plan_known(self, host: HostId, n_files: int, n_bytes: int) -> None:
        """`host` has been listed: this many files and bytes are still to come (none twice)."""

    def bytes_received(self, host: HostId, n_bytes: int) -> None:
        """`n_bytes` more of file content (unpacked) have arrived."""

    def file_stored(self, host: HostId, path: str, size_bytes: int) -> None:
        """One file is whole and verified; `path` is relative to the run directory."""

    def retrying(self, host: HostId, reason: str, wait_s: float) -> None:
        """An attempt failed for `reason`; the next one starts in `wait_s`."""

    def noted(self, host: HostId, text: str) -> None:
        """Something worth a line with `-v`: the transfer method, a fallback, a new host key."""

    def host_finished(self, outcome: HostOutcome) -> None:
        """`outcome.host` is done, one way or the other."""
