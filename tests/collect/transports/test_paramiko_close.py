"""Closing what paramiko opened, on a connection that is gone."""

from __future__ import annotations

import asyncio

import paramiko
import pytest

from cluster_collect.transports.ssh.by_paramiko.errors import closed


@pytest.mark.parametrize("error", [EOFError(), OSError("Socket is closed"), paramiko.SSHException("gone")])
def test_an_end_that_cannot_be_sent_any_more_is_no_error(error: Exception) -> None:
    tried = []

    def close() -> None:
        tried.append(error)
        raise error

    asyncio.run(closed(close))
    assert tried == [error]


def test_a_mistake_of_ours_in_closing_is_told() -> None:
    def close() -> None:
        raise TypeError

    with pytest.raises(TypeError):
        asyncio.run(closed(close))
