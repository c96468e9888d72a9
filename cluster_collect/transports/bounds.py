"""Limits of one collection: how many things may happen at once, and how many bytes a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar

from cluster_collect.transports.asking import Asking, Turn

#: Seconds of a cap's rate that may pass at once: they make up for short pauses of the sender.
BURST_S = 0.25


class HostTime:
    """The time that the work on one host has taken, and the part of it that is not the host's fault."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._excused_s = 0.0
        self._n_waits = 0
        self._waits_since_s = 0.0

    @property
    def own_s(self) -> float:
        """The host's own time: all but queues, and pauses that we asked for."""
        now_s = time.monotonic()
        waiting_s = now_s - self._waits_since_s if self._n_waits else 0.0
        return now_s - self._began_s - self._excused_s - waiting_s

    def excuse(self, seconds: float) -> None:
        """A pause was our wish."""
        self._excused_s += seconds

    @contextmanager
    def waits(self) -> Iterator[None]:
        """It waits for its turn inside."""
        if not self._n_waits:
            self._waits_since_s = time.monotonic()
        self._n_waits += 1
        try:
            yield
        finally:
            self._n_waits -= 1
            if not self._n_waits:
                self._excused_s += time.monotonic() - self._waits_since_s


#: That of the host that the running task works for.
HOST_TIME: ContextVar[HostTime] = ContextVar("host_time")


@contextmanager
def queueing() -> Iterator[None]:
    """Book the time inside as time in a queue."""
    taken = HOST_TIME.get(None)
    with nullcontext() if taken is None else taken.waits():
        yield


class TransferSlot:
    """One of the places for hosts that send data; given back early by a host that has gone quiet."""

    def __init__(self, semaphore: asyncio.Semaphore, turn: Turn) -> None:
        self._semaphore = semaphore
        self._turn = turn
        self.patience_s = turn.patience_s
        self._held = True

    def begun(self) -> None:
        """The host sends."""
        self._turn.give_back()

    def give_back(self) -> None:
        """Let another host go first; safe to call again."""
        self._turn.give_back()
        if self._held:
            self._held = False
            self._semaphore.release()


class Bounds:
    """The limits of one collection: handshakes in all and per gateway, and hosts that send at once."""

    def __init__(self, n_connecting: int, n_per_gateway: int, n_transfers: int) -> None:
        self._connecting = asyncio.Semaphore(n_connecting)
        self._n_per_gateway = n_per_gateway
        self._gateways: dict[str, asyncio.Semaphore] = {}
        self._transfers = asyncio.Semaphore(n_transfers)
        self._asking = Asking()

    @asynccontextmanager
    async def handshake(self, gateway: str) -> AsyncIterator[None]:
        """Wait for a turn to connect through `gateway` (the jump host, or the address itself)."""
        one_gateway = self._gateways.setdefault(gateway, asyncio.Semaphore(self._n_per_gateway))
        async with AsyncExitStack() as held:
            with queueing():
                await held.enter_async_context(one_gateway)
                await held.enter_async_context(self._connecting)
            yield

    async def asking(self) -> Turn:
        """Wait for a turn to ask a host what it has."""
        with queueing():
            return await self._asking.turn()

    @asynccontextmanager
    async def transfer(self) -> AsyncIterator[TransferSlot]:
        """Wait for a turn to send data."""
        with queueing():
            await self._transfers.acquire()
        slot = TransferSlot(self._transfers, self._asking.at_once())
        try:
            yield slot
        finally:
            slot.give_back()


class Pauses:
    """Pauses that overlap: of what comes at once, each portion asks for all that is owed by then."""

    def __init__(self) -> None:
        self._until_s = 0.0

    def longer_by(self, pause_s: float) -> float:
        """Return how much longer nothing is expected, with a pause that begins now."""
        now_s = time.monotonic()
        before_s = max(now_s, self._until_s)
        self._until_s = max(before_s, now_s + pause_s)
        return self._until_s - before_s


class BandwidthCap:
    """A token bucket that never refuses bytes: it says how long to wait before taking more."""

    def __init__(self, bytes_per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._bytes_per_s = bytes_per_s
        self._clock = clock
        self._paid_until = clock()

    def pause_after(self, n_bytes: int) -> float:
        """Book `n_bytes` that have arrived; return the seconds to pause before more may come."""
        now = self._clock()
        self._paid_until = max(self._paid_until, now - BURST_S) + n_bytes / self._bytes_per_s
        return max(0.0, self._paid_until - now)
