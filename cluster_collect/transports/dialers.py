"""Connects to the hosts of one collection, each by its transport.

A library of SSH is imported when a host needs it: asyncssh takes a fifth of a second to load, and paramiko is
an extra.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from cluster_collect.faults import SshSetupError
from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import PARAMIKO_NAME, SRUN_NAME, CollectOptions, HostSpec
from cluster_collect.transports.become import BecomingConnection
from cluster_collect.transports.bounds import Bounds
from cluster_collect.transports.local import LocalConnection
from cluster_collect.transports.protocol import HostConnection
from cluster_collect.transports.srun import SrunDialer
from cluster_collect.transports.ssh.host_keys import HostKeys
from cluster_run.errors import MissingExtraError, extra

if TYPE_CHECKING:
    from cluster_collect.transports.ssh.by_asyncssh.dialer import AsyncsshDialer
    from cluster_collect.transports.ssh.by_paramiko.dialer import ParamikoDialer

SshDialer: TypeAlias = "AsyncsshDialer | ParamikoDialer"


class Dialers:
    """Holds the bounds of one collection, and what its connections share (gateways, known hosts, keys)."""

    def __init__(self, options: CollectOptions, watch: ProgressListener) -> None:
        self._options = options
        self._host_keys = HostKeys(options, watch)
        self.bounds = Bounds(options.n_connecting, options.n_handshakes_per_gateway, options.n_jobs)
        self._srun = SrunDialer(options, self.bounds)
        self._ssh: dict[str, SshDialer] = {}

    async def dial(self, spec: HostSpec) -> HostConnection:
        """Connect and log in.

        Raises:
            HostError: it did not work; `retryable` says whether trying again makes sense.
        """
        if spec.local is not None:
            return LocalConnection()
        dialer = self._srun if spec.transport == SRUN_NAME else self._by_ssh(spec.transport)
        connection: HostConnection = await dialer.dial(spec)
        return BecomingConnection(connection, spec) if spec.become else connection

    def _by_ssh(self, library: str) -> SshDialer:
        if library not in self._ssh:
            self._ssh[library] = _maker(library)(self._options, self.bounds, self._host_keys)
        return self._ssh[library]

    def names(self, spec: HostSpec) -> Mapping[str, str]:
        """That of `HostKeys`."""
        return self._host_keys.names(spec.host)

    async def aclose(self) -> None:
        """Close what the connections shared."""
        for dialer in self._ssh.values():
            await dialer.close()


def _maker(library: str) -> type[SshDialer]:
    if library == PARAMIKO_NAME:
        try:
            with extra(library):
                from cluster_collect.transports.ssh.by_paramiko.dialer import ParamikoDialer  # noqa: PLC0415
        except MissingExtraError as error:
            raise SshSetupError(error.message, error.advice) from error
        return ParamikoDialer
    from cluster_collect.transports.ssh.by_asyncssh.dialer import AsyncsshDialer  # noqa: PLC0415

    return AsyncsshDialer
