"""How far a host's clock is from ours: the fastest of several exchanges says it best."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass

from cluster_collect.transports.protocol import RunningCommand

_N_EXCHANGES = 3
#: One answer may take so long; a host that is slower has told its clock once, with its listing.
_LONGEST_S = 2.0
_ANSWER = re.compile(rb"clock ([^\0]*)\0")
_TIME = re.compile(rb"\d{1,12}(?:\.\d{1,9})?")
_MAX_ANSWER_BYTES = 200


@dataclass(frozen=True)
class ClockOffset:
    """The host's clock minus ours, and how much either may be wrong by the time that the exchange took."""

    offset_ms: float
    uncertainty_ms: float


def offset_of(host_s: float, sent_s: float, arrived_s: float) -> ClockOffset:
    """Return what one exchange tells: the host read its clock between `sent_s` and `arrived_s`."""
    half_s = (arrived_s - sent_s) / 2
    return ClockOffset((host_s - sent_s - half_s) * 1000, abs(half_s) * 1000)


def best(offsets: Iterable[ClockOffset]) -> ClockOffset | None:
    """Return the most certain one; None where there is none."""
    return min(offsets, key=lambda one: one.uncertainty_ms, default=None)


class Exchange:
    """One question for the host's time, which is sent now; what comes is given to `feed` until it is told."""

    #: What asks a shell that waits for a program.
    QUESTION = b"clock\n"

    def __init__(self) -> None:
        self._sent_s = time.time()
        self._answer = bytearray()
        self.offset: ClockOffset | None = None
        self._is_told = False

    def feed(self, data: bytes) -> bool:
        """Take what the host sends; return whether that ends the answer, be it a time or nonsense."""
        arrived_s = time.time()
        self._answer.extend(data[:_MAX_ANSWER_BYTES])
        found = _ANSWER.search(self._answer)
        ends = bool(found) and not self._is_told
        if found and ends:
            self._is_told = True
            if _TIME.fullmatch(found[1]):
                self.offset = offset_of(float(found[1]), self._sent_s, arrived_s)
        del self._answer[:-_MAX_ANSWER_BYTES]
        return ends


async def ask_clock(shell: RunningCommand) -> list[ClockOffset]:
    """Ask a shell that waits for a program for its time, some times."""
    offsets: list[ClockOffset] = []
    for _ in range(_N_EXCHANGES):
        answered = asyncio.Event()
        exchange = Exchange()

        def receive(data: bytes, exchange: Exchange = exchange, answered: asyncio.Event = answered) -> float:
            if exchange.feed(data):
                answered.set()
            return 0.0

        shell.redirect(receive)
        shell.send(Exchange.QUESTION)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(answered.wait(), _LONGEST_S)
        if exchange.offset is None:
            break
        offsets.append(exchange.offset)
    shell.redirect(lambda _data: 0.0)
    return offsets
