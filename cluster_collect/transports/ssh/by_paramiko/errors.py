"""Turns paramiko's errors into ours."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import paramiko

from cluster_collect.faults import HostError, RemoteFailureError
from cluster_collect.threads import in_thread
from cluster_collect.transports.ssh.errors import (
    behind_jump_host,
    login_refused,
    lost,
    no_agreement,
    no_session,
    system_error,
)

#: What paramiko's calls raise.
ERRORS = (OSError, EOFError, paramiko.SSHException, paramiko.SFTPError)


async def closed(close: Callable[[], None]) -> None:
    """Close something; paramiko may complain that on a lost connection there is nothing to end."""
    with contextlib.suppress(*ERRORS):
        await in_thread(close)


def translated_sftp(error: Exception) -> HostError:
    """Return our error for one that SFTP met: what it says of a file is not the connection's end."""
    if isinstance(error, OSError) and not isinstance(error, ConnectionError):
        text = str(error) if error.errno is None else error.strerror or str(error)
        return RemoteFailureError(text or type(error).__name__)
    return translated(error)


def translated(error: Exception, *, by_jump: bool = False) -> HostError:
    """Return our error for one of paramiko's or the system's; `by_jump` where a jump host was to lead on."""
    if isinstance(error, HostError):
        return error
    if isinstance(error, paramiko.AuthenticationException):
        return login_refused()
    if isinstance(error, paramiko.ChannelException):
        return behind_jump_host(error.text) if by_jump else no_session(error.text)
    if isinstance(error, paramiko.ssh_exception.IncompatiblePeer):
        return no_agreement(str(error), "try transport: asyncssh")
    is_lost = isinstance(error, (EOFError, paramiko.SSHException))
    return lost(str(error) or "it was closed") if is_lost else system_error(error)
