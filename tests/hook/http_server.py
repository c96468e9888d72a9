"""A small HTTP server on loopback that keeps what it was sent."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass
class Mailbox:
    """Where the server answers, and what it was sent: pairs of content type and body."""

    url: str
    received: list[tuple[str, bytes]] = field(default_factory=list)


def a_server(directory: Path) -> tuple[ssl.SSLContext, Path]:
    """Return how a server at 127.0.0.1 speaks TLS, and its authority, which has no key identifier."""
    now = datetime.datetime.now(datetime.timezone.utc)
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)]) for text in ("kubernetes", "server")]
    of_each: list[x509.ExtensionType] = [x509.BasicConstraints(ca=True, path_length=None), here]
    for name, key, extension in zip(names, keys, of_each, strict=True):
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(names[0])
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(extension, critical=False)
            .sign(keys[0], hashes.SHA256())
        )
        file = directory / f"{name.rdns[0].rfc4514_string()}.pem"
        file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (directory / "key.pem").write_bytes(keys[1].private_bytes(*key_form))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(directory / "CN=server.pem", directory / "key.pem")
    return tls, directory / "CN=kubernetes.pem"


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
    tls: ssl.SSLContext | None = None,
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

    with serving(Handler, tls) as port:
        box.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}/hook/s3cret"
        try:
            yield box
        finally:
            if hang is not None:
                hang.set()
