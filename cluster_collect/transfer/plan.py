"""What a collection would do: the values behind `--dry-run` and `--check`."""

from __future__ import annotations

from dataclasses import dataclass

from cluster_run.ids import HostId, ServerId
from cluster_run.manifest import CollectedFile


@dataclass(frozen=True)
class PlannedFile:
    """One file to fetch. `source` is relative to the profiler root, `path` to the run directory."""

    source: str
    path: str
    size_bytes: int


@dataclass(frozen=True)
class HostPlan:
    """What would be fetched from one host; `reason` says what is in the way, empty when nothing is."""

    host: HostId
    server_id: ServerId
    files: tuple[PlannedFile, ...] = ()
    skipped: tuple[CollectedFile, ...] = ()
    method: str = ""
    reason: str = ""
    advice: str = ""
    failure: str = ""

    @property
    def n_bytes(self) -> int:
        """Size of all planned files."""
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True)
class HostCheck:
    """How one host answered. `method` is how files would travel; `tools` are name and version pairs.

    `free_bytes` is the free space on the host's profiler root, `clock_offset_ms` its clock minus ours.
    """

    host: HostId
    server_id: ServerId
    login_s: float | None = None
    n_files: int = 0
    n_bytes: int = 0
    free_bytes: int | None = None
    clock_offset_ms: float | None = None
    method: str = ""
    tools: tuple[tuple[str, str], ...] = ()
    reason: str = ""
    advice: str = ""
    failure: str = ""
    clock_uncertainty_ms: float | None = None
