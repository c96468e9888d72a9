"""SSH by asyncssh: the only module that knows it. All its errors leave as ours."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import asyncssh

from cluster_collect.bounds import Bounds
from cluster_collect.entries import RemoteEntry
from cluster_collect.faults import (
    HostError,
    HostileDataError,
    HostKeyError,
    HostNameError,
    LoginError,
    LostConnectionError,
    NoShellError,
    RemoteFailureError,
    SshSetupError,
    StalledError,
    UnreachableError,
)
from cluster_collect.gateways import SharedConnections
from cluster_collect.host_keys import SYSTEM_KNOWN_HOSTS, HostKeyJudge, KnownHostsCache, user_known_hosts
from cluster_collect.jumps import parse_jump
from cluster_collect.local_transport import kind_letter
from cluster_collect.progress_events import ProgressListener
from cluster_collect.read_ahead import read_in_order
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_collect.transport import CommandResult, Receive, RemoteFiles
from cluster_collect.watchdog import cancelled, within

# AES-GCM costs a third less than the libraries' first choice where the CPU has AES instructions.
_CIPHERS = "^aes128-gcm@openssh.com,aes256-gcm@openssh.com"
_WINDOW_BYTES = 8 << 20
_KEEPALIVE_S, _N_KEEPALIVES = 15, 3
_MAX_ERROR_BYTES = 64 * 1024
_CLOSE_DEADLINE_S = 3.0
_NO_AGREEMENT = (asyncssh.KeyExchangeFailed, asyncssh.ProtocolNotSupported, asyncssh.IllegalUserName)


class AsyncsshDialer:
    """Connects to hosts; shares jump connections, parsed known_hosts files and decrypted keys."""

    def __init__(self, options: CollectOptions, bounds: Bounds, watch: ProgressListener) -> None:
        self._options = options
        self._bounds = bounds
        self._watch = watch
        self._known_hosts = KnownHostsCache()
        self._keys: dict[str, asyncssh.SSHKey] = {}
        self._gateways: SharedConnections[asyncssh.SSHClientConnection] = SharedConnections(
            lambda connection: not connection.is_closed()
        )

    async def dial(self, spec: HostSpec) -> AsyncsshConnection:
        """Connect and log in."""
        base = await self._base_options(spec, spec.address, spec.port, spec.user)
        jump = spec.jump or (base.tunnel if isinstance(base.tunnel, str) else "")
        tunnel = await self._gateway(spec, tuple(jump.split(","))) if jump else None
        gateway = jump or f"{spec.address}:{spec.port}"
        return AsyncsshConnection(await self._connect(spec, base, tunnel, gateway, spec.password))

    async def close(self) -> None:
        """Close the jump connections."""
        await self._gateways.close(_close)

    async def _gateway(self, spec: HostSpec, chain: tuple[str, ...]) -> asyncssh.SSHClientConnection:
        """Return the connection to the last jump host of a chain, through those before it."""
        key = (chain, spec.ssh_config, spec.known_hosts, spec.identity_file, spec.user)

        async def connect() -> asyncssh.SSHClientConnection:
            tunnel = await self._gateway(spec, chain[:-1]) if len(chain) > 1 else None
            jump = parse_jump(chain[-1])
            base = await self._base_options(spec, jump.name, jump.port, jump.user)
            if jump.user is None and base.config.get("User") is None and spec.user is not None:
                base = await self._base_options(spec, jump.name, jump.port, spec.user)
            # The target's password is not for the gateway.
            return await self._connect(spec, base, tunnel, ",".join(chain), password=None)

        return await self._gateways.get(key, connect)

    async def _base_options(
        self, spec: HostSpec, name: str, port: int | None, user: str | None
    ) -> asyncssh.SSHClientConnectionOptions:
        """Read the client configuration and the keys for a server."""
        given: dict[str, Any] = {"host": name}
        if port is not None:
            given["port"] = port
        if user is not None:
            given["username"] = user
        if config := _client_configuration(spec):
            given["config"] = [config]
        try:
            if spec.identity_file is not None:
                given |= self._identity(spec)
            base: asyncssh.SSHClientConnectionOptions
            base = await asyncssh.SSHClientConnectionOptions.construct(
                compression_algs=None,
                keepalive_interval=_KEEPALIVE_S,
                keepalive_count_max=_N_KEEPALIVES,
                agent_forwarding=False,
                **given,
            )
            if base.config.get("Ciphers") is None:
                base = await asyncssh.SSHClientConnectionOptions.construct(base, encryption_algs=_CIPHERS)
        except (ValueError, OSError, asyncssh.Error) as error:
            raise _setup_error(error, spec) from None
        return base

    def _identity(self, spec: HostSpec) -> dict[str, Any]:
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
        if path not in self._keys:
            self._keys[path] = asyncssh.read_private_key(path, spec.passphrase)
        certificate = Path(spec.certificate_file or f"{path}-cert.pub").expanduser()
        if spec.certificate_file is None and not certificate.is_file():
            return self._keys[path]
        return self._keys[path], asyncssh.read_certificate(str(certificate))

    async def _connect(
        self,
        spec: HostSpec,
        base: asyncssh.SSHClientConnectionOptions,
        tunnel: asyncssh.SSHClientConnection | None,
        gateway: str,
        password: str | None,
    ) -> asyncssh.SSHClientConnection:
        judge = self._judge(spec, base)
        client = _Client(judge)
        try:
            async with self._bounds.handshake(gateway):
                work = asyncssh.connect(
                    base.host,
                    base.port,
                    options=base,
                    tunnel=tunnel,
                    client_factory=lambda: client,
                    known_hosts=lambda _name, address, _port: _trusted(judge, address),
                    password=password,
                    **_key_kinds(judge, base),
                )
                connection = await self._in_time(asyncio.ensure_future(work), client, judge)
        except (OSError, ValueError, asyncssh.Error, asyncssh.ChannelListenError) as error:
            raise translated(error, judge) from None
        if new_key := judge.confirm():
            self._watch.noted(spec.host, f"new host key of {judge.name} accepted: {new_key}")
        return connection

    async def _in_time(
        self, work: asyncio.Future[asyncssh.SSHClientConnection], client: _Client, judge: HostKeyJudge
    ) -> asyncssh.SSHClientConnection:
        """Give the network, and then the login, its own deadline."""
        options = self._options
        reached = asyncio.ensure_future(client.reached.wait())
        try:
            await asyncio.wait(
                (work, reached), timeout=options.connect_deadline_s, return_when=asyncio.FIRST_COMPLETED
            )
            if not work.done() and not reached.done():
                raise UnreachableError(
                    f"{judge.name}: no connection within {options.connect_deadline_s:g} s",
                    "is the host up, and its SSH port open from here?",
                )
            return await within(work, options.login_deadline_s, f"logging in to {judge.name}")
        finally:
            await cancelled(reached)
            await cancelled(work)

    def _judge(self, spec: HostSpec, base: asyncssh.SSHClientConnectionOptions) -> HostKeyJudge:
        configured = base.config.get("UserKnownHostsFile", None)
        if spec.known_hosts is not None or not isinstance(configured, (list, tuple)):
            paths = [user_known_hosts(spec.known_hosts)]
        else:  # "none" comes as an empty list: no host is known then
            paths = [Path(str(name)).expanduser() for name in configured] or [Path(os.devnull)]
        return HostKeyJudge(
            name=str(base.host),
            port=int(base.port),
            alias=base.host_key_alias,
            paths=(*paths, SYSTEM_KNOWN_HOSTS),
            cache=self._known_hosts,
            accept_new=self._options.accept_new_host_keys,
        )


class _Client(asyncssh.SSHClient):
    """Answers the questions of one handshake."""

    def __init__(self, judge: HostKeyJudge) -> None:
        self._judge = judge
        self.reached = asyncio.Event()

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        """The network connection stands."""
        self.reached.set()

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Judge a key that is not among the trusted ones; asyncssh asks for changed keys too."""
        return self._judge.accepts(addr, _spelled(key))


def _key_kinds(judge: HostKeyJudge, base: asyncssh.SSHClientConnectionOptions) -> dict[str, Any]:
    kinds = judge.key_kinds()
    if not kinds or base.config.get("HostKeyAlgorithms") is not None:
        return {}
    return {"server_host_key_algs": list(kinds)}


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


class AsyncsshConnection:
    """One logged-in connection."""

    def __init__(self, connection: asyncssh.SSHClientConnection) -> None:
        self._connection = connection

    async def start(self, command: str, receive: Receive) -> AsyncsshCommand:
        """Start a command; its output goes to `receive` straight from the packet."""
        session = _Session(receive)
        try:
            channel, _ = await self._connection.create_session(
                lambda: session,
                command,
                encoding=None,
                window=_WINDOW_BYTES,
                request_pty=False,
            )
        except asyncssh.ChannelOpenError as error:
            if self._connection.is_closed():
                raise translated(error) from None
            raise NoShellError(f"the host runs no commands for us: {error.reason}") from None
        except (OSError, asyncssh.Error) as error:
            raise translated(error) from None
        return AsyncsshCommand(channel, session)

    async def open_files(self) -> RemoteFiles:
        """Start SFTP."""
        try:
            return AsyncsshFiles(await self._connection.start_sftp_client(path_encoding=None))
        except (OSError, asyncssh.Error) as error:
            if self._connection.is_closed():
                raise translated(error) from None
            raise RemoteFailureError(
                "the host offers neither a shell nor SFTP", "ask its administrator for one of them"
            ) from None

    async def close(self) -> None:
        """Close the connection."""
        await _close(self._connection)


async def _close(connection: asyncssh.SSHClientConnection) -> None:
    connection.close()
    try:
        await asyncio.wait_for(connection.wait_closed(), _CLOSE_DEADLINE_S)
    except (OSError, asyncssh.Error, asyncio.TimeoutError):
        connection.abort()


class AsyncsshCommand:
    """A command that runs on a host."""

    def __init__(self, channel: Any, session: _Session) -> None:
        self._channel = channel
        self._session = session

    @property
    def errors(self) -> bytes:
        """What it has said on its error output."""
        return bytes(self._session.errors)

    def redirect(self, receive: Receive) -> None:
        """Give its further output to `receive`."""
        self._session.redirect(receive)

    def send(self, data: bytes) -> None:
        """Give it more input; input for a command that has ended is dropped."""
        if not self._channel.is_closing():
            self._channel.write(data)

    def end_input(self) -> None:
        """Tell it that no more input comes."""
        if not self._channel.is_closing():
            self._channel.write_eof()

    async def wait(self) -> CommandResult:
        """Wait for its end."""
        try:
            await asyncio.shield(self._session.ended)
        except (OSError, asyncssh.Error) as error:
            raise translated(error) from None
        return CommandResult(self._channel.get_exit_status(), self.errors)

    async def close(self) -> None:
        """End it if it still runs."""
        self._session.forget()
        self._channel.abort()


class _Session(asyncssh.SSHClientSession):  # type: ignore[type-arg]
    """Receives one command's output."""

    def __init__(self, receive: Receive) -> None:
        self._receive: Receive | None = receive
        self._channel: Any = None
        self._resume: asyncio.TimerHandle | None = None
        self.errors = bytearray()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Fetched when nobody waits for it, or asyncio would report it as forgotten.
        self.ended.add_done_callback(lambda ended: ended.cancelled() or ended.exception())

    def connection_made(self, chan: Any) -> None:
        """Keep the channel."""
        self._channel = chan

    def data_received(self, data: Any, datatype: int | None) -> None:
        """Pass output on; what `receive` raises ends the command."""
        if datatype == asyncssh.EXTENDED_DATA_STDERR:
            self.errors += data[: _MAX_ERROR_BYTES - len(self.errors)]
            return
        if self._receive is None:
            return
        try:
            pause_s = self._receive(data)
        except Exception as error:
            if not self.ended.done():
                self.ended.set_exception(error)
            self.forget()
            return
        if pause_s > 0:
            self._channel.pause_reading()
            loop = asyncio.get_running_loop()
            if self._resume is not None:
                self._resume.cancel()
            self._resume = loop.call_later(pause_s, self._channel.resume_reading)

    def connection_lost(self, exc: Exception | None) -> None:
        """The channel is closed, by its end or with the connection."""
        if self.ended.done():
            return
        if exc is None:
            self.ended.set_result(None)
        else:
            self.ended.set_exception(exc)

    def redirect(self, receive: Receive) -> None:
        """Give further output to another receiver."""
        self._receive = receive

    def forget(self) -> None:
        """Drop whatever still arrives."""
        self._receive = None
        if self._resume is not None:
            self._resume.cancel()


class AsyncsshFiles:
    """SFTP by asyncssh; paths stay bytes, reads are sent ahead and handed on in order."""

    def __init__(self, client: asyncssh.SFTPClient) -> None:
        self._client = client

    async def real_path(self, path: bytes) -> bytes:
        """Return the absolute path, links resolved."""
        try:
            home_free = path[2:] if path.startswith(b"~/") else b"." if path == b"~" else path
            found = await self._client.realpath(home_free)
        except (OSError, asyncssh.Error) as error:
            raise translated(error) from None
        return found if isinstance(found, bytes) else str(found).encode()

    async def scan(self, directory: bytes, max_entries: int) -> list[RemoteEntry]:
        """Return what lies in a directory."""
        entries: list[RemoteEntry] = []
        try:
            async for name in self._client.scandir(directory):
                if name.filename not in (b".", b".."):
                    entries.append(_entry(bytes(name.filename), name.attrs))  # type: ignore[arg-type]
                    if len(entries) > max_entries:
                        raise HostileDataError(f"a directory holds more than {max_entries} entries")
        except (OSError, asyncssh.Error) as error:
            raise translated(error) from None
        return entries

    async def stat(self, path: bytes) -> RemoteEntry:
        """Return one file's entry."""
        try:
            return _entry(path, await self._client.lstat(path))
        except (OSError, asyncssh.Error) as error:
            raise translated(error) from None

    async def read(self, path: bytes, size_bytes: int, receive: Receive) -> None:
        """Read a file in order, one piece further than `size_bytes` to see that it has grown."""
        try:
            async with self._client.open(path, "rb", encoding=None) as file:
                await read_in_order(file.read, size_bytes, receive)
        except (OSError, asyncssh.Error) as error:
            raise translated(error) from None

    async def close(self) -> None:
        """End SFTP."""
        self._client.exit()


def _entry(path: bytes, attributes: asyncssh.SFTPAttrs) -> RemoteEntry:
    mode = attributes.permissions
    kind = "?" if mode is None else kind_letter(mode)
    mtime_ns = int(attributes.mtime or 0) * 1_000_000_000 + int(attributes.mtime_ns or 0)
    return RemoteEntry(path, kind, attributes.size or 0, mtime_ns)


def _client_configuration(spec: HostSpec) -> str | None:
    """Return the client configuration to read: the user's own where the inventory names none.

    asyncssh reads the user's own by itself, but only when it connects: too late for us, who hand it the
    port.
    """
    if spec.ssh_config is not None:
        return os.path.expanduser(spec.ssh_config)
    own = os.path.expanduser("~/.ssh/config")
    return own if os.access(own, os.R_OK) else None


def _setup_error(error: Exception, spec: HostSpec) -> HostError:
    if isinstance(error, (asyncssh.KeyImportError, asyncssh.KeyEncryptionError)):
        return SshSetupError(
            f"the private key {spec.identity_file} cannot be opened: {error}",
            "add it to the agent (ssh-add), or give --ask-passphrase or passphrase_env",
        )
    return SshSetupError(
        f"the SSH settings of this host cannot be used: {error}", "check identity_file and ssh_config"
    )


def translated(error: Exception, judge: HostKeyJudge | None = None) -> HostError:
    """Return our error for one of asyncssh's or the system's."""
    name = f"{judge.name}: " if judge is not None else ""
    if isinstance(error, HostError):
        return error
    if judge is not None and _is_about_host_key(error, judge):
        return judge.error(getattr(error, "reason", ""))
    if isinstance(error, asyncssh.SFTPError):
        return _translated_sftp(error)
    if isinstance(error, asyncssh.DisconnectError):
        return _translated_disconnect(error, name)
    if isinstance(error, asyncssh.ChannelOpenError):
        return UnreachableError(f"{name}not reachable through its jump host: {error.reason}")
    return _translated_other(error, name)


def _translated_disconnect(error: asyncssh.DisconnectError, name: str) -> HostError:
    if isinstance(error, asyncssh.PermissionDenied):
        return LoginError(
            f"{name}the login was refused",
            "check user, key and password; it is not tried again, accounts get locked",
        )
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return HostKeyError(f"{name}the host key cannot be verified: {error.reason}")
    if isinstance(error, _NO_AGREEMENT):
        return SshSetupError(
            f"{name}no agreement with the SSH server: {error.reason}", "try transport: paramiko"
        )
    if "authentication failures" in error.reason.lower():
        return LoginError(f"{name}{error.reason}", "name the right key with identity_file")
    return LostConnectionError(f"{name}the connection was lost: {error.reason}")


def _translated_other(error: Exception, name: str) -> HostError:
    if isinstance(error, socket.gaierror):
        return HostNameError(f"{name}the name does not resolve: {error.strerror}", "check the address")
    if isinstance(error, (asyncio.TimeoutError, TimeoutError)):
        return StalledError(f"{name}timed out")
    if isinstance(error, OSError):
        # asyncio's own text ("Connect call failed ('10.0.0.1', 22)") says less than the system's.
        text = os.strerror(error.errno) if error.errno else str(error) or type(error).__name__
        return UnreachableError(f"{name}{text}", "is the host up, and its SSH port right?")
    return RemoteFailureError(f"{name}{str(error) or type(error).__name__}")


def _is_about_host_key(error: Exception, judge: HostKeyJudge) -> bool:
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return True
    if isinstance(error, asyncssh.KeyExchangeFailed) and "host key" in error.reason.lower():
        # The server has no key of the kinds that known_hosts lists for it.
        judge.verdict = "changed"
        return True
    return False


def _translated_sftp(error: asyncssh.SFTPError) -> HostError:
    if isinstance(error, (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection)):
        return LostConnectionError(f"the connection was lost: {error.reason}")
    if isinstance(error, asyncssh.SFTPBadMessage):
        return HostileDataError(f"the SFTP server sent nonsense: {error.reason}")
    return RemoteFailureError(error.reason or type(error).__name__)
