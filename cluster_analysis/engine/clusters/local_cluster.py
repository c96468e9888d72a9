"""`--scheduler dask`: a Dask cluster on this machine, with a dashboard for those who want to look."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import warnings
from pathlib import Path

from distributed import LocalCluster

from cluster_analysis.engine.clusters.certificates import own_certificates
from cluster_analysis.engine.clusters.dask_engine import DaskEngine, OwnClient, be_quiet
from cluster_analysis.engine.protocol import EngineError
from cluster_run.errors import in_one_line

_LOOPBACK = "127.0.0.1"
#: Dask's usual port; another one where it is taken.
_DASHBOARD_PORT = 8787
_START_DEADLINE_S = 120.0


def start_local(n_workers: int, scratch: Path) -> DaskEngine:
    """Start scheduler and workers on loopback, encrypted, and wait for the workers.

    Args:
        n_workers: how many processes.
        scratch: where workers put what does not fit into their memory.

    Raises:
        EngineError: they do not start.
    """
    be_quiet()
    security = own_certificates()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Port .* is already in use", UserWarning)
            cluster = LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                host=_LOOPBACK,
                protocol="tls://",
                security=security,
                dashboard_address=f"{_LOOPBACK}:{_DASHBOARD_PORT}",
                # Its workers serve pages too.
                worker_dashboard_address=None,
                local_directory=str(scratch),
                silence_logs=logging.CRITICAL + 1,
            )
        client = OwnClient(cluster, name="cluster-analyse")
        client.wait_for_workers(n_workers, timeout=_START_DEADLINE_S)
    except (OSError, RuntimeError, asyncio.TimeoutError) as error:
        raise EngineError(
            f"no Dask cluster could be started here: {in_one_line(error)}",
            "leave --scheduler out to work without one",
        ) from error
    link = cluster.dashboard_link
    if importlib.util.find_spec("bokeh") is None:
        link += " (it shows little without bokeh: pip install 'cluster-profiler[dashboard]')"
    return DaskEngine(
        client,
        str(cluster.scheduler_address),
        remarks=(f"Dask's dashboard, while this runs: {link}",),
        stop=cluster.close,
    )
