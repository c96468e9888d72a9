"""Workers asked of Slurm with dask-jobqueue, an extra: `pip install cluster-profiler[slurm]`.

Partition, account and the like come from dask-jobqueue's own configuration (`jobqueue.yaml`), which
sites already have.
"""

from __future__ import annotations

from pathlib import Path

import dask
from distributed import Client

from cluster_analysis.engine.dask_cluster import CONNECT_DEADLINE_S, NO_WORKERS_DEADLINE_S, DaskEngine
from cluster_analysis.engine.protocol import EngineError

#: Workers to ask for unless told otherwise.
DEFAULT_N_JOBS = 4
#: A worker that says nothing for so long is given up. Dask looks once in this time, so that a hung worker
#: costs up to twice as much: a minute, not Dask's ten.
WORKER_TTL = "30s"
_DEFAULT_MEMORY = "2GiB"
_DEFAULT_WALLTIME = "01:00:00"


def start(n_jobs: int | None, scratch: Path) -> DaskEngine:
    """Submit worker jobs and wait for the first.

    Raises:
        EngineError: dask-jobqueue is not installed, Slurm refuses, or no job starts in time.
    """
    try:
        from dask_jobqueue import SLURMCluster  # noqa: PLC0415
    except ImportError as error:
        raise EngineError(
            "--scheduler slurm needs dask-jobqueue", "pip install 'cluster-profiler[slurm]'"
        ) from error
    n_jobs = n_jobs or DEFAULT_N_JOBS
    dask.config.set(
        {"distributed.scheduler.worker-ttl": WORKER_TTL, "distributed.scheduler.allowed-failures": 2}
    )
    configured = {
        "cores": dask.config.get("jobqueue.slurm.cores", None) or 1,
        "processes": dask.config.get("jobqueue.slurm.processes", None) or 1,
        "memory": dask.config.get("jobqueue.slurm.memory", None) or _DEFAULT_MEMORY,
        "walltime": dask.config.get("jobqueue.slurm.walltime", None) or _DEFAULT_WALLTIME,
    }
    try:
        cluster = SLURMCluster(**configured, local_directory=str(scratch))
        cluster.scale(jobs=n_jobs)
        client = Client(cluster, timeout=CONNECT_DEADLINE_S)
        client.wait_for_workers(1, timeout=NO_WORKERS_DEADLINE_S)
    except (OSError, RuntimeError, TimeoutError, ValueError) as error:
        raise EngineError(
            f"Slurm started no worker: {' '.join(str(error).split()) or type(error).__name__}",
            "see squeue; partition and account are set in dask-jobqueue's jobqueue.yaml",
        ) from error
    return DaskEngine(client, str(cluster.scheduler_address), cluster)
