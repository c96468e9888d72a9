"""`--scheduler slurm`: workers asked of Slurm with dask-jobqueue, which the extra `slurm` installs.

Partition, account and the like come from dask-jobqueue's own configuration (`jobqueue.yaml`), which
sites already have. The connections are not left to it: they are encrypted with certificates of this run,
and scheduler and workers listen where they reach each other only.
"""

from __future__ import annotations

import asyncio
import shlex
import shutil
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import dask

from cluster_analysis.engine.clusters import reach
from cluster_analysis.engine.clusters.certificates import filed_certificates
from cluster_analysis.engine.clusters.dask_engine import CONNECT_DEADLINE_S, DaskEngine, OwnClient, be_quiet
from cluster_analysis.engine.clusters.worker import NO_PAGES
from cluster_analysis.engine.protocol import EngineError, Place
from cluster_analysis.options import N_SLURM_JOBS
from cluster_run.errors import in_one_line

#: How long the first worker waits for the others, so that they are asked together what they see.
_OTHERS_DEADLINE_S = 5.0
_DEFAULT_MEMORY = "2GiB"
_DEFAULT_WALLTIME = "01:00:00"
_WORKER_MODULE = "cluster_analysis.engine.clusters.worker"


def start_on_slurm(n_jobs: int | None, place: Place) -> DaskEngine:
    """Submit worker jobs and wait for the first.

    Raises:
        EngineError: dask-jobqueue is not installed, Slurm refuses, no job starts in time, or none of the
            workers can do the work.
    """
    try:
        from dask_jobqueue import SLURMCluster  # noqa: PLC0415
    except ImportError as error:
        raise EngineError(
            "--scheduler slurm needs dask-jobqueue", "pip install 'cluster-profiler[slurm]'"
        ) from error
    n_jobs = n_jobs or N_SLURM_JOBS
    be_quiet()
    dask.config.set({**reach.SCHEDULER, **NO_PAGES})
    started = ExitStack()
    try:
        client, address = _started(started, SLURMCluster, n_jobs, place.output)
        return DaskEngine(client, address, place, stop=started.close)
    except BaseException:
        started.close()
        raise


def _started(started: ExitStack, kind: Any, n_jobs: int, output: Path) -> tuple[OwnClient, str]:
    try:
        cluster = kind(**_settings(_shared_directory(started, output)))
        started.callback(cluster.close, timeout=CONNECT_DEADLINE_S)
        cluster.scale(jobs=n_jobs)
        client = OwnClient(cluster, timeout=CONNECT_DEADLINE_S)
        started.callback(client.close, timeout=CONNECT_DEADLINE_S)
        client.wait_for_workers(1, timeout=reach.NO_WORKERS_DEADLINE_S)
    except (OSError, RuntimeError, asyncio.TimeoutError, ValueError) as error:
        raise EngineError(
            f"Slurm started no worker: {in_one_line(error)}",
            "see squeue; partition and account are set in dask-jobqueue's jobqueue.yaml",
        ) from error
    with suppress(asyncio.TimeoutError):  # others join later, if Slurm gives them a place
        client.wait_for_workers(n_jobs, timeout=_OTHERS_DEADLINE_S)
    return client, str(cluster.scheduler_address)


def _settings(shared: Path) -> dict[str, Any]:
    """Return the arguments of SLURMCluster; what the site has set in its configuration stays."""
    processes = _configured("processes") or 1
    return {
        "python": _isolated_python(),
        "cores": _configured("cores") or 1,
        "processes": processes,
        "memory": _configured("memory") or _DEFAULT_MEMORY,
        "walltime": _configured("walltime") or _DEFAULT_WALLTIME,
        # The script's shell puts it in: that directory is the worker's node's.
        "local_directory": _configured("local-directory") or "${TMPDIR:-/tmp}",
        "security": filed_certificates(shared),
        "scheduler_options": {
            "dashboard": False,
            "dashboard_address": "127.0.0.1:0",
            **_where_to_listen(),
            **(_configured("scheduler-options") or {}),
        },
        "worker_command": _WORKER_MODULE,
        # dask-jobqueue says this to Dask's own command only.
        "worker_extra_args": [
            *(_configured("worker-extra-args") or []),
            *([f"--nworkers={processes}"] if processes > 1 else []),
        ],
    }


def _isolated_python() -> str:
    """Return the interpreter of the workers, which takes no module from the directory that its job begins in.

    dask-jobqueue runs it with `-m`, which looks there first.
    """
    # -P is of Python 3.11; -I leaves out the user's own packages and PYTHONPATH, too.
    option = "-P" if sys.version_info >= (3, 11) else "-I"
    return f"{_configured('python') or shlex.quote(sys.executable)} {option}"


def _configured(name: str) -> Any:
    return dask.config.get(f"jobqueue.slurm.{name}", None)


def _where_to_listen() -> dict[str, str]:
    if _configured("interface"):
        return {}
    queue = _configured("queue")
    nodes = reach.slurm_node_addresses([f"--partition={queue}"] if queue else [])
    host = reach.address_towards(nodes)
    if not host:
        raise EngineError(
            "no address of this host by which Slurm's nodes can reach it",
            "name an interface in dask-jobqueue's jobqueue.yaml, like interface: ib0",
        )
    return {"host": host}


def _shared_directory(started: ExitStack, output: Path) -> Path:
    """Return a directory for the workers' key that only we may enter; it is removed when the cluster ends."""
    configured = _configured("shared-temp-directory")
    if not configured:
        started.callback(_remove_if_empty, output)
        output.mkdir(parents=True, exist_ok=True)
    parent = Path(configured).expanduser() if configured else output.absolute()
    directory = tempfile.mkdtemp(prefix=".dask-", dir=parent)
    started.callback(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()
