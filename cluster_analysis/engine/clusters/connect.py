"""`--scheduler tcp://…` and `tls://…`: a cluster that somebody else runs."""

from __future__ import annotations

import asyncio

from distributed.security import Security

from cluster_analysis.engine.clusters.dask_engine import CONNECT_DEADLINE_S, DaskEngine, OwnClient, be_quiet
from cluster_analysis.engine.protocol import EngineError, Place
from cluster_analysis.options import TlsFiles
from cluster_run.errors import in_one_line


def connect(address: str, tls: TlsFiles | None, place: Place) -> DaskEngine:
    """Connect to a running scheduler; without `tls` the certificates of Dask's own configuration count.

    Raises:
        EngineError: it cannot be reached, refuses, or has no workers in time that can do the work.
    """
    security = None
    if tls is not None:
        security = Security(
            tls_ca_file=tls.ca_file,
            tls_client_cert=tls.certificate,
            tls_client_key=tls.key,
            require_encryption=True,
        )
    be_quiet()
    try:
        # How long it tries is Dask's own setting, distributed.comm.timeouts.connect: 30 s.
        client = OwnClient(address, security=security, name="cluster-analyse")
    except (OSError, asyncio.TimeoutError, ValueError, TypeError) as error:
        raise EngineError(
            f"no Dask scheduler at {address}: {in_one_line(error)}",
            "check the address and that it runs; tls:// needs --tls-ca-file, --tls-cert and --tls-key",
        ) from error
    try:
        client.wait_for_workers(1, timeout=CONNECT_DEADLINE_S)
        return DaskEngine(client, address, place)
    except asyncio.TimeoutError:
        client.close()
        raise EngineError(
            f"the Dask cluster at {address} has no workers", f"start some: dask worker {address}"
        ) from None
    except EngineError:
        client.close()
        raise
