"""What a handshake needs that no SSH library gives: two deadlines, and where the settings come from."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TypeVar

from cluster_collect.faults import UnreachableError
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_collect.watchdog import cancelled, first_of, within

_T = TypeVar("_T")


async def in_time(work: asyncio.Future[_T], reached: asyncio.Event, name: str, options: CollectOptions) -> _T:
    """Await a connection; the network, until `reached` is set, and then the login have a deadline each.

    Raises:
        UnreachableError: the network did not answer in time.
        StalledError: the login took too long.
    """
    told = asyncio.ensure_future(reached.wait())
    try:
        await first_of((work, told), options.connect_deadline_s)
        if not work.done() and not told.done():
            raise UnreachableError(
                f"{name}: no connection within {options.connect_deadline_s:g} s",
                "is the host up, and its SSH port open from here?",
            )
        return await within(work, options.login_deadline_s, f"logging in to {name}")
    finally:
        await cancelled(told)
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
    beside = Path(f"{spec.identity_file}-cert.pub").expanduser()
    return beside if beside.is_file() else None
