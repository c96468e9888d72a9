"""How far a host's clock is from ours, by the fastest of several exchanges."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass

from cluster_collect.transports.protocol import RunningCommand, take_nothing

_N_EXCHANGES = 3
#: Longest wait for one answer; a slower host has told its clock once, with its listing.
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


async def ask_clock(shell: RunningCommand) -> list[ClockOffset]:
    """Ask a shell that waits for a program for its time, some times; nonsense ends it."""
    offsets: list[ClockOffset] = []
    for _ in range(_N_EXCHANGES):
        answer = bytearray()
        answered: asyncio.Future[float] = asyncio.get_running_loop().create_future()

        def receive(
            data: bytes, answer: bytearray = answer, answered: asyncio.Future[float] = answered
        ) -> float:
            answer.extend(data[:_MAX_ANSWER_BYTES])
            if _ANSWER.search(answer) and not answered.done():
                answered.set_result(time.time())
            del answer[:-_MAX_ANSWER_BYTES]
            return 0.0

        shell.redirect(receive)
        sent_s = time.time()
        shell.send(b"clock\n")
        try:
            arrived_s = await asyncio.wait_for(answered, _LONGEST_S)
        except asyncio.TimeoutError:
            break
        found = _ANSWER.search(answer)
        if found is None or not _TIME.fullmatch(found[1]):
            break
        offsets.append(offset_of(float(found[1]), sent_s, arrived_s))
    shell.redirect(take_nothing)
    return offsets
