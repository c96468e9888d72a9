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


@pytest.mark.parametrize(
    "kind", [*classes_of(asyncssh), TimeoutError, ConnectionResetError, OSError, socket.gaierror]
)
def test_every_error_of_asyncssh_becomes_ours(kind: type[Exception]) -> None:
    ours = cluster_collect.transports.ssh.by_asyncssh.errors.translated(made(kind))
    assert isinstance(ours, HostError)
    assert ours.message.strip() != ""


@pytest.mark.parametrize(
    "kind",
    classes_of(paramiko) + classes_of(paramiko.ssh_exception) + [EOFError, TimeoutError, BrokenPipeError],
)
def test_every_error_of_paramiko_becomes_ours(kind: type[Exception]) -> None:
    if kind is paramiko.UnknownKeyType:
        error: Exception = paramiko.UnknownKeyType(key_type="x", key_bytes=b"x")
    elif kind is paramiko.ssh_exception.NoValidConnectionsError:
        error = kind({("127.0.0.1", 22): OSError("refused")})  # type: ignore[arg-type]
    elif kind is paramiko.BadHostKeyException:
        key = paramiko.RSAKey.generate(1024)
        error = paramiko.BadHostKeyException("host", key, key)
    else:
        error = made(kind)
    ours = cluster_collect.transports.ssh.by_paramiko.errors.translated(error)
    assert isinstance(ours, HostError)
    assert ours.message.strip() != ""


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
        (socket.gaierror(-2, "unknown"), False),
        (asyncssh.SFTPNoSuchFile("no"), False),
        (asyncssh.SFTPBadMessage("no"), False),
    ],
)
def test_only_what_may_work_a_moment_later_is_tried_again(error: Exception, retryable: bool) -> None:
    assert cluster_collect.transports.ssh.by_asyncssh.errors.translated(error).retryable is retryable
