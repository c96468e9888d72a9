"""What a look at the hosts tells: the values behind `--dry-run` and `--check`."""

from __future__ import annotations

from dataclasses import dataclass

from cluster_run.manifest import HostOutcome


@dataclass(frozen=True)
class PlannedFile:
    """One file to fetch. `source` is relative to the profiler root, `path` to the run directory."""

    source: str
    path: str
    size_bytes: int


@dataclass(frozen=True)
class HostLook:
    """How one host answered, and what would be fetched from it.

    `outcome` says what is in the way, if anything; its files are those that are not taken. `method` is how
    files would travel; `tools` are name and version pairs. `free_bytes` is the free space on the host's
    profiler root.
    """

    outcome: HostOutcome
    files: tuple[PlannedFile, ...] = ()
    method: str = ""
    login_s: float | None = None
    free_bytes: int | None = None
    tools: tuple[tuple[str, str], ...] = ()

    @property
    def n_bytes(self) -> int:
        """Size of all planned files."""
        return sum(file.size_bytes for file in self.files)
