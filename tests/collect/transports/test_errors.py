"""Every error of the foreign libraries leaves as one of ours."""

from __future__ import annotations

import asyncio
import inspect
import socket

import asyncssh
import paramiko
import pytest

import cluster_collect.transports.ssh.by_asyncssh.errors
import cluster_collect.transports.ssh.by_paramiko.errors
from cluster_collect.faults import HostError


def made(kind: type[Exception]) -> Exception:
    """An instance of an error class, whatever it wants to be made of."""
    fillings = (
        (),
        ("reason",),
        (1, "reason"),
        ("reason", "en"),
        ("name", [], []),
        ("host", {}),
        ("a", "b", "c"),
        (None, "true", None, 1, None, 1, "", ""),
    )
    for filling in fillings:
        try:
            error = kind(*filling)
        except (TypeError, ValueError, AttributeError):
            continue
        if str(error) is not None:
            return error
    parameters = inspect.signature(kind).parameters
    return kind(*["x"] * len(parameters))


def classes_of(module: object) -> list[type[Exception]]:
    return [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Exception) and not issubclass(value, Warning)
    ]


def test_every_error_of_asyncssh_becomes_ours() -> None:
    for kind in (*classes_of(asyncssh), TimeoutError, ConnectionResetError, OSError, socket.gaierror):
        ours = cluster_collect.transports.ssh.by_asyncssh.errors.translated(made(kind))
        assert isinstance(ours, HostError), kind
        assert ours.message.strip() != "", kind


def test_every_error_of_paramiko_becomes_ours() -> None:
    key = paramiko.RSAKey.generate(1024)
    known = {
        paramiko.UnknownKeyType: lambda kind: kind(key_type="x", key_bytes=b"x"),
        paramiko.ssh_exception.NoValidConnectionsError: lambda kind: kind({("127.0.0.1", 22): OSError("no")}),
        paramiko.BadHostKeyException: lambda kind: kind("host", key, key),
    }
    ours = [EOFError, TimeoutError, BrokenPipeError]
    for kind in (*classes_of(paramiko), *classes_of(paramiko.ssh_exception), *ours):
        error = known.get(kind, made)(kind)
        told = cluster_collect.transports.ssh.by_paramiko.errors.translated(error)
        assert isinstance(told, HostError), kind
        assert told.message.strip() != "", kind


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        (asyncssh.ConnectionLost("lost"), True),
        (asyncssh.MACError("bad"), True),
        (ConnectionRefusedError(111, "refused"), True),
        (asyncio.TimeoutError(), True),
        (asyncssh.SFTPConnectionLost("lost"), True),
        (asyncssh.PermissionDenied("no"), False),
        (asyncssh.HostKeyNotVerifiable("no"), False),
        (asyncssh.KeyExchangeFailed("no"), False),
        (socket.gaierror(socket.EAI_NONAME, "unknown"), False),
        (socket.gaierror(socket.EAI_AGAIN, "no server of names answers"), True),
        (ConnectionResetError(104, "reset"), True),
        (FileNotFoundError(2, "missing", "nc"), False),
        (asyncssh.SFTPNoSuchFile("no"), False),
        (asyncssh.SFTPBadMessage("no"), False),
    ],
)
def test_only_what_may_work_a_moment_later_is_tried_again(error: Exception, retryable: bool) -> None:
    assert cluster_collect.transports.ssh.by_asyncssh.errors.translated(error).retryable is retryable
