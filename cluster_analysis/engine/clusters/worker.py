"""`python -m cluster_analysis.engine.clusters.worker ADDRESS …`: a Dask worker that listens on one address.

Dask's own listens on all interfaces of its host. This one takes the address by which it reaches its
scheduler, and shows no web pages. The options are those of `dask worker`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import dask
from distributed.cli.dask_worker import main as dask_worker

from cluster_analysis.engine.clusters.reach import address_towards

#: A worker serves pages even without a dashboard: these settings leave none of them, on no interface.
NO_PAGES: Mapping[str, Any] = {"distributed.worker.http.routes": [], "distributed.scheduler.http.routes": []}
NO_DASHBOARD = ("--no-dashboard", "--dashboard-address=127.0.0.1:0")


def worker_arguments(arguments: Sequence[str]) -> list[str]:
    """Return the options of `dask worker` with the address to listen on, unless they say where."""
    says_where = any(one.partition("=")[0] in ("--host", "--interface") for one in arguments)
    scheduler = next((one for one in arguments if "://" in one), "")
    host = address_towards([urlsplit(scheduler).hostname or ""]) if scheduler and not says_where else ""
    return [*arguments, *NO_DASHBOARD, *([f"--host={host}"] if host else [])]


def main(arguments: Sequence[str]) -> None:
    """Work until the scheduler ends, or is gone for longer than --death-timeout."""
    dask.config.set(NO_PAGES)
    dask_worker(worker_arguments(arguments), prog_name="dask worker")


if __name__ == "__main__":
    main(sys.argv[1:])
