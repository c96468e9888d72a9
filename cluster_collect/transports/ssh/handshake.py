"""What SSH needs besides a library: deadlines, settings, jump hosts, windows, the rule for private keys.

Private keys are held to the rule of OpenSSH: nobody else may read them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from cluster_collect.faults import SshSetupError, StalledError, UnreachableError
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_collect.watchdog import cancelled, within

_T = TypeVar("_T")


async def connected(work: asyncio.Future[_T], reached: asyncio.Event, options: CollectOptions) -> _T:
    """Await a connection; the network, until `reached` is set, and then the login have a deadline each.

    Raises:
        UnreachableError: the network did not answer in time.
        StalledError: the login took too long.
    """
    reported = asyncio.ensure_future(reached.wait())
    try:
        first = asyncio.wait((work, reported), return_when=asyncio.FIRST_COMPLETED)
        try:
            await within(first, options.connect_deadline_s, "connecting")
        except StalledError:
            raise UnreachableError(
                f"no connection within {options.connect_deadline_s:g} s",
                "is the host up, and its SSH port open from here?",
            ) from None
        return await within(work, options.login_deadline_s, "logging in")
    finally:
        await cancelled(reported)
        await cancelled(work)


def client_configuration(spec: HostSpec) -> str | None:
    """Return the OpenSSH configuration to read: the user's own where the inventory names none."""
    if spec.ssh_config is not None:
        return os.path.expanduser(spec.ssh_config)
    own = os.path.expanduser("~/.ssh/config")
    return own if os.access(own, os.R_OK) else None


def certificate_path(spec: HostSpec) -> Path | None:
    """Return the certificate of the host's own key: the named one, or the one that lies beside the key."""
    if spec.certificate_file is not None:
        return Path(spec.certificate_file).expanduser()
    beside_key = Path(f"{spec.identity_file}-cert.pub").expanduser()
    return beside_key if beside_key.is_file() else None


#: Half of it halves the speed over 20 ms; twice as much is slower again.
_WINDOW_BYTES = 8 << 20
#: With a cap on the rate no more is sent ahead than may pass in this time.
_AHEAD_S = 0.25
_LEAST_WINDOW_BYTES = 64 << 10


def window_bytes(spec: HostSpec, options: CollectOptions) -> int:
    """Return the window of a host's channels: what crosses the network before it may lies in memory here."""
    caps = [cap for cap in (spec.bandwidth_bytes_per_s, options.bandwidth_bytes_per_s) if cap is not None]
    if not caps:
        return _WINDOW_BYTES
    return min(_WINDOW_BYTES, max(_LEAST_WINDOW_BYTES, int(min(caps) * _AHEAD_S)))


def below_home(path: bytes) -> bytes:
    """Return a path as SFTP takes it, which begins at home and knows no `~`."""
    return path[2:] if path.startswith(b"~/") else b"." if path == b"~" else path


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
