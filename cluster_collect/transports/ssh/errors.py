"""The errors of SSH that read the same whichever library met them.

None names its host: whoever shows one says whose it is.
"""

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
from cluster_run.errors import in_words


def system_error(error: Exception) -> HostError:
    """Return our error for one of the operating system or of asyncio."""
    if isinstance(error, socket.gaierror):
        return _unresolved(error)
    if isinstance(error, (asyncio.TimeoutError, TimeoutError)):
        return StalledError("timed out")
    if isinstance(error, OSError):
        if error.filename:  # a network has none
            return SshSetupError(in_words(error), "this machine needs it: see ssh_config")
        # asyncio's own text ("Connect call failed ('10.0.0.1', 22)") says less than the system's.
        text = os.strerror(error.errno) if error.errno else str(error) or type(error).__name__
        if isinstance(error, (ConnectionResetError, BrokenPipeError)):
            return lost(text)
        return UnreachableError(text, "is the host up, and its SSH port right?")
    return RemoteFailureError(str(error) or type(error).__name__)


def _unresolved(error: socket.gaierror) -> HostError:
    text = f"the name does not resolve: {error.strerror}"
    if error.errno == socket.EAI_AGAIN:  # nobody said that there is no such name
        return UnreachableError(text, "does the name server of this machine answer?")
    return HostNameError(text, "check the address")


def lost(text: str) -> LostConnectionError:
    """The connection broke."""
    return LostConnectionError(f"the connection was lost: {text}")


def login_refused() -> LoginError:
    """No key and no password was good enough."""
    return LoginError(
        "the login was refused",
        "check user, key and password (one-time codes cannot be given); it is not tried again, "
        "accounts get locked",
    )


def no_agreement(text: str, advice: str) -> SshSetupError:
    """The two sides have no algorithm in common."""
    return SshSetupError(f"no agreement with the SSH server: {text}", advice)


def of_jump_host(error: HostError, name: str) -> HostError:
    """Return an error of a jump host as one: what is shown names the host behind it."""
    return type(error)(f"{name}: {error.message} (this is the jump host)", error.advice)


def behind_jump_host(text: str) -> UnreachableError:
    """The jump host does not lead there."""
    return UnreachableError(
        f"not reachable through its jump host: {text}",
        "does the jump host reach it, is its port right, and is forwarding allowed (AllowTcpForwarding)?",
    )


def no_session(text: str) -> LostConnectionError:
    """The server lets us log in, and then opens nothing."""
    return LostConnectionError(
        f"it ended the login before anything could be asked: {text}",
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
