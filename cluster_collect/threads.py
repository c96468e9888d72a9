"""Blocking calls in daemon threads: one that hangs on a dead file server holds up nobody."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, ParamSpec, TypeVar

_T = TypeVar("_T")
_P = ParamSpec("_P")


async def in_thread(call: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Run `call` in a thread of its own and return its result or raise its error."""
    done: Future[_T] = Future()
    # Else who stops waiting would cancel it, and the thread could not say how it ended.
    done.set_running_or_notify_cancel()

    def work() -> None:
        try:
            done.set_result(call(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return await asyncio.wrap_future(done)


def in_loop(loop: asyncio.AbstractEventLoop, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """Run `work` in the loop and wait for it, from a thread; return its result or raise its error.

    The coroutine is made in the loop: one that ends before it comes to this leaves none behind.
    """
    done: Future[_T] = Future()

    async def settle() -> None:
        try:
            done.set_result(await work())
        except BaseException as error:
            done.set_exception(error)

    tasks: list[asyncio.Task[None]] = []
    loop.call_soon_threadsafe(lambda: tasks.append(loop.create_task(settle())))
    return done.result()
