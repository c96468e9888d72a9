"""The choice of who does the work: by the scheduler that the options name, or by the bytes to read."""

from __future__ import annotations

import os
from pathlib import Path

from cluster_analysis.engine import local
from cluster_analysis.engine.protocol import Engine
from cluster_analysis.options import ADDRESS_PREFIXES, NAMED_SCHEDULERS, AnalyseOptions
from cluster_run.errors import UsageError

#: With less than this to read, starting processes costs more than they save.
SMALL_RUN_BYTES = 48 * 1024 * 1024


def open_engine(options: AnalyseOptions, size_bytes: int, scratch: Path) -> Engine:
    """Return the engine that the options ask for; `auto` chooses by the bytes to read.

    Raises:
        UsageError: no scheduler of that name is known.
        EngineError: a cluster cannot be reached.
    """
    # Imported late: a run of two ranks must not pay for a cluster.
    scheduler = options.scheduler
    if scheduler.startswith(ADDRESS_PREFIXES):
        from cluster_analysis.engine.dask_cluster import connect  # noqa: PLC0415

        return connect(scheduler, options.tls)
    if scheduler == "slurm":
        from cluster_analysis.engine.slurm_cluster import start  # noqa: PLC0415

        return start(options.n_workers, scratch)
    n_workers = options.n_workers or usable_cpus()
    if scheduler == "threads":
        return local.ThreadEngine(n_workers)
    if scheduler == "processes":
        return local.ProcessEngine(n_workers, scratch)
    if scheduler == "auto":
        if size_bytes < SMALL_RUN_BYTES or n_workers < 2:
            return local.SerialEngine()
        return local.ProcessEngine(n_workers, scratch)
    raise UsageError(
        f"unknown scheduler {scheduler!r}",
        f"one of {', '.join(NAMED_SCHEDULERS)}, or an address like tcp://host:8786",
    )


def usable_cpus() -> int:
    """Return how many processors this process may use: a container's or Slurm's share, not the machine's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
