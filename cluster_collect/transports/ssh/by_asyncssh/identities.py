"""The private keys and certificates that hosts are logged in to with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from cluster_collect.spec import HostSpec
from cluster_collect.transports.ssh.by_asyncssh.library import asyncssh
from cluster_collect.transports.ssh.handshake import certificate_path
from cluster_collect.transports.ssh.private_keys import refuse_open_keys


class Identities:
    """Reads, and decrypts, each key once for all hosts."""

    def __init__(self) -> None:
        self._keys: dict[str, asyncssh.SSHKey] = {}

    def options(self, spec: HostSpec) -> dict[str, Any]:
        """Return the options for the host's own key; one that we cannot open may still be in the agent.

        The agent's other keys are not offered: asyncssh would offer them first, and servers hang up
        after the sixth.
        """
        try:
            return {"client_keys": [self._key(spec)], "agent_path": ""}
        except (asyncssh.KeyImportError, FileNotFoundError):
            public = Path(f"{spec.identity_file}.pub").expanduser()
            if spec.passphrase is None and os.environ.get("SSH_AUTH_SOCK") and public.is_file():
                return {"agent_identities": [str(public)]}
            raise

    def _key(self, spec: HostSpec) -> Any:
        path = str(Path(spec.identity_file or "").expanduser())
        refuse_open_keys([path])
        if path not in self._keys:
            self._keys[path] = asyncssh.read_private_key(path, spec.passphrase)
        certificate = certificate_path(spec)
        if certificate is None:
            return self._keys[path]
        return self._keys[path], asyncssh.read_certificate(str(certificate))
