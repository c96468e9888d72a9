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
    loop = asyncio.get_running_loop()
    result: asyncio.Future[_T] = loop.create_future()

    def settle(value: _T | None, error: BaseException | None) -> None:
        if result.done():
            return
        if error is not None:
            result.set_exception(error)
        else:
            result.set_result(value)  # type: ignore[arg-type]  # without an error there is a value

    def work() -> None:
        value: _T | None = None
        failure: BaseException | None = None
        try:
            value = call(*args, **kwargs)
        except Exception as error:
            failure = error
        try:
            loop.call_soon_threadsafe(settle, value, failure)
        except RuntimeError:
            return  # the loop has ended; nobody waits any more

    threading.Thread(target=work, daemon=True).start()
    return await result


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
