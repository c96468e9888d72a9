"""Certificates of one analysis, for the clusters that we start.

Anybody who can reach a Dask scheduler can run code as its owner. So nobody gets in without the key, which is
made for this one run and known to its own workers only.
"""

from __future__ import annotations

from pathlib import Path

from distributed.security import Security

from cluster_analysis.engine.protocol import EngineError

#: File names of the authority, the certificate and its key.
CA_NAME, CERTIFICATE_NAME, KEY_NAME = "ca.pem", "cert.pem", "key.pem"


def own_certificates() -> Security:
    """Return a key and a certificate of its own authority, in memory.

    Raises:
        EngineError: `cryptography` is not installed.
    """
    try:
        return Security.temporary()
    except ImportError as error:
        raise EngineError(
            f"no certificates can be made for Dask's connections: {error}", "pip install cryptography"
        ) from error


def filed_certificates(directory: Path) -> Security:
    """Write a key and its certificate into files that only we may read; return those.

    Args:
        directory: of our own, where the workers see it.

    Raises:
        EngineError: `cryptography` is not installed.
        OSError: they cannot be written.
    """
    made = own_certificates().get_tls_config_for_role("scheduler")
    paths = {}
    for name, content in ((CA_NAME, "ca_file"), (CERTIFICATE_NAME, "cert"), (KEY_NAME, "key")):
        path = directory / name
        path.touch(mode=0o600)
        path.write_text(made[content], encoding="ascii")
        paths[name] = str(path)
    roles = ("client", "scheduler", "worker")
    return Security(
        require_encryption=True,
        tls_ca_file=paths[CA_NAME],
        **{f"tls_{role}_cert": paths[CERTIFICATE_NAME] for role in roles},
        **{f"tls_{role}_key": paths[KEY_NAME] for role in roles},
    )
