"""A small HTTP server on loopback that keeps what it was sent."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Mailbox:
    """Where the server answers, and what it was sent: pairs of content type and body."""

    url: str
    received: list[tuple[str, bytes]] = field(default_factory=list)


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Run a server on loopback while the block runs; yields its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def mailbox(
    status: int = 200,
    answer: bytes = b"ok",
    hang: threading.Event | None = None,
    location: str = "",
    statuses: Sequence[int] = (),
    headers: Mapping[str, str] | None = None,
) -> Iterator[Mailbox]:
    """Run a server that answers the first POSTs with `statuses` and every later one alike; with `hang` only
    once that is set.
    """
    box = Mailbox("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            box.received.append((self.headers.get("Content-Type", ""), self.rfile.read(length)))
            if hang is not None:
                hang.wait(150)
            self.send_response([*statuses, *[status] * len(box.received)][len(box.received) - 1])
            for name, value in {**(headers or {}), **({"Location": location} if location else {})}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_args: object) -> None:
            return

    with serving(Handler) as port:
        box.url = f"http://127.0.0.1:{port}/hook/s3cret"
        try:
            yield box
        finally:
            if hang is not None:
                hang.set()
