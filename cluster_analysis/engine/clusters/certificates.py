"""Certificates of one analysis, for the clusters that we start.

Whoever can reach a Dask scheduler can run code as its owner. So nobody gets in without the key, which is
made for this one run and known to its own workers only.
"""

from __future__ import annotations

from distributed.security import Security

from cluster_analysis.engine.protocol import EngineError


def own_certificates() -> Security:
    """Return a key and a certificate of its own authority, in memory.

    Raises:
        EngineError: `cryptography` is not installed.
    """
    try:
        return Security.temporary()  # type: ignore[no-any-return]
    except ImportError as error:
        raise EngineError(
            f"no certificates can be made for Dask's connections: {error}", "pip install cryptography"
        ) from error
