"""Both implementations of SSH, as the rest of the collector knows them.

Each is imported when a host needs it: asyncssh takes a fifth of a second to load, and paramiko is an extra.
"""

from __future__ import annotations

from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import CollectOptions
from cluster_collect.transports.bounds import Bounds
from cluster_collect.transports.protocol import Dialer, Transport

_ASYNCSSH_ALONE = (
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


def _by_asyncssh(options: CollectOptions, bounds: Bounds, watch: ProgressListener) -> Dialer:
    from cluster_collect.transports.ssh.by_asyncssh.dialer import AsyncsshDialer  # noqa: PLC0415

    return AsyncsshDialer(options, bounds, watch)


def _by_paramiko(options: CollectOptions, bounds: Bounds, watch: ProgressListener) -> Dialer:
    from cluster_collect.transports.ssh.by_paramiko.dialer import ParamikoDialer  # noqa: PLC0415

    return ParamikoDialer(options, bounds, watch)


ASYNCSSH = Transport("asyncssh", _by_asyncssh)
PARAMIKO = Transport(
    "paramiko",
    _by_paramiko,
    not_honoured=dict.fromkeys(_ASYNCSSH_ALONE, "only transport: asyncssh honours it"),
)
