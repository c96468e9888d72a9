"""Limits how many hosts are asked at once: more only while that brings answers sooner.

Hosts may share what answers for them: a jump host, a file server, or, in a demo, one machine. If two hundred
of them are asked at once, each waits for the others, and looks as if it hung. Hosts that share nothing answer
as fast however many are asked, so soon all of them may be asked at once.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

_FIRST = 8
#: A round of twice as many is worth it if answers come faster than in the round before by this factor.
_GAIN = 1.3
#: A host whose answer takes longer than this, and this many times as long as others', holds up nobody.
_PATIENCE_S = 2.0
_PATIENCE = 4.0
#: How fast an earlier estimate of the usual time goes.
_OF_THE_NEWEST = 0.2


class Turn:
    """The place of one host that owes us an answer; safe to give back more than once."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._began_s = asking.now()
        self._is_held = True
        #: How long the host may be silent before others may take its place.
        self.patience_s = asking.patience_s

    def __enter__(self) -> Turn:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def answered(self) -> None:
        """The first bytes of its answer are here; belongs once to each turn, be it held or not."""
        self._asking.note(self._asking.now() - self._began_s)
        self.give_back()

    def give_back(self) -> None:
        """Let another host be asked."""
        if self._is_held:
            self._is_held = False
            self._asking.leave()


class Asking:
    """Counts the hosts that owe us an answer, and lets others wait.

    It begins with eight. When as many have answered as may be asked at once, the rate of their answers is
    compared with that of the round before: where it grew, twice as many may be asked, else one more.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self._most = _FIRST
        self._n_owing = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._usual_s = 0.0
        self._n_answers = 0
        self._has_waited = False
        self._round_began_s = now()
        self._rate = 0.0

    @property
    def patience_s(self) -> float:
        """How long a host may be silent before others may take its place."""
        return max(_PATIENCE_S, _PATIENCE * self._usual_s)

    async def turn(self) -> Turn:
        """Wait until one more host may be asked; whoever waited first goes first."""
        if self._n_owing < self._most and not self._waiting:
            return self.at_once()
        self._has_waited = True
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self.leave()  # the place had been given to us already
            raise
        return Turn(self)

    def at_once(self) -> Turn:
        """Count a host that owes us more, and need not wait: what was begun goes before what is new."""
        if not self._n_owing:
            self._n_answers, self._round_began_s = 0, self.now()
        self._n_owing += 1
        return Turn(self)

    def leave(self) -> None:
        """One host owes nothing more; others take the place."""
        self._n_owing -= 1
        self._admit()

    def note(self, seconds: float) -> None:
        """Note how long a host took to answer."""
        self._usual_s += (seconds - self._usual_s) * (_OF_THE_NEWEST if self._usual_s else 1.0)
        self._n_answers += 1
        if self._n_answers < self._most:
            return
        now = self.now()
        rate = self._n_answers / max(1e-6, now - self._round_began_s)
        if self._has_waited:  # else nobody was held up, and the rate says nothing
            self._most += self._most if rate > _GAIN * self._rate else 1
        self._rate, self._round_began_s = rate, now
        self._n_answers, self._has_waited = 0, bool(self._waiting)

    def _admit(self) -> None:
        while self._waiting and self._n_owing < self._most:
            first = self._waiting.popleft()
            if not first.done():
                self._n_owing += 1
                first.set_result(None)
