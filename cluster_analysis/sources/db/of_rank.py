"""Readers of one rank's databases, as candidates: which database gives which table, in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

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
    read_db_metadata,
    read_own_device,
    read_step_times,
    read_task_communication,
    read_task_steps,
)
from cluster_analysis.sources.db.sqlite import StepTime
from cluster_analysis.sources.db.task_links_db import read_task_links, read_task_peers
from cluster_analysis.sources.errors import Remark
from cluster_analysis.sources.reading import Databases, Reader, Reading, of_rank

#: Of each table what the profiler's database gives it.
_OF_TASKS: Mapping[str, Reader[pa.Table | None]] = {
    "peers": read_task_peers,
    "operators": read_task_operators,
    "apis": read_db_apis,
    "kernels": read_task_kernels,
    "memory": read_db_memory,
    "frequency": read_frequency,
    "environment": read_db_environment,
}


def databases_of(reading: Reading) -> Databases:
    """Return which database gives which table of a rank, the best first; when steps began is read at once."""
    rank, is_mindspore = reading.source.rank, reading.source.kind.startswith("ascend_ms")

    def device(path: Path, _: Remark) -> int | None:
        return read_own_device(path)

    times: Sequence[StepTime] = reading.first(("profiler_db", read_step_times)) or ()
    return {
        **{name: (("profiler_db", of_rank(read, rank)),) for name, read in _OF_TASKS.items()},
        "metadata": (("profiler_db", read_db_metadata),),
        "device": (("profiler_db", device), ("analysis_db", device)),
        "steps": (
            ("analysis_db", of_rank(read_db_steps, rank)),
            ("profiler_db", lambda path, remark: read_task_steps(path, rank, is_mindspore, remark)),
        ),
        "communication": (
            ("analysis_db", of_rank(read_db_communication, rank)),
            ("communication_db", lambda path, remark: read_db_communication(path, rank, remark, times)),
            ("profiler_db", of_rank(read_task_communication, rank)),
        ),
        "links": (
            ("analysis_db", of_rank(read_db_matrix, rank)),
            (
                "communication_db",
                lambda path, remark: read_db_matrix(path, rank, remark, times, is_mindspore),
            ),
            ("profiler_db", of_rank(read_task_links, rank)),
        ),
        "counters": (
            ("profiler_db", read_task_counters),
            ("profiler_db", read_link_counters),
            ("profiler_db", read_host_times),
        ),
    }
