"""Connections without a jump host, of which asyncssh hears the end after all that came before it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import asyncssh

#: Patience with one address of a name before the next one is tried beside it.
_NEXT_ADDRESS_S = 1.0
#: More than anybody says before the login.
_MOST_UNREAD_BYTES = 1 << 20


class Hearer(Protocol):
    """Is told what the server says before the login, and knows whether that is over."""

    logged_in: bool

    def hear(self, data: bytes) -> None:
        """Take more of what the server says."""


class Straight:
    """Connects without a jump host: by itself asyncssh waits for one address as long as the system does."""

    def __init__(self, base: asyncssh.SSHClientConnectionOptions, hearer: Hearer) -> None:
        self._base = base
        self._hearer = hearer

    async def create_connection(
        self, factory: Callable[[], asyncio.Protocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        """Connect to the first address of `host` that answers; asyncssh asks for no more of a tunnel."""
        protocol = factory()
        transport, _ = await asyncio.get_running_loop().create_connection(
            lambda: _LastWords(protocol, self._hearer),
            host,
            port,
            family=self._base.family,
            local_addr=self._base.local_addr,
            happy_eyeballs_delay=_NEXT_ADDRESS_S,
        )
        return transport, protocol


class _LastWords(asyncio.Protocol):
    """Tells asyncssh the end of a connection after all that came before it: why the server hung up.

    asyncio throws away what lies unread when a write fails, and asyncssh works packets off in tasks.
    """

    def __init__(self, protocol: asyncio.Protocol, hearer: Hearer) -> None:
        self._protocol = protocol
        self._hearer = hearer
        self._transport = asyncio.BaseTransport()
        self._end: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Pass it on."""
        self._transport = transport
        self._protocol.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Pass it on."""
        if not self._hearer.logged_in:
            self._hearer.hear(data)
        self._protocol.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass it on, where the other side cut it off after what the system still holds."""
        if exc is None:
            self._protocol.connection_lost(None)
            return
        with suppress(OSError):  # the socket is open until this returns
            self.data_received(os.read(self._transport.get_extra_info("socket").fileno(), _MOST_UNREAD_BYTES))
        self._end = asyncio.ensure_future(self._once_understood(lambda: self._protocol.connection_lost(exc)))

    def eof_received(self) -> bool:
        """Keep the connection open until its end is told."""
        self._end = asyncio.ensure_future(self._once_understood(self._protocol.eof_received))
        return True

    async def _once_understood(self, tell: Callable[[], object]) -> None:
        # It has no public way to them. Behind the login some wait for answers, and no reason is left to hear.
        while not self._hearer.logged_in and (tasks := getattr(self._protocol, "_tasks", None)):
            await asyncio.wait(tuple(tasks))
        tell()
