"""A cap on bytes a second, kept by telling the sender how long to pause."""

from __future__ import annotations

import time
from collections.abc import Callable


class BandwidthCap:
    """A token bucket that never refuses bytes: it says how long to wait before taking more.

    `burst_s` of the rate may pass at once, so that short pauses of the sender are made up for.
    """

    def __init__(
        self, bytes_per_s: float, burst_s: float = 0.25, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._bytes_per_s = bytes_per_s
        self._burst_s = burst_s
        self._clock = clock
        self._paid_until = clock()

    def pause_after(self, n_bytes: int) -> float:
        """Book `n_bytes` that have arrived; return the seconds to pause before more may come."""
        now = self._clock()
        self._paid_until = max(self._paid_until, now - self._burst_s) + n_bytes / self._bytes_per_s
        return max(0.0, self._paid_until - now)
