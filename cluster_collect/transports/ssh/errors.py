"""The errors of SSH that read the same whichever library met them."""

from __future__ import annotations

import asyncio
import os
import socket

from cluster_collect.faults import (
    HostError,
    HostNameError,
    LoginError,
    LostConnectionError,
    NoFilesError,
    NoShellError,
    RemoteFailureError,
    SshSetupError,
    StalledError,
    UnreachableError,
)

# `where` begins a message: "name: ", or nothing where the host is clear.


def where(name: str) -> str:
    """Return the beginning of a message about the server `name`."""
    return f"{name}: " if name else ""


def system_error(error: Exception, name: str = "") -> HostError:
    """Return our error for one of the operating system or of asyncio."""
    if isinstance(error, socket.gaierror):
        return HostNameError(f"{where(name)}the name does not resolve: {error.strerror}", "check the address")
    if isinstance(error, (asyncio.TimeoutError, TimeoutError)):
        return StalledError(f"{where(name)}timed out")
    if isinstance(error, OSError):
        # asyncio's own text ("Connect call failed ('10.0.0.1', 22)") says less than the system's.
        text = os.strerror(error.errno) if error.errno else str(error) or type(error).__name__
        return UnreachableError(f"{where(name)}{text}", "is the host up, and its SSH port right?")
    return RemoteFailureError(f"{where(name)}{str(error) or type(error).__name__}")


def lost(name: str, text: str) -> LostConnectionError:
    """The connection broke."""
    return LostConnectionError(f"{where(name)}the connection was lost: {text}")


def login_refused(name: str) -> LoginError:
    """No key and no password was good enough."""
    return LoginError(
        f"{where(name)}the login was refused",
        "check user, key and password (one-time codes cannot be given); it is not tried again, "
        "accounts get locked",
    )


def no_agreement(name: str, text: str, advice: str) -> SshSetupError:
    """The two sides have no algorithm in common."""
    return SshSetupError(f"{where(name)}no agreement with the SSH server: {text}", advice)


def of_jump_host(error: HostError) -> HostError:
    """Return an error of a jump host as one: the reader knows the host behind it by its own name."""
    return type(error)(f"{error.message} (this is the jump host)", error.advice)


def behind_jump_host(name: str, text: str) -> UnreachableError:
    """The jump host does not lead there."""
    return UnreachableError(
        f"{where(name)}not reachable through its jump host: {text}",
        "does the jump host reach it, and is it allowed to forward (AllowTcpForwarding)?",
    )


def no_session(name: str, text: str) -> LostConnectionError:
    """The server lets us log in, and then opens nothing."""
    return LostConnectionError(
        f"{where(name)}it ended the login before anything could be asked: {text}",
        "look at the log of its sshd: a ChrootDirectory that others can write to, a missing shell, limits",
    )


def no_commands(text: str = "") -> NoShellError:
    """The server refuses to run anything."""
    return NoShellError(f"the host runs no commands for us{': ' + text if text else ''}")


def no_way_to_files(came: str = "") -> NoFilesError:
    """The server offers nothing that files could be read with; `came` says what spoils it."""
    advice = "ask its administrator for one of them"
    if came:
        advice = (
            f"its SFTP is spoiled ({came}): the login shell must run commands, and start-up files like "
            ".bashrc must print nothing without a terminal"
        )
    return NoFilesError("the host offers neither a shell nor SFTP", advice)
