"""Connections that several hosts share: one to each jump host, however many targets lie behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from cluster_collect.watchdog import cancelled

_C = TypeVar("_C")


class SharedConnections(Generic[_C]):
    """Opens each gateway once and hands it to all who ask; a dead one is opened again."""

    def __init__(self, is_alive: Callable[[_C], bool]) -> None:
        self._is_alive = is_alive
        self._opening: dict[Hashable, asyncio.Future[_C]] = {}

    async def get(self, key: Hashable, connect: Callable[[], Awaitable[_C]]) -> _C:
        """Return the gateway `key`, connecting when nobody has, or when the connection has died."""
        known = self._opening.get(key)
        if known is None or (known.done() and not self._is_usable(known)):
            known = asyncio.ensure_future(connect())
            self._opening[key] = known
        # Shielded: a host that gives up must not take the gateway from the others.
        return await asyncio.shield(known)

    def _is_usable(self, known: asyncio.Future[_C]) -> bool:
        return not known.cancelled() and known.exception() is None and self._is_alive(known.result())

    async def close(self, close_one: Callable[[_C], Awaitable[None]]) -> None:
        """Close all gateways."""
        for known in self._opening.values():
            if known.done() and not known.cancelled() and known.exception() is None:
                await close_one(known.result())
            await cancelled(known)
        self._opening.clear()
