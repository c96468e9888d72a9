"""Carries bytes between a connection to this host and a server on it."""

from __future__ import annotations

import base64
import http.client
import socket
from typing import Any

_MAX_BYTES = 1 << 20
_open: dict[int, socket.socket] = {}


def talk(
    link: int, port: int, data: str = "", wants: bool = False, longest_s: float = 5.0, ends: bool = False
) -> str | None:
    """Send base64 to a port of this host, over one connection a `link`; return the answer if that is wanted.

    None says that the server has closed the connection; `ends` closes it after that.
    """
    connection = _open.get(link)
    if connection is None:
        connection = _open[link] = _connected(port, longest_s)
    connection.settimeout(longest_s)
    answer: str | None = ""
    try:
        if data:
            connection.sendall(base64.b64decode(data))
        if wants:
            received = connection.recv(_MAX_BYTES)
            answer = base64.b64encode(received).decode() if received else None
    except OSError:
        ends = True
        raise
    finally:
        if ends:
            _open.pop(link).close()
    return answer


def _connected(port: int, longest_s: float) -> socket.socket:
    errors = []
    for address in ("127.0.0.1", "::1"):  # msMonitor's daemon listens on IPv6, which not every host maps
        try:
            return socket.create_connection((address, port), longest_s)
        except OSError as error:
            errors.append(error)
    errors[0].filename = f"port {port}"
    raise errors[0]


def post(port: int, path: str, longest_s: float) -> dict[str, Any]:
    """POST nothing to a server of this host; return its status and the begin of what it says."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=longest_s)
    connection.sock = _connected(port, longest_s)
    try:
        connection.request("POST", path, body=b"", headers={"Content-Length": "0"})
        response = connection.getresponse()
        return {"status": response.status, "text": response.read(500).decode(errors="replace")}
    finally:
        connection.close()
