"""The transports there are, and the dialer of each host.

A new transport is a module that makes a `Transport`, and a line here. The two libraries of SSH are imported
when a host needs them: asyncssh takes a fifth of a second to load, and paramiko is an extra.
"""

from __future__ import annotations

from collections.abc import Mapping

from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_collect.transports.become import BecomingDialer
from cluster_collect.transports.bounds import Bounds
from cluster_collect.transports.local import LOCAL
from cluster_collect.transports.protocol import Dialer, Transport
from cluster_collect.transports.srun import SRUN

#: Settings of the OpenSSH client that paramiko passes over.
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


_ASYNCSSH = Transport("asyncssh", _by_asyncssh)
_PARAMIKO = Transport(
    "paramiko",
    _by_paramiko,
    not_honoured=dict.fromkeys(_ASYNCSSH_ALONE, "only transport: asyncssh honours it"),
)
#: Every transport by its name in inventories.
TRANSPORTS: Mapping[str, Transport] = {
    transport.name: transport for transport in (_ASYNCSSH, _PARAMIKO, SRUN, LOCAL)
}


class Dialers:
    """The dialers of one collection, and its bounds; each dialer is made when the first host needs it."""

    def __init__(self, options: CollectOptions, watch: ProgressListener) -> None:
        self._options = options
        self.bounds = Bounds(options.n_connecting, options.n_handshakes_per_gateway, options.n_jobs)
        self._watch = watch
        self._made: dict[str, Dialer] = {}

    def of(self, spec: HostSpec) -> Dialer:
        """Return the dialer for a host."""
        if spec.transport not in self._made:
            make = TRANSPORTS[spec.transport].make_dialer
            self._made[spec.transport] = make(self._options, self.bounds, self._watch)
        dialer = self._made[spec.transport]
        return BecomingDialer(dialer) if spec.become and spec.local is None else dialer

    async def aclose(self) -> None:
        """Close what the dialers hold."""
        for dialer in self._made.values():
            await dialer.close()
