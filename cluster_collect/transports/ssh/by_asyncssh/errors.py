"""Turns asyncssh's errors into ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import asyncssh

from cluster_collect.faults import (
    HostError,
    HostileDataError,
    HostKeyError,
    LoginError,
    RemoteFailureError,
    SshSetupError,
)
from cluster_collect.spec import HostSpec
from cluster_collect.transports.ssh.errors import (
    behind_jump_host,
    login_refused,
    lost,
    no_agreement,
    no_session,
    system_error,
)
from cluster_collect.transports.ssh.host_keys import HostKeyJudge
from cluster_run.errors import in_words

_ALLOW = "allow what it offers in ~/.ssh/config, with +: KexAlgorithms, HostKeyAlgorithms, Ciphers or MACs"
_NO_AGREEMENT = (asyncssh.KeyExchangeFailed, asyncssh.ProtocolNotSupported, asyncssh.IllegalUserName)


@contextmanager
def our_errors() -> Iterator[None]:
    """Let every error leave as ours."""
    try:
        yield
    except (OSError, asyncssh.Error) as error:
        raise translated(error) from None


def translated(error: Exception, judge: HostKeyJudge | None = None, *, by_jump: bool = False) -> HostError:
    """Return our error for one of asyncssh's or the system's; `by_jump` where a jump host was to lead on."""
    if isinstance(error, HostError):
        return error
    if judge is not None and isinstance(error, asyncssh.HostKeyNotVerifiable):
        return judge.error(error.reason)
    if isinstance(error, asyncssh.SFTPError):
        return _translated_sftp(error)
    if isinstance(error, asyncssh.DisconnectError):
        return _translated_disconnect(error)
    if isinstance(error, asyncssh.ChannelOpenError):
        return behind_jump_host(error.reason) if by_jump else no_session(error.reason)
    return system_error(error)


def _translated_disconnect(error: asyncssh.DisconnectError) -> HostError:
    if isinstance(error, asyncssh.PermissionDenied):
        return login_refused()
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return HostKeyError(f"the host key cannot be verified: {error.reason}")
    if isinstance(error, _NO_AGREEMENT):
        # What we offer is a line of twenty names; what helps is what the server does.
        return no_agreement(re.sub(r", sent \S+ and received ", "; it offers ", error.reason), _ALLOW)
    if "authentication failures" in error.reason.lower():
        return LoginError(error.reason, "name the right key with identity_file")
    return lost(error.reason)


def _translated_sftp(error: asyncssh.SFTPError) -> HostError:
    if isinstance(error, (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection)):
        return lost(error.reason)
    if isinstance(error, asyncssh.SFTPBadMessage):
        return HostileDataError(f"the SFTP server sent nonsense: {error.reason}")
    return RemoteFailureError(error.reason or type(error).__name__)


@contextmanager
def setup_errors(spec: HostSpec) -> Iterator[None]:
    """Let settings and keys of this machine that asyncssh refuses leave as our errors."""
    try:
        yield
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        raise SshSetupError(
            f"the private key {spec.identity_file or 'of this user'} cannot be opened: {error}",
            "add it to the agent (ssh-add), or give --ask-passphrase or passphrase_env",
        ) from None
    except (ValueError, OSError, asyncssh.Error) as error:
        raise SshSetupError(
            f"the SSH settings of this host cannot be used: {in_words(error)}",
            "check identity_file and ssh_config",
        ) from None
