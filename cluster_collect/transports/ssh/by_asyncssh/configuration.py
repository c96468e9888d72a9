"""What the OpenSSH client's configuration says of a server. asyncssh reads it, for paramiko too."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import asyncssh

from cluster_collect.spec import HostSpec, Server, parse_server
from cluster_collect.transports.ssh.by_asyncssh.errors import setup_errors
from cluster_collect.transports.ssh.handshake import client_configuration, default_keys
from cluster_collect.transports.ssh.host_keys import user_known_hosts


async def configured(spec: HostSpec, server: Server, **given: Any) -> asyncssh.SSHClientConnectionOptions:
    """Return asyncssh's options for a server on the way to a host, with those that are `given`.

    Raises:
        SshSetupError: they cannot be used.
    """
    said = {"host": server.name, "port": server.port, "username": server.user}
    given |= {name: value for name, value in said.items() if value is not None}
    if config := client_configuration(spec):
        # By itself asyncssh reads it when it connects: too late for us, who hand it the port.
        given["config"] = [config]
    with setup_errors(spec):
        base: asyncssh.SSHClientConnectionOptions
        base = await asyncssh.SSHClientConnectionOptions.construct(**given)
    return base


def jumps_before(base: asyncssh.SSHClientConnectionOptions, behind: Collection[str]) -> tuple[str, ...]:
    """Return the jump hosts that the configuration has for a server, which lies `behind` them itself.

    None where they lead through one of those: `Host *` says so of the jump host, too.
    """
    jumps = tuple(base.tunnel.split(",")) if isinstance(base.tunnel, str) else ()
    return () if {parse_server(jump).name for jump in jumps} & set(behind) else jumps


def known_hosts_of(spec: HostSpec, base: asyncssh.SSHClientConnectionOptions) -> list[Path]:
    """Return the known_hosts files for a server on the way to a host."""
    named = base.config.get("UserKnownHostsFile", None)
    if spec.known_hosts is not None or not isinstance(named, (list, tuple)):
        return [user_known_hosts(spec.known_hosts)]
    # "none" comes as an empty list: no host is known then
    return [Path(str(name)).expanduser() for name in named] or [Path(os.devnull)]


def identity_files_of(base: asyncssh.SSHClientConnectionOptions) -> list[Path]:
    """Return the files of the keys to log in to a server with, where the inventory names none."""
    named = base.config.get("IdentityFile")
    if not isinstance(named, (list, tuple)):
        return default_keys()
    return [Path(str(name)).expanduser() for name in named]
