"""Names with several addresses, of which not all lead to the host."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from demo.sshd import SshLab
from tests.collect.conftest import Start
from tests.collect.helpers import BOTH

pytestmark = pytest.mark.slow  # a server is started


@contextmanager
def black_hole(address: str, port: int) -> Iterator[None]:
    """An address that answers no request for a connection: its queue of them is full."""
    with ExitStack() as stack:
        hole = stack.enter_context(socket.socket())
        hole.bind((address, port))
        hole.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex((address, port))
        yield


@BOTH
def test_an_address_that_never_answers_holds_up_no_other_one_of_the_same_name(
    start: Start, lab: SshLab, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    host = start(transport=transport).having(address="two-addresses")
    lab.trust("two-addresses", host.server.port, host.server.host_key)
    resolved = socket.getaddrinfo

    def both(name: Any, *rest: Any, **more: Any) -> list[Any]:
        if name != "two-addresses":
            return list(resolved(name, *rest, **more))
        return [found for one in ("127.0.0.9", host.server.address) for found in resolved(one, *rest, **more)]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    with black_hole("127.0.0.9", host.server.port):
        host.collect_all()
