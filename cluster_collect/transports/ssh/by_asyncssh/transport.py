"""What the rest of the collector knows of this transport."""

from __future__ import annotations

from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import CollectOptions
from cluster_collect.transports.bounds import Bounds
from cluster_collect.transports.protocol import Dialer, Transport


def _dialer(options: CollectOptions, bounds: Bounds, watch: ProgressListener) -> Dialer:
    # Imported here: the library takes 0.2 s to load.
    from cluster_collect.transports.ssh.by_asyncssh.dialer import AsyncsshDialer  # noqa: PLC0415

    return AsyncsshDialer(options, bounds, watch)


ASYNCSSH = Transport("asyncssh", _dialer)
