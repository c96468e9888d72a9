"""The choice of who does the work, by the options or the bytes to read, and of where large tables lie."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from cluster_analysis.engine import local
from cluster_analysis.engine.protocol import Engine, Place
from cluster_analysis.options import ADDRESS_PREFIXES, AnalyseOptions, check_scheduler
from cluster_analysis.sources.columns.place import on_disk
from cluster_analysis.tables.model import RankSource

#: With less than this to read, starting processes costs more than they save.
SMALL_RUN_BYTES = 48 * 1024 * 1024
#: The tables take about this share of the bytes they were read from (1.16 KB of JSON become 0.2 KB).
_TABLE_SHARE = 0.25
#: Files that a worker is asked for, to check whether it sees the run.
_MAX_PROBED_FILES = 64


def open_engine(options: AnalyseOptions, sources: Sequence[RankSource], scratch: Path) -> Engine:
    """Return the engine that the options ask for; `auto` chooses by the bytes to read.

    Args:
        options: they name the scheduler.
        sources: what is to be read.
        scratch: a directory of our own.

    Raises:
        UsageError: no scheduler of that name is known.
        EngineError: a cluster cannot be reached or started, or its workers cannot do the work.
    """
    check_scheduler(options.scheduler)
    n_workers = options.n_workers or usable_cpus()
    if options.scheduler in ("dask", "slurm") or options.scheduler.startswith(ADDRESS_PREFIXES):
        return _open_cluster(options, sources, scratch)
    if options.scheduler == "threads":
        return local.ThreadEngine(n_workers)
    if options.scheduler == "processes":
        return local.ProcessEngine(n_workers, scratch)
    size_bytes = sum(source.size_bytes for source in sources)
    if size_bytes < SMALL_RUN_BYTES or n_workers < 2:
        return local.InProcessEngine()
    return local.ProcessEngine(n_workers, scratch)


def _open_cluster(options: AnalyseOptions, sources: Sequence[RankSource], scratch: Path) -> Engine:
    # Imported late: a run of two ranks must not pay for a cluster.
    from cluster_analysis.engine.clusters import connect, local_cluster, slurm  # noqa: PLC0415

    place = Place(_one_file_a_host(sources), options.output_folder)
    if options.scheduler == "dask":
        return local_cluster.start_local(options.n_workers or usable_cpus(), scratch)
    if options.scheduler == "slurm":
        return slurm.start_on_slurm(options.n_workers, place)
    return connect.connect(options.scheduler, options.tls, place)


def _one_file_a_host(sources: Sequence[RankSource]) -> tuple[str, ...]:
    """Return what workers are asked for: hosts' data may lie in file systems of their own."""
    of_host = {source.host: file for source in sources for file in source.files.values()}
    return tuple(str(on_disk(Path(file))) for file in list(of_host.values())[:_MAX_PROBED_FILES])


def usable_cpus() -> int:
    """Return how many processors this process may use: a container's or Slurm's share, not the machine's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def must_file(engine: Engine, size_bytes: int, limit_bytes: int) -> bool:
    """Return whether the large tables must go to files of the scratch directory, if tasks see it at all."""
    return engine.shares_scratch and (engine.wants_files or size_bytes * _TABLE_SHARE > limit_bytes)
