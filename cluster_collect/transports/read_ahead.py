"""Reads a remote file with many requests on the way, and hands the pieces on in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from cluster_collect.transports.protocol import Receive
from cluster_collect.watchdog import cancelled

PIECE_BYTES = 255 * 1024
_N_AHEAD = 16


async def read_in_order(
    read: Callable[[int, int], Awaitable[bytes]], size_bytes: int, receive: Receive, begin: int = 0
) -> None:
    """Give a file's content from `begin` on to `receive`.

    `read(n_bytes, offset)` may return less than asked for. One byte more than `size_bytes` is asked for,
    so that a file that has grown shows.
    """
    offsets = iter(range(begin, size_bytes + 1, PIECE_BYTES))
    ahead: deque[tuple[int, asyncio.Future[bytes]]] = deque()
    try:
        while True:
            while len(ahead) < _N_AHEAD and (offset := next(offsets, None)) is not None:
                ahead.append((offset, asyncio.ensure_future(read(PIECE_BYTES, offset))))
            if not ahead:
                return
            start, coming = ahead.popleft()
            data = await coming
            end = start
            while data:
                pause_s = receive(data)
                if pause_s > 0:
                    await asyncio.sleep(pause_s)
                end += len(data)
                if end - start >= PIECE_BYTES:
                    break
                if end > size_bytes:
                    return
                data = await read(PIECE_BYTES - (end - start), end)
            else:
                return  # the end of the file
    finally:
        for _, coming in ahead:
            await cancelled(coming)
