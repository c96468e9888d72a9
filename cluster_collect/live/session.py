"""A program of ours on a host for the time of a capture, over any transport: one request at a time.

It undoes what was begun when this end is gone; `at_end` tells it how.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from cluster_collect.faults import (
    HostError,
    HostileDataError,
    LostConnectionError,
    NoShellError,
    RemoteFailureError,
    StalledError,
)
from cluster_collect.live.options import PROGRAM
from cluster_collect.remote.clock import offset_of
from cluster_collect.remote.host_stream import never_started, not_run
from cluster_collect.remote.listing import MarkerFilter
from cluster_collect.remote.programs import talk_program
from cluster_collect.remote.reader import reader
from cluster_collect.spec import HostSpec
from cluster_collect.transports.protocol import Dial, RunningCommand
from cluster_collect.watchdog import cancelled, within
from cluster_run.errors import spoken
from cluster_run.files import json_of
from cluster_run.ids import HostId

_MAX_LINE_BYTES = 64 << 20
#: How often a host's clock is asked for; the quickest answer tells it best.
_CLOCK_LOOKS = 4
#: For undoing what was begun: the longest of it is a poll of the profiler, of 50 s at most.
END_DEADLINE_S = 75.0


class HeldError(RemoteFailureError):
    """Somebody else captures there."""


class Session:
    """One host's program. Methods raise HostErrors only."""

    def __init__(self, host: HostId, deadline_s: float, marker: bytes) -> None:
        self.host = host
        self.answer_s = 0.0
        self.clock_offset_s = 0.0
        #: How far from the truth that may be.
        self.clock_error_s = math.inf
        self._deadline_s = deadline_s
        self._running: RunningCommand | None = None
        self._marker = MarkerFilter(marker)
        self._arrived = bytearray()
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        self._turn = asyncio.Lock()
        self._is_broken = False

    async def begin(self, running: RunningCommand) -> None:
        """Wait until the program is there, and learn how far its clock is from ours."""
        self._running = running
        await self._next_answer(self._deadline_s)
        exchanges = []
        for _ in range(_CLOCK_LOOKS):
            sent_s = time.monotonic()
            exchanges.append(offset_of(float(await self.ask("clock")), sent_s, time.monotonic()))
        quickest = min(exchanges, key=lambda one: one.uncertainty_ms)
        self.clock_offset_s, self.clock_error_s = quickest.offset_ms / 1000, quickest.uncertainty_ms / 1000

    def receive(self, data: bytes) -> float:
        """Take what the host sends."""
        self._arrived += self._marker.feed(data)
        if len(self._arrived) > _MAX_LINE_BYTES:
            raise HostileDataError("the host answers without end")
        *lines, rest = self._arrived.split(b"\n")
        self._arrived = bytearray(rest)
        for line in lines:
            self._lines.put_nowait(bytes(line))
        return 0.0

    async def ask(self, do: str, deadline_s: float | None = None, **arguments: Any) -> Any:
        """Ask for one thing and return the answer.

        A cancelled caller leaves the question to be answered, so that the request to undo it can follow.

        Raises:
            HeldError: another capture holds what is asked for.
            HostError: the host could not do it, or is gone.
        """
        asking = asyncio.ensure_future(self._ask(do, deadline_s, arguments))
        asking.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(asking)

    async def lock(self, directory: str, name: str, owner: str) -> str:
        """Take a lock of this host for the time of a capture; return who has it.

        That is this host, or another of the same capture that shares the directory.

        Raises:
            HeldError: another capture has it.
            HostError: the host could not do it, or is gone.
        """
        answer = await self.ask("lock", directory=directory, name=name, owner=owner, host=self.host)
        return str(self.host) if answer == "ours" else str(answer)

    async def _ask(self, do: str, deadline_s: float | None, arguments: Mapping[str, Any]) -> Any:
        async with self._turn:
            if self._running is None or self._is_broken:
                raise LostConnectionError("the connection to the host is gone")
            line = json.dumps({"do": do, **arguments}, ensure_ascii=True).encode() + b"\n"
            began_s = time.monotonic()
            try:
                self._running.send(line)
                answer = await self._next_answer(deadline_s or self._deadline_s)
            except (StalledError, LostConnectionError, HostileDataError):
                self._is_broken = True  # an answer that comes later would be taken for the next one's
                raise
        if deadline_s is None:
            self.answer_s = max(self.answer_s * 0.9, time.monotonic() - began_s)
        return answer

    async def _next_answer(self, deadline_s: float) -> Any:
        assert self._running is not None
        waiting = asyncio.ensure_future(self._lines.get())
        ended = asyncio.ensure_future(self._running.wait())
        try:
            await asyncio.wait({waiting, ended}, timeout=deadline_s, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done() and ended.done():
                await asyncio.sleep(0)  # its last words may be on the way from the same packet
            if not waiting.done():
                if not ended.done():
                    if not self._marker.found:
                        raise never_started(deadline_s)
                    raise StalledError(f"no answer for {deadline_s:g} s", "check whether the host hangs")
                result = ended.result()
                if not self._marker.found:
                    raise not_run(result, self._marker)
                last = result.errors.decode(errors="replace").strip().splitlines()[-1:]
                raise LostConnectionError(
                    f"the program on the host has ended{': ' + last[0][:200] if last else ''}",
                    "call it again",
                )
            return self._understood(waiting.result())
        finally:
            await cancelled(waiting)
            await cancelled(ended)

    @staticmethod
    def _understood(line: bytes) -> Any:
        if line.startswith(b"unfit "):
            raise NoShellError(
                f"the host cannot run our program: {line[6:].decode(errors='replace')}",
                "it needs python3, 3.7 or newer",
            )
        try:
            answer: Mapping[str, Any] = json_of(line)
            if "held" in answer:
                raise HeldError(str(answer["held"]), "wait for its end, or find out which one it is")
            if "error" in answer:
                raise RemoteFailureError(str(answer["error"]))
            return answer["answer"]
        except (ValueError, KeyError, TypeError) as error:
            raise HostileDataError(f"the host answers nonsense: {spoken(error)}") from None

    async def end(self) -> None:
        """Let the program undo what was begun, and wait for its end; an answer may still be due."""
        if self._running is not None:
            self._running.end_input()
            with contextlib.suppress(HostError):
                await within(self._running.wait(), END_DEADLINE_S, "undoing what was begun")


@asynccontextmanager
async def opened(spec: HostSpec, dial: Dial, deadline_s: float) -> AsyncIterator[Session]:
    """Run the program on a host while the block runs; what was begun and not taken back is undone at its end.

    Raises:
        HostError: the host cannot be reached, or cannot run it.
    """
    connection = await dial(spec)
    running: RunningCommand | None = None
    try:
        package = reader(PROGRAM)
        program = talk_program(package.boot.encode(), package.packed)
        session = Session(spec.host, deadline_s, program.marker)
        starting = connection.start(program.command, session.receive)
        running = await within(starting, deadline_s, "starting our program")
        running.send(program.stdin)
        try:
            await session.begin(running)
            yield session
        finally:
            await to_its_end(asyncio.ensure_future(session.end()))
    finally:
        if running is not None:
            await running.close()
        await connection.close()


async def to_its_end(work: asyncio.Future[Any]) -> None:
    """Wait for work that must not be left half done, even if the caller is cancelled meanwhile."""
    is_cancelled = False
    while not work.done():
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            is_cancelled = True
    if is_cancelled:
        raise asyncio.CancelledError
