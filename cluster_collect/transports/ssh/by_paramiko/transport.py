"""What the rest of the collector knows of this transport."""

from __future__ import annotations

from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import CollectOptions
from cluster_collect.transports.bounds import Bounds
from cluster_collect.transports.protocol import Dialer, Transport

_NOT_HONOURED = (
    "ciphers",
    "macs",
    "kexalgorithms",
    "hostkeyalgorithms",
    "proxycommand",
    "userknownhostsfile",
    "identityagent",
    "certificatefile",
    "gssapiauthentication",
    "pkcs11provider",
    "securitykeyprovider",
)


def _dialer(options: CollectOptions, bounds: Bounds, watch: ProgressListener) -> Dialer:
    # Imported here: the library is an extra.
    from cluster_collect.transports.ssh.by_paramiko.dialer import ParamikoDialer  # noqa: PLC0415

    return ParamikoDialer(options, bounds, watch)


PARAMIKO = Transport(
    "paramiko",
    _dialer,
    not_honoured=dict.fromkeys(_NOT_HONOURED, "only transport: asyncssh honours it"),
)
