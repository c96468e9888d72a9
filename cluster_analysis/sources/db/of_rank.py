"""Readers of one rank's databases, as candidates: which database gives which table, in which order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from cluster_analysis.sources.communication_tables import CommunicationTables, without_packets
from cluster_analysis.sources.db.analysis_db import read_db_communication, read_db_steps
from cluster_analysis.sources.db.counters_db import read_link_counters, read_task_counters
from cluster_analysis.sources.db.figures_db import (
    read_db_apis,
    read_db_memory,
    read_frequency,
    read_task_kernels,
    read_task_operators,
)
from cluster_analysis.sources.db.host_times_db import read_host_times
from cluster_analysis.sources.db.matrix_db import read_db_matrix
from cluster_analysis.sources.db.profiler_db import (
    read_db_environment,
    read_db_host,
    read_db_metadata,
    read_own_device,
    read_step_times,
    read_task_communication,
    read_task_steps,
)
from cluster_analysis.sources.db.sqlite import StepTime
from cluster_analysis.sources.db.task_links_db import read_task_links
from cluster_analysis.sources.db.task_peers_db import read_task_peers
from cluster_analysis.sources.errors import BadFileError, Remark
from cluster_analysis.sources.reading import Candidates, NoDatabases, Reading, path_of
from cluster_analysis.tables.model import RankMetadata
from cluster_analysis.tables.schema import Counter

_FIGURES: Mapping[str, Callable[[Path, int, Remark], pa.Table | None]] = {
    "apis": read_db_apis,
    "kernels": read_task_kernels,
    "memory": read_db_memory,
    "frequency": read_frequency,
    "environment": read_db_environment,
}


class Databases(NoDatabases):
    """The databases of one rank."""

    def __init__(self, reading: Reading, *, is_mindspore: bool) -> None:
        """Read nothing yet."""
        self._reading = reading
        self._rank, self._is_mindspore = reading.source.rank, is_mindspore
        self._times: Sequence[StepTime] = ()

    def metadata(self) -> Candidates[RankMetadata]:
        """Of the profiler's."""
        return (("profiler_db", read_db_metadata),)

    def with_host(self, metadata: RankMetadata) -> RankMetadata:
        """Of the profiler's; the reader of its counters reports what is wrong with it."""
        path = self._reading.source.files.get("profiler_db")
        if path is None or metadata.host_name:
            return metadata
        with suppress(BadFileError):
            return read_db_host(path_of(path), metadata)
        return metadata

    def device(self) -> tuple[tuple[str, Callable[[Path], int | None]], ...]:
        """Of either; the profiler's first."""
        return (("profiler_db", read_own_device), ("analysis_db", read_own_device))

    def steps(self) -> Candidates[pa.Table]:
        """Of the table of step times, else of the tasks."""
        rank, is_mindspore = self._rank, self._is_mindspore
        return (
            ("analysis_db", lambda path, remark: read_db_steps(path, rank, remark)),
            ("profiler_db", lambda path, remark: read_task_steps(path, rank, is_mindspore, remark)),
        )

    def communication(self) -> Candidates[CommunicationTables]:
        """Of the analysis, else of the tasks."""
        rank = self._rank
        times = self._times = self._reading.first(("profiler_db", read_step_times)) or ()
        return (
            ("analysis_db", lambda path, remark: read_db_communication(path, rank, remark)),
            ("communication_db", lambda path, remark: read_db_communication(path, rank, remark, times)),
            (
                "profiler_db",
                lambda path, remark: without_packets(read_task_communication(path, rank, remark)),
            ),
        )

    def links(self) -> Candidates[pa.Table]:
        """Of the matrix, else of the tasks."""
        rank, times, is_mindspore = self._rank, self._times, self._is_mindspore
        return (
            ("analysis_db", lambda path, remark: read_db_matrix(path, rank, remark)),
            (
                "communication_db",
                lambda path, remark: read_db_matrix(path, rank, remark, times, is_mindspore),
            ),
            ("profiler_db", lambda path, remark: read_task_links(path, rank, remark)),
        )

    def peers(self) -> Candidates[pa.Table]:
        """Of the tasks."""
        return (("profiler_db", self._of_tasks(read_task_peers)),)

    def operators(self) -> Candidates[pa.Table]:
        """Of the tasks."""
        return (("profiler_db", self._of_tasks(read_task_operators)),)

    def figures(self, name: str) -> Candidates[pa.Table]:
        """Of the profiler's."""
        return (("profiler_db", self._of_tasks(_FIGURES[name])),)

    def counters(self) -> Candidates[list[Counter]]:
        """Of the profiler's: of the device, of its links, and of its host."""
        return (
            ("profiler_db", read_task_counters),
            ("profiler_db", read_link_counters),
            ("profiler_db", read_host_times),
        )

    def _of_tasks(
        self, read: Callable[[Path, int, Remark], pa.Table | None]
    ) -> Callable[[Path, Remark], pa.Table | None]:
        rank = self._rank
        return lambda path, remark: read(path, rank, remark)
