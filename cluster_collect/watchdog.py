"""Deadlines: one for a whole step, and one that starts again with every sign of progress.

Only time counts in which this process could have read what came. If it got no processor, or was busy with
other hosts, it looks late, and no host is to blame.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from cluster_collect.faults import DeadlineError, StalledError

_S = TypeVar("_S")
_T = TypeVar("_T")
#: Seconds between two looks at the time. A look that comes later shows how long this process could not read.
_LOOK_S = 1.0
_LOOKS = 10
_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 0.01, 3600.0


class Watchdog:
    """Ends work that shows no sign of life for `deadline_s`.

    Bytes count for the time that they take at `least_bytes_per_s`, so that work that only drips ends too.
    `when_quiet` is called once as soon as nothing has come for `quiet_s`.
    """

    def __init__(
        self,
        deadline_s: float,
        quiet_s: float = 2.0,
        when_quiet: Callable[[], None] | None = None,
        *,
        least_bytes_per_s: float = 0.0,
    ) -> None:
        self._deadline_s = deadline_s
        self._least_bytes_per_s = least_bytes_per_s
        self._quiet_s = min(quiet_s, deadline_s)
        self._when_quiet = when_quiet
        self._last = self._last_sent = time.monotonic()
        self._next_look_s = math.inf

    def progress(self) -> None:
        """Something happened, on our side or on the other."""
        self._last = self._last_sent = time.monotonic()

    def alive(self) -> None:
        """The other side says that it works, and sends nothing yet."""
        self._last = time.monotonic()

    def received(self, n_bytes: int) -> None:
        """Bytes came that are what was asked for."""
        worth_s = n_bytes / self._least_bytes_per_s if self._least_bytes_per_s > 0 else math.inf
        self._later(worth_s)

    def paused(self, pause_s: float) -> None:
        """Expect nothing for `pause_s`: we asked for the pause ourselves."""
        self._last += pause_s
        self._last_sent += pause_s

    def _later(self, seconds: float) -> None:
        """Move all times later, but not into the future."""
        now = time.monotonic()
        self._last = max(self._last, min(now, self._last + seconds))
        self._last_sent = max(self._last_sent, min(now, self._last_sent + seconds))

    async def guard(self, work: Awaitable[_T], waiting_for: str) -> _T:
        """Await `work`.

        Raises:
            StalledError: no progress for the deadline; `work` has been cancelled.
        """
        self.progress()
        return await _watched(work, lambda: self._look(waiting_for))

    def _look(self, waiting_for: str) -> float:
        """Return for how long all is well; raise what `guard` does."""
        now = time.monotonic()
        self._later(max(0.0, now - self._next_look_s))
        silent_s, quiet_s = now - self._last, now - self._last_sent
        if silent_s >= self._deadline_s:
            raise StalledError(
                f"no answer for {self._deadline_s:g} s while {waiting_for}",
                "check whether the host hangs; call it again to go on",
            )
        if quiet_s >= self._quiet_s and self._when_quiet is not None:
            self._when_quiet()
            self._when_quiet = None
        left_s = min(_LOOK_S, self._deadline_s / _LOOKS, self._deadline_s - silent_s)
        if self._when_quiet is not None:
            left_s = min(left_s, self._quiet_s - quiet_s)
        self._next_look_s = now + max(_SHORTEST_WAIT_S, left_s)
        return self._next_look_s - now


async def within(work: Awaitable[_T], deadline_s: float, waiting_for: str) -> _T:
    """Await `work` for at most `deadline_s`.

    Raises:
        StalledError: the time is over; `work` has been cancelled.
    """
    return await Watchdog(deadline_s).guard(work, waiting_for)


async def until(work: Awaitable[_T], left_s: Callable[[], float], why: str, advice: str = "") -> _T:
    """Await `work` while `left_s` says that there is time for it, however much it brings.

    Raises:
        DeadlineError: the time is over; `work` has been cancelled.
    """

    def look() -> float:
        left = left_s()
        if left <= 0:
            raise DeadlineError(why, advice)
        # It may stand still while the work waits for its turn: then it is looked at at intervals.
        return min(max(left, _LOOK_S / _LOOKS), _LONGEST_WAIT_S)

    return await _watched(work, look)


async def _watched(work: Awaitable[_T], look: Callable[[], float]) -> _T:
    """Await `work`; `look` says after how long it is to be asked again, and raises what ends the work."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait((task,), timeout=look())
        return task.result()
    finally:
        await cancelled(task)


async def each(work: Callable[[_S], Awaitable[_T]], items: Iterable[_S], n_at_once: int) -> list[_T]:
    """Do `work` for each item, `n_at_once` at a time; return the results in the order of the items.

    The first error cancels all others and is raised.
    """
    waiting = enumerate(items)
    results: dict[int, _T] = {}

    async def in_turn() -> None:
        for place, item in waiting:
            results[place] = await work(item)

    tasks = [asyncio.ensure_future(in_turn()) for _ in range(n_at_once)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            await cancelled(task)
    return [results[place] for place in sorted(results)]


async def cancelled(task: asyncio.Future[_T]) -> None:
    """Cancel a task and wait until it has ended, whatever it ends with."""
    if not task.done():
        task.cancel()
        await asyncio.wait((task,))
    if not task.cancelled():
        task.exception()  # fetched, or asyncio would report it as forgotten
