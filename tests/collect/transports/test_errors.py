"""Every error of the foreign libraries leaves as one of ours; each library lives in one package."""

from __future__ import annotations

import ast
import asyncio
import inspect
import socket
from pathlib import Path

import asyncssh
import paramiko
import pytest

import cluster_collect.transports.ssh.by_asyncssh.errors
import cluster_collect.transports.ssh.by_paramiko.errors
from cluster_collect import faults
from cluster_collect.faults import HostError

PACKAGE = Path(faults.__file__).parent


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


@pytest.mark.parametrize(("library", "home"), [("asyncssh", "by_asyncssh"), ("paramiko", "by_paramiko")])
def test_a_foreign_library_is_imported_in_one_package(library: str, home: str) -> None:
    users = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            if any(name.split(".")[0] == library for name in names):
                users.add(path.parent.name)
    assert users == {home}
