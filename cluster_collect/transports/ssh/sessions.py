"""Opens the sessions of one connection: a server may allow no more than one at a time (`MaxSessions`)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

_T = TypeVar("_T")
#: A server frees the place of a session when its program has ended, a moment after we have let it go.
_PATIENCE_S, _LOOK_S = 5.0, 0.1


class SessionOpener:
    """The sessions of one connection: a first one that is refused is refused, a later one is asked for again.

    `refused` says whether an error of the library is such a refusal.
    """

    def __init__(self, refused: Callable[[Exception], bool]) -> None:
        self._refused = refused
        self._had_one = False

    async def opened(self, begin: Callable[[], Awaitable[_T]]) -> _T:
        """Return what `begin` opens; errors are its own."""
        end_s = time.monotonic() + (_PATIENCE_S if self._had_one else 0.0)
        while True:
            try:
                session = await begin()
            except Exception as error:
                if not self._refused(error) or time.monotonic() >= end_s:
                    raise
                await asyncio.sleep(_LOOK_S)
            else:
                self._had_one = True
                return session
