"""SSH by asyncssh: connecting and logging in. This package alone knows that library."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncssh
from asyncssh.packet import SSHPacket

from cluster_collect.faults import HostError
from cluster_collect.spec import CollectOptions, HostSpec, Server, parse_server
from cluster_collect.transports.bounds import Bounds
from cluster_collect.transports.ssh.by_asyncssh.configuration import (
    configured,
    identity_files_of,
    jumps_before,
    known_hosts_of,
)
from cluster_collect.transports.ssh.by_asyncssh.connection import AsyncsshConnection, close
from cluster_collect.transports.ssh.by_asyncssh.errors import setup_errors, translated
from cluster_collect.transports.ssh.by_asyncssh.straight import Straight
from cluster_collect.transports.ssh.errors import of_jump_host
from cluster_collect.transports.ssh.handshake import (
    certificate_path,
    connected,
    refuse_open_keys,
    window_bytes,
)
from cluster_collect.transports.ssh.host_keys import HostKeyJudge, HostKeys
from cluster_collect.watchdog import cancelled
from cluster_collect.wording import last_line, printable

# AES-GCM costs a third less than the libraries' first choice where the CPU has AES instructions.
_CIPHERS = "^aes128-gcm@openssh.com,aes256-gcm@openssh.com"
_KEEPALIVE_S, _N_KEEPALIVES = 15, 3
#: What stands before the names in the packet by which a server offers algorithms: its kind, and a number.
_BEFORE_NAMES_BYTES = 1 + 16
#: More than the line in which a server says why it does not talk to us.
_MOST_GREETING_BYTES = 1024


class AsyncsshDialer:
    """Connects to hosts; shares jump connections, parsed known_hosts files and decrypted keys."""

    def __init__(self, options: CollectOptions, bounds: Bounds, host_keys: HostKeys) -> None:
        self._options = options
        self._bounds = bounds
        self._host_keys = host_keys
        self._identities = Identities()
        self._gateways = _Gateways()

    async def dial(self, spec: HostSpec) -> AsyncsshConnection:
        """Connect and log in."""
        server = Server(spec.user, spec.address, spec.port)
        base = await self._base_options(spec, server)
        judge = self._judge(spec, server, base)
        behind = (spec.address,)
        jumps = tuple(spec.jump.split(",")) if spec.jump else jumps_before(base, behind)
        tunnel = await self._gateway(spec, jumps, behind) if jumps else None
        gateway = ",".join(jumps) or f"{spec.address}:{spec.port}"
        connection = await self._connect(spec, base, judge, tunnel, gateway, spec.password)
        return AsyncsshConnection(connection, window_bytes(spec, self._options))

    async def close(self) -> None:
        """Close the jump connections."""
        await self._gateways.close()

    async def _gateway(
        self, spec: HostSpec, chain: tuple[str, ...], behind: tuple[str, ...]
    ) -> asyncssh.SSHClientConnection:
        """Return the connection to the last jump host of a chain, through those before it.

        The first one of a chain may have jump hosts of its own, but for those that lie `behind` it.
        """
        key = (chain, behind[1:], spec.ssh_config, spec.known_hosts, spec.identity_file, spec.user)

        async def connect() -> asyncssh.SSHClientConnection:
            jump = parse_server(chain[-1])
            base = await self._base_options(spec, jump)
            further = (*behind, jump.name)
            before = chain[:-1] or jumps_before(base, further)
            tunnel = await self._gateway(spec, before, further) if before else None
            if jump.user is None and base.config.get("User") is None and spec.user is not None:
                base = await self._base_options(spec, replace(jump, user=spec.user))
            judge = self._judge(spec, jump, base)
            # The target's password is not for the gateway.
            try:
                return await self._connect(spec, base, judge, tunnel, ",".join(chain), password=None)
            except HostError as error:
                raise of_jump_host(error, jump.name) from None

        return await self._gateways.get(key, connect)

    async def _base_options(self, spec: HostSpec, server: Server) -> asyncssh.SSHClientConnectionOptions:
        """Read the client configuration and the keys for a server."""
        given: dict[str, Any] = {}
        with setup_errors(spec):
            if spec.identity_file is not None:
                given |= self._identities.options(spec)
            elif spec.passphrase is not None:
                given["passphrase"] = spec.passphrase
            base = await configured(
                spec,
                server,
                compression_algs=None,
                keepalive_interval=_KEEPALIVE_S,
                keepalive_count_max=_N_KEEPALIVES,
                agent_forwarding=False,
                **given,
            )
            if spec.identity_file is None:
                refuse_open_keys(identity_files_of(base))
            if base.config.get("Ciphers") is None:
                base = await asyncssh.SSHClientConnectionOptions.construct(base, encryption_algs=_CIPHERS)
        return base

    async def _connect(
        self,
        spec: HostSpec,
        base: asyncssh.SSHClientConnectionOptions,
        judge: HostKeyJudge,
        tunnel: asyncssh.SSHClientConnection | None,
        gateway: str,
        password: str | None,
    ) -> asyncssh.SSHClientConnection:
        client = _Client(judge)
        try:
            async with self._bounds.handshake(gateway):
                work = asyncssh.connect(
                    base.host,
                    base.port,
                    options=base,
                    tunnel=tunnel or (() if base.proxy_command else Straight(base, client)),
                    client_factory=lambda: client,
                    known_hosts=lambda _name, address, _port: _trusted(judge, address),
                    password=password,
                    **_key_kinds(judge, base),
                )
                connection = await connected(asyncio.ensure_future(work), client.reached, self._options)
        except (OSError, ValueError, asyncssh.Error, asyncssh.ChannelListenError) as error:
            raise translated(client.understood(error), judge, by_jump=tunnel is not None) from None
        try:
            self._host_keys.confirm(judge, spec.host)
        except HostError:
            await close(connection)
            raise
        return connection

    def _judge(
        self, spec: HostSpec, server: Server, base: asyncssh.SSHClientConnectionOptions
    ) -> HostKeyJudge:
        name, port = str(base.host), int(base.port)
        paths = known_hosts_of(spec, base)
        return self._host_keys.judge(spec, server, name, port, base.host_key_alias, paths)


class _Client(asyncssh.SSHClient):
    """Answers the questions of one handshake."""

    def __init__(self, judge: HostKeyJudge) -> None:
        self._judge = judge
        self._connection: asyncssh.SSHClientConnection | None = None
        self.reached = asyncio.Event()
        self.logged_in = False
        self._greeting = b""

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        """The network connection stands."""
        self._connection = conn
        self.reached.set()

    def auth_completed(self) -> None:
        """The server let us in."""
        self.logged_in = True

    def hear(self, data: bytes) -> None:
        """Keep the first that the server says."""
        self._greeting = (self._greeting + data)[:_MOST_GREETING_BYTES]

    def understood(self, error: Exception) -> Exception:
        """Return `error`, or why the server hung up, which asyncssh does not know.

        It said so in place of its version (`Exceeded MaxStartups`), or has no host key of a kind we ask for.
        """
        # A server that hangs up before it read all that we sent resets the connection.
        if not isinstance(error, (asyncssh.ConnectionLost, ConnectionError)):
            return error
        if self._greeting.strip() and b"SSH-" not in self._greeting:
            return asyncssh.ConnectionLost(f"it said: {printable(last_line(self._greeting))}")
        # It has no public way to what the server offers: where its names change, the error stays as it is.
        kexinit = getattr(self._connection, "_server_kexinit", b"")
        asked = getattr(self._connection, "_server_host_key_algs", None) or ()
        if not (kexinit and asked):
            return error
        offer = SSHPacket(kexinit[_BEFORE_NAMES_BYTES:])
        _ways, offered = offer.get_namelist(), offer.get_namelist()
        if set(asked) & set(offered):
            return error
        sent, received = (b",".join(kinds).decode("ascii", "replace") for kinds in (asked, offered))
        return asyncssh.KeyExchangeFailed(
            f"No matching host key algorithm found, sent {sent} and received {received}"
        )

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Judge a key that is not among the trusted ones; asyncssh asks for changed keys too."""
        return self._judge.accepts(addr, _spelled(key))


def _key_kinds(judge: HostKeyJudge, base: asyncssh.SSHClientConnectionOptions) -> dict[str, Any]:
    if base.config.get("HostKeyAlgorithms") is not None:
        return {}
    return {"server_host_key_algs": list(judge.key_kinds())}


def _spelled(key: asyncssh.SSHKey) -> str:
    return " ".join(key.export_public_key("openssh").decode().split()[:2])


def _trusted(judge: HostKeyJudge, address: str) -> tuple[list[asyncssh.SSHKey], ...]:
    known = judge.known(address)
    return _imported(known.trusted), _imported(known.authorities), _imported(known.revoked)


def _imported(keys: Sequence[str]) -> list[asyncssh.SSHKey]:
    imported = []
    for key in keys:
        try:
            imported.append(asyncssh.import_public_key(key))
        except asyncssh.KeyImportError:
            continue  # a kind of key that this library does not know cannot be offered to it either
    return imported


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


class _Gateways:
    """Opens a connection to each jump host once, however many targets lie behind it; a dead one again."""

    def __init__(self) -> None:
        self._opening: dict[Hashable, asyncio.Future[asyncssh.SSHClientConnection]] = {}

    async def get(
        self, key: Hashable, connect: Callable[[], Awaitable[asyncssh.SSHClientConnection]]
    ) -> asyncssh.SSHClientConnection:
        """Return the gateway `key`, connecting when nobody has, or when the connection has died."""
        known = self._opening.get(key)
        if known is None or (known.done() and not _is_usable(known)):
            known = asyncio.ensure_future(connect())
            self._opening[key] = known
        # Shielded: a host that gives up must not take the gateway from the others.
        return await asyncio.shield(known)

    async def close(self) -> None:
        """Close all gateways."""
        for known in self._opening.values():
            if _is_usable(known):
                await close(known.result())
            await cancelled(known)
        self._opening.clear()


def _is_usable(known: asyncio.Future[asyncssh.SSHClientConnection]) -> bool:
    is_there = known.done() and not known.cancelled() and known.exception() is None
    return is_there and not known.result().is_closed()
