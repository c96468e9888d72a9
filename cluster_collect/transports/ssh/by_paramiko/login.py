"""Logging in with paramiko: which keys are offered, and when the password is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import paramiko

from cluster_collect.faults import SshSetupError
from cluster_collect.spec import HostSpec
from cluster_collect.transports.ssh.errors import login_refused
from cluster_collect.transports.ssh.private_keys import default_keys, refuse_open_keys


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
        _by_password(transport, user, password)
        return
    raise login_refused(spec.address)


def _by_password(transport: paramiko.Transport, user: str, password: str) -> None:
    """Log in with a password, also where the server asks for it in a dialogue of its own (PAM)."""
    try:
        transport.auth_password(user, password, fallback=False)
    except paramiko.BadAuthenticationType as error:
        if "keyboard-interactive" not in error.allowed_types:
            raise

        def answers(_title: str, _instructions: str, questions: list[tuple[str, bool]]) -> list[str]:
            return [password for _ in questions]

        transport.auth_interactive(user, answers)


def _opens(transport: paramiko.Transport, user: str, key: paramiko.PKey) -> bool:
    try:
        return transport.is_active() and not transport.auth_publickey(user, key)
    except paramiko.BadAuthenticationType:
        raise
    except paramiko.AuthenticationException:
        return False


def _keys(spec: HostSpec, settings: paramiko.SSHConfigDict, agent: paramiko.Agent) -> Iterator[paramiko.PKey]:
    passphrase = spec.passphrase.encode() if spec.passphrase else None
    if spec.identity_file is not None:
        refuse_open_keys([spec.identity_file])
        path = Path(spec.identity_file).expanduser()
        try:
            key = paramiko.PKey.from_path(path, passphrase)  # type: ignore[arg-type]  # it wants bytes
            if spec.certificate_file is not None:  # one beside the key is read with it
                key.load_certificate(str(Path(spec.certificate_file).expanduser()))
        except (OSError, ValueError, TypeError, paramiko.SSHException) as error:
            raise SshSetupError(f"{path}: {error}", "check identity_file") from None
        yield key
    yield from agent.get_keys()
    named = [Path(name) for name in settings.get("identityfile", ())]
    for path in named or default_keys():
        refuse_open_keys([path])
        try:
            yield paramiko.PKey.from_path(path, passphrase)  # type: ignore[arg-type]  # it wants bytes
        except (OSError, ValueError, TypeError, paramiko.SSHException):
            continue  # a default key that is not there or is encrypted is simply not offered
