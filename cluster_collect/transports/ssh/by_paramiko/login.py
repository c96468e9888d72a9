"""Logging in with paramiko: which keys are offered, and when the password is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import paramiko

from cluster_collect.faults import SshSetupError
from cluster_collect.spec import HostSpec
from cluster_collect.transports.ssh.errors import login_refused

_DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")


def log_in(
    transport: paramiko.Transport,
    user: str,
    spec: HostSpec,
    settings: paramiko.SSHConfigDict,
    password: str | None,
) -> None:
    """Try the keys, then the password, once each."""
    agent = paramiko.Agent()
    try:
        for key in _keys(spec, settings, agent):
            if _opens(transport, user, key):
                return
    except paramiko.BadAuthenticationType:
        pass  # the server takes no keys at all
    finally:
        agent.close()
    if password is not None and transport.is_active():
        transport.auth_password(user, password)
        return
    raise login_refused(spec.address)


def _opens(transport: paramiko.Transport, user: str, key: paramiko.PKey) -> bool:
    try:
        return transport.is_active() and not transport.auth_publickey(user, key)
    except paramiko.BadAuthenticationType:
        raise
    except paramiko.AuthenticationException:
        return False


def _keys(spec: HostSpec, settings: paramiko.SSHConfigDict, agent: paramiko.Agent) -> Iterator[paramiko.PKey]:
    if spec.identity_file is not None:
        path = Path(spec.identity_file).expanduser()
        try:
            passphrase = spec.passphrase.encode() if spec.passphrase else None
            key = paramiko.PKey.from_path(path, passphrase)  # type: ignore[arg-type]  # it wants bytes
            if spec.certificate_file is not None:  # one beside the key is read with it
                key.load_certificate(str(Path(spec.certificate_file).expanduser()))
        except (OSError, ValueError, TypeError, paramiko.SSHException) as error:
            raise SshSetupError(f"{path}: {error}", "check identity_file") from None
        yield key
    yield from agent.get_keys()
    named = [Path(name) for name in settings.get("identityfile", ())]
    for path in named or [Path("~/.ssh").expanduser() / name for name in _DEFAULT_KEYS]:
        try:
            yield paramiko.PKey.from_path(path)
        except (OSError, ValueError, TypeError, paramiko.SSHException):
            continue  # a default key that is not there or is encrypted is simply not offered
