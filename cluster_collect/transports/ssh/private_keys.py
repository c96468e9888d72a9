"""Private keys of this machine, held to the rule of OpenSSH: nobody else may read them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from cluster_collect.faults import SshSetupError

_DEFAULT_NAMES = ("id_ed25519", "id_ecdsa", "id_rsa")


def default_keys() -> list[Path]:
    """Return the key files that are tried where none is named."""
    return [Path("~/.ssh").expanduser() / name for name in _DEFAULT_NAMES]


def refuse_open_keys(paths: Iterable[str | Path]) -> None:
    """Refuse keys that others can read; a file that is not there, or is somebody else's, is passed over.

    Raises:
        SshSetupError: with the command that makes the key private.
    """
    for path in (Path(path).expanduser() for path in paths):
        try:
            status = path.stat()
        except OSError:
            continue
        if status.st_uid == os.getuid() and status.st_mode & 0o077:
            mode = f"{status.st_mode & 0o777:04o}"
            advice = f"chmod 600 {path}; ssh refuses it too"
            raise SshSetupError(f"the private key {path} is open to others (mode {mode})", advice)
