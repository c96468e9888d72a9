"""The wire of msMonitor's daemon: one request a connection, a length and JSON, in TLS if it has certificates.

The program on the host only carries the bytes: no port has to be forwarded, and no certificate leaves this
machine.
"""

from __future__ import annotations

import base64
import itertools
import json
import ssl
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster_collect.faults import RemoteFailureError, SshSetupError
from cluster_collect.live.session import Session
from cluster_run.errors import spoken
from cluster_run.files import json_of

_LENGTH = struct.Struct("=i")
_MOST_BYTES = 8192
#: Connections of this process, which the programs on the hosts tell apart by number.
links = itertools.count()


@dataclass(frozen=True)
class DaemonStatus:
    """The daemon's status of the job's profiler; steps are -1 where it has none."""

    state: str
    monitor: str
    step: int
    start: int
    stop: int


@dataclass
class Daemon:
    """One host's daemon."""

    session: Session
    port: int
    context: ssl.SSLContext | None = field(repr=False)

    async def ask(self, request: Mapping[str, object]) -> Mapping[str, Any]:
        """Send one request and return the answer.

        Raises:
            RemoteFailureError: nothing listens there, or it is no msMonitor.
        """
        frame = framed(request)
        wire = _Wire(self.session, self.port)
        try:
            answer = await (wire.plain(frame) if self.context is None else wire.secret(frame, self.context))
        finally:
            await wire.close()
        try:
            document: Mapping[str, Any] = json_of(answer)
            document.keys()
        except (ValueError, AttributeError):
            raise RemoteFailureError(
                f"port {self.port} does not answer as msMonitor does",
                "does it want TLS (--msmonitor-certs), or is another program there?",
            ) from None
        return document

    async def status(self) -> DaemonStatus:
        """Return how the job's profiler is."""
        reply = await self.ask({"fn": "getStatus"})
        if "nputrace" not in reply:
            raise RemoteFailureError(
                f"port {self.port} is a dynolog that knows nothing of Ascend",
                "start the dynolog of msMonitor there",
            )
        steps = (int(reply.get(name, -1)) for name in ("current_step", "start_step", "stop_step"))
        return DaemonStatus(str(reply["nputrace"]), str(reply.get("npumonitor", "")), *steps)


class _Wire:
    """One connection to the daemon."""

    def __init__(self, session: Session, port: int) -> None:
        self._session = session
        self._port = port
        self._link = next(links)
        self._is_open = False

    async def close(self) -> None:
        """Close it."""
        if self._is_open:
            self._is_open = False
            await self._session.ask("talk", link=self._link, port=self._port, ends=True)

    async def _exchange(self, data: bytes) -> bytes:
        """Send, and return what comes; empty at its end."""
        self._is_open = False  # where this fails the program has closed it
        reply = await self._session.ask(
            "talk", link=self._link, port=self._port, data=base64.b64encode(data).decode(), wants=True
        )
        self._is_open = True
        return base64.b64decode(reply) if reply else b""

    async def plain(self, frame: bytes) -> bytes:
        """Return the answer to a frame, without its length."""
        received = await self._exchange(frame)
        while received and not _is_whole(received):
            more = await self._exchange(b"")
            if not more:
                break
            received += more
        return received[_LENGTH.size :]

    async def secret(self, frame: bytes, context: ssl.SSLContext) -> bytes:
        """Do the same in TLS, which ends here."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_hostname=None)
        received = b""
        is_shaken = is_sent = False
        while True:
            try:
                if not is_shaken:
                    tls.do_handshake()
                    is_shaken = True
                if not is_sent:
                    tls.write(frame)
                    is_sent = True
                piece = tls.read(_MOST_BYTES)
                received += piece
                if not piece or _is_whole(received):
                    return received[_LENGTH.size :]
            except ssl.SSLWantReadError:
                data = await self._exchange(outgoing.read())
                if data:
                    incoming.write(data)
                else:
                    incoming.write_eof()
            except ssl.SSLError as error:
                raise RemoteFailureError(
                    f"port {self._port} and our certificates do not agree: {error.reason or error}",
                    "look at --msmonitor-certs; the daemon checks ours, and we check its",
                ) from None


def framed(request: Mapping[str, object]) -> bytes:
    """Return a request as it travels.

    Raises:
        RemoteFailureError: it is longer than the daemon takes.
    """
    content = json.dumps(request).encode()
    if not 0 < len(content) < _MOST_BYTES:
        raise RemoteFailureError("a request is longer than msMonitor takes", "give a shorter --live-dir")
    return _LENGTH.pack(len(content)) + content


def _is_whole(received: bytes) -> bool:
    return len(received) >= _LENGTH.size and len(received) >= _LENGTH.size + _LENGTH.unpack_from(received)[0]


def client_context(directory: str) -> ssl.SSLContext | None:
    """Return how TLS is spoken with ca.crt, client.crt and client.key of a directory; None without one.

    Raises:
        SshSetupError: they cannot be used.
    """
    if not directory:
        return None
    here = Path(directory).expanduser()
    try:
        # The default one refuses, from Python 3.13 on, authorities without extensions that nobody needs here.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(here / "ca.crt")
        context.load_cert_chain(here / "client.crt", here / "client.key")
    except OSError as error:
        raise SshSetupError(
            f"{directory}: the certificates cannot be used: {spoken(error)}",
            "it needs ca.crt, client.crt and client.key",
        ) from None
    # The daemon is reached on its own loopback, under whatever name its certificate has.
    context.check_hostname = False
    return context
