"""Gives each host the dialer of its transport; its library is loaded when a host needs it."""

from __future__ import annotations

from cluster_collect.bounds import Bounds
from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import CollectOptions, HostSpec, TransportName
from cluster_collect.transport import Dialer


class Dialers:
    """The dialers of one collection."""

    def __init__(self, options: CollectOptions, bounds: Bounds, watch: ProgressListener) -> None:
        self._options = options
        self._bounds = bounds
        self._watch = watch
        self._made: dict[TransportName, Dialer] = {}

    def of(self, spec: HostSpec) -> Dialer:
        """Return the dialer for a host."""
        name: TransportName = "local" if spec.local is not None else spec.transport
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: TransportName) -> Dialer:
        # Imported here: asyncssh takes 0.2 s to load, and paramiko is an extra.
        if name == "local":
            from cluster_collect.local_transport import LocalDialer  # noqa: PLC0415

            return LocalDialer()
        if name == "paramiko":
            from cluster_collect.by_paramiko.dialer import ParamikoDialer  # noqa: PLC0415

            return ParamikoDialer(self._options, self._bounds, self._watch)
        from cluster_collect.by_asyncssh.dialer import AsyncsshDialer  # noqa: PLC0415

        return AsyncsshDialer(self._options, self._bounds, self._watch)

    async def close(self) -> None:
        """Close what the dialers hold."""
        for dialer in self._made.values():
            await dialer.close()
