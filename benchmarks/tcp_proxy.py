"""A TCP proxy on loopback that delays, cuts, damages or stops the stream; for tests and benchmarks.

python -m benchmarks.tcp_proxy 127.0.0.2:2222 --delay-ms 10     # prints its own port, runs until killed
"""

from __future__ import annotations

import argparse
import asyncio
import threading
from dataclasses import dataclass
from types import TracebackType

_PIECE_BYTES = 256 * 1024
#: How long a client has to read what was sent before its connection is cut.
_READING_S = 0.1


@dataclass(frozen=True)
class Mischief:
    """What happens to one connection; byte counts are of the stream from the server to the client."""

    cut_after_bytes: int | None = None
    stop_after_bytes: int | None = None
    flip_byte_at: int | None = None


class TcpProxy:
    """Forwards connections to a target, each way `delay_s` later; the first connections with mischief.

    Use it as a context manager; `port` is where it listens. `n_connections` and `n_bytes` (from the
    server) count what has passed.
    """

    def __init__(
        self, host: str, port: int, *, delay_s: float = 0.0, mischief: tuple[Mischief, ...] = ()
    ) -> None:
        self._target = (host, port)
        self._delay_s = delay_s
        self._mischief = list(mischief)
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.port = 0
        self.n_connections = 0
        self.n_bytes = 0

    def __enter__(self) -> TcpProxy:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_PIECE_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self.n_connections += 1
        mischief = self._mischief.pop(0) if self._mischief else Mischief()
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target, limit=_PIECE_BYTES)
        except OSError:
            writer.transport.abort()
            return
        both = (
            asyncio.ensure_future(self._forward(reader, far_writer)),
            asyncio.ensure_future(self._forward_back(far_reader, writer, mischief)),
        )
        try:
            await asyncio.gather(*both, return_exceptions=True)
        except asyncio.CancelledError:
            pass  # the proxy stops; asyncio's stream callback would report a cancelled task as an error
        finally:
            for one in both:
                one.cancel()
            writer.transport.abort()
            far_writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        sending = asyncio.ensure_future(self._send(waiting, writer))
        try:
            while data := await reader.read(_PIECE_BYTES):
                waiting.put_nowait((self._loop.time() + self._delay_s, data))
            waiting.put_nowait((self._loop.time() + self._delay_s, b""))
            await sending
        finally:
            sending.cancel()

    async def _send(self, waiting: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        while True:
            due_s, data = await waiting.get()
            wait_s = due_s - self._loop.time()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            if not data:
                writer.write_eof()
                return
            writer.write(data)
            await writer.drain()

    async def _forward_back(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, mischief: Mischief
    ) -> None:
        if mischief == Mischief():
            counted = _Counted(reader, self)
            await self._forward(counted, writer)  # type: ignore[arg-type]
            return
        n_seen = 0
        while data := await reader.read(_PIECE_BYTES):
            begin, n_seen = n_seen, n_seen + len(data)
            self.n_bytes += len(data)
            if mischief.flip_byte_at is not None and begin <= mischief.flip_byte_at < n_seen:
                damaged = bytearray(data)
                damaged[mischief.flip_byte_at - begin] ^= 1
                data = bytes(damaged)
            if mischief.cut_after_bytes is not None and n_seen >= mischief.cut_after_bytes:
                writer.write(data[: mischief.cut_after_bytes - begin])
                await writer.drain()
                # A reset takes from the client what it has not read yet.
                await asyncio.sleep(_READING_S)
                writer.transport.abort()
                return
            if mischief.stop_after_bytes is not None and n_seen >= mischief.stop_after_bytes:
                writer.write(data[: mischief.stop_after_bytes - begin])
                await asyncio.Event().wait()
            writer.write(data)
            await writer.drain()


class _Counted:
    """A reader that counts for the proxy how much has passed."""

    def __init__(self, reader: asyncio.StreamReader, proxy: TcpProxy) -> None:
        self._reader = reader
        self._proxy = proxy

    async def read(self, n_bytes: int) -> bytes:
        """Read as the stream does."""
        data = await self._reader.read(n_bytes)
        self._proxy.n_bytes += len(data)
        return data


def main() -> None:
    """Run one proxy until killed."""
    parser = argparse.ArgumentParser(description="Delay TCP connections to a target.")
    parser.add_argument("target", help="address:port")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="each way")
    arguments = parser.parse_args()
    host, _, port = arguments.target.rpartition(":")
    with TcpProxy(host, int(port), delay_s=arguments.delay_ms / 1000) as proxy:
        print(proxy.port, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
