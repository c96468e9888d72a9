"""Runs a coroutine to its end or to the first Ctrl-C or SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from cluster_run.command_line import SIGNALS, is_ignored
from cluster_run.errors import ExitCode, InterruptedRunError

T = TypeVar("T")

_TICK_S = 0.2
#: Each host that is logged in to takes one. Programs that we start may close all that there could be.
_MOST_OPEN_FILES = 65536


def run_interruptibly(work: Coroutine[Any, Any, T], tick: Callable[[], None]) -> T:
    """Run `work`, calling `tick` a few times a second.

    The first signal cancels the work, which may clean up; a second one ends the process at once
    (files are written whole or not at all, so nothing half-written is left under a final name).

    Raises:
        InterruptedRunError: a signal came.
    """
    _allow_open_files()
    results: list[T] = []
    asyncio.run(_supervised(work, tick, results.append))
    return results[0]


def _allow_open_files() -> None:
    """Let this process open as many files as the system allows: by default it is 1024, or 256."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_OPEN_FILES if most == resource.RLIM_INFINITY else min(most, _MOST_OPEN_FILES)
    if now != resource.RLIM_INFINITY and now < wanted:
        with contextlib.suppress(OSError, ValueError):  # a system may allow less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


async def _supervised(
    work: Coroutine[Any, Any, T], tick: Callable[[], None], give: Callable[[T], None]
) -> None:
    # Not returned: asyncio.run spells out the main task's result, however large, when it restores SIGINT.
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    received: list[signal.Signals] = []

    def interrupt(number: signal.Signals) -> None:
        if received:
            print("interrupted twice: ending at once", file=sys.stderr, flush=True)
            os._exit(ExitCode.INTERRUPTED)
        received.append(number)
        task.cancel()

    handled = [number for number in SIGNALS if not is_ignored(number)]
    for number in handled:
        loop.add_signal_handler(number, interrupt, number)
    ticker = loop.create_task(_tick_forever(tick))
    try:
        give(await task)
    except asyncio.CancelledError:
        if received:
            raise InterruptedRunError(f"interrupted by {received[0].name}") from None
        raise
    finally:
        ticker.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await ticker
        for number in handled:
            loop.remove_signal_handler(number)


async def _tick_forever(tick: Callable[[], None]) -> None:
    while True:
        tick()
        await asyncio.sleep(_TICK_S)
