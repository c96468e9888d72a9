"""Whether a host is tried again after a failure, and when."""

from __future__ import annotations

import random

from cluster_collect.faults import HostError
from cluster_collect.spec import CollectOptions
from cluster_collect.transports.bounds import HostTime


class Retries:
    """The attempts at one host.

    A host is tried again after a failure that may be over a moment later, at most `n_attempts` times and
    `give_up_s` long without anything brought; time in our own queues does not count. An attempt that brought
    something begins the count anew.
    """

    def __init__(self, options: CollectOptions, taken: HostTime) -> None:
        self._options = options
        self._taken = taken
        self._begin_anew()

    def wait_s(self, error: HostError, *, has_brought: bool) -> float | None:
        """Return how long to wait before the next attempt; None where there is none.

        Args:
            error: how the attempt ended.
            has_brought: whether it brought anything that `Intake.brought` counts: files, or kept beginnings.
        """
        if has_brought:
            self._begin_anew()
        fruitless_s = self._taken.own_s - self._before_s
        is_over = self._attempt >= self._options.n_attempts or fruitless_s >= self._options.give_up_s
        if is_over or not error.retryable:
            return None
        self._attempt += 1
        return backoff_s(self._attempt - 1, self._options.backoff_first_s, self._options.backoff_most_s)

    def _begin_anew(self) -> None:
        self._attempt = 1
        self._before_s = self._taken.own_s


def backoff_s(attempt: int, first_s: float, most_s: float) -> float:
    """Return a random wait after attempt number `attempt` (from 1): a doubling bound, full jitter."""
    bound = min(most_s, first_s * 2 ** min(attempt - 1, 32))
    return random.uniform(0.0, bound)
