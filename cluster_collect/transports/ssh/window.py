"""How much a host may send ahead of what has been taken."""

from __future__ import annotations

from cluster_collect.spec import CollectOptions, HostSpec

#: Half of it halves the speed over 20 ms; twice as much is slower again.
_WINDOW_BYTES = 8 << 20
#: With a cap on the rate no more is sent ahead than may pass in this time.
_AHEAD_S = 0.25
_LEAST_WINDOW_BYTES = 64 << 10


def window_bytes(spec: HostSpec, options: CollectOptions) -> int:
    """Return the window of a host's channels: what crosses the network before it may lies in memory here."""
    caps = [cap for cap in (spec.bandwidth_bytes_per_s, options.bandwidth_bytes_per_s) if cap is not None]
    if not caps:
        return _WINDOW_BYTES
    return min(_WINDOW_BYTES, max(_LEAST_WINDOW_BYTES, int(min(caps) * _AHEAD_S)))
