"""SSH by paramiko, for servers that asyncssh does not get along with: the only module that knows it.

It blocks, so everything runs in threads of its own. GSSAPI, ProxyCommand, `Match` and host certificates
are asyncssh's alone.
"""

from __future__ import annotations

import asyncio
import os
import queue
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paramiko

from cluster_collect.bounds import Bounds
from cluster_collect.entries import RemoteEntry
from cluster_collect.faults import (
    HostError,
    HostileDataError,
    HostNameError,
    LoginError,
    LostConnectionError,
    NoShellError,
    RemoteFailureError,
    SshSetupError,
    StalledError,
    UnreachableError,
)
from cluster_collect.host_keys import SYSTEM_KNOWN_HOSTS, HostKeyJudge, KnownHostsCache, user_known_hosts
from cluster_collect.jumps import Jump, parse_jump
from cluster_collect.local_transport import kind_letter
from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_collect.threads import in_thread
from cluster_collect.transport import CommandResult, Receive, RemoteFiles

_WINDOW_BYTES = 8 << 20
_READ_BYTES = 128 * 1024
_N_READS_AHEAD = 32
_KEEPALIVE_S = 15
_MAX_ERROR_BYTES = 64 * 1024
_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com")
_DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")


class ParamikoDialer:
    """Connects to hosts, each through jump connections of its own."""

    def __init__(self, options: CollectOptions, bounds: Bounds, watch: ProgressListener) -> None:
        self._options = options
        self._bounds = bounds
        self._watch = watch
        self._known_hosts = KnownHostsCache()

    async def dial(self, spec: HostSpec) -> ParamikoConnection:
        """Connect and log in."""
        gateway = spec.jump or f"{spec.address}:{spec.port}"
        async with self._bounds.handshake(gateway):
            opened: list[paramiko.Transport] = []
            try:
                return await in_thread(self._dial, spec, opened)
            except BaseException:
                for transport in opened:
                    transport.close()
                raise

    async def close(self) -> None:
        """Nothing is shared."""

    def _dial(self, spec: HostSpec, opened: list[paramiko.Transport]) -> ParamikoConnection:
        config = _config(spec)
        target = config.lookup(spec.address)
        jumps = spec.jump or target.get("proxyjump", "")
        through: paramiko.Transport | None = None
        for text in filter(None, jumps.split(",") if jumps.lower() != "none" else []):
            through = self._open(spec, parse_jump(text), config, through, opened)
        self._open(spec, Jump(spec.user, spec.address, spec.port), config, through, opened, spec.password)
        return ParamikoConnection(opened)

    def _open(
        self,
        spec: HostSpec,
        place: Jump,
        config: paramiko.SSHConfig,
        through: paramiko.Transport | None,
        opened: list[paramiko.Transport],
        password: str | None = None,
    ) -> paramiko.Transport:
        """Connect to one server, directly or through the one before it, and log in."""
        settings = config.lookup(place.name)
        name = settings.get("hostname", place.name)
        port = place.port or int(settings.get("port", 22))
        judge = HostKeyJudge(
            name=name,
            port=port,
            alias=settings.get("hostkeyalias"),
            paths=(user_known_hosts(spec.known_hosts), SYSTEM_KNOWN_HOSTS),
            cache=self._known_hosts,
            accept_new=self._options.accept_new_host_keys,
        )
        try:
            transport = paramiko.Transport(
                self._socket(name, port, through), default_window_size=_WINDOW_BYTES
            )
            opened.append(transport)
            address = str(transport.getpeername()[0]) if through is None else name
            self._shake_hands(transport, judge, address)
            user = place.user or settings.get("user") or spec.user or os.environ.get("USER", "root")
            _log_in(transport, user, spec, settings, password)
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise translated(error, name) from None
        transport.set_keepalive(_KEEPALIVE_S)
        if new_key := judge.confirm():
            self._watch.noted(spec.host, f"new host key of {name} accepted: {new_key}")
        return transport

    def _socket(self, name: str, port: int, through: paramiko.Transport | None) -> Any:
        deadline_s = self._options.connect_deadline_s
        if through is None:
            return socket.create_connection((name, port), timeout=deadline_s)
        return through.open_channel("direct-tcpip", (name, port), ("127.0.0.1", 0), timeout=deadline_s)

    def _shake_hands(self, transport: paramiko.Transport, judge: HostKeyJudge, address: str) -> None:
        deadline_s = self._options.login_deadline_s
        transport.banner_timeout = transport.handshake_timeout = transport.auth_timeout = deadline_s
        security = transport.get_security_options()
        ciphers = tuple(security.ciphers)
        security.ciphers = [cipher for cipher in _CIPHERS if cipher in ciphers] + [
            cipher for cipher in ciphers if cipher not in _CIPHERS
        ]
        known = judge.known(address)
        supported = tuple(security.key_types)
        preferred = [kind for kind in judge.key_kinds() if kind in supported]
        if preferred:
            security.key_types = preferred
        transport.start_client(timeout=deadline_s)
        offered = transport.get_remote_server_key()
        key = f"{offered.get_name()} {offered.get_base64()}"
        if (key not in known.trusted or key in known.revoked) and not judge.accepts(address, key):
            raise judge.error()


def _config(spec: HostSpec) -> paramiko.SSHConfig:
    path = Path(spec.ssh_config or "~/.ssh/config").expanduser()
    if not path.is_file():
        return paramiko.SSHConfig()
    try:
        return paramiko.SSHConfig.from_path(str(path))
    except (OSError, paramiko.ConfigParseError) as error:
        raise SshSetupError(f"{path}: cannot be read: {error}", "check ssh_config") from None


def _log_in(
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
    raise LoginError(
        f"{spec.address}: the login was refused",
        "check user, key and password; it is not tried again, accounts get locked",
    )


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
            if spec.certificate_file is not None:
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


class ParamikoConnection:
    """One logged-in connection; `opened` holds its jump connections, the target last."""

    def __init__(self, opened: list[paramiko.Transport]) -> None:
        self._opened = opened
        self._commands: list[ParamikoCommand] = []

    async def start(self, command: str, receive: Receive) -> ParamikoCommand:
        """Start a command; its output crosses from a thread into the loop piece by piece."""
        try:
            channel = await in_thread(self._start, command)
        except (OSError, EOFError, paramiko.SSHException) as error:
            if not self._opened[-1].is_active():
                raise translated(error) from None
            raise NoShellError("the host runs no commands for us") from None
        self._commands.append(ParamikoCommand(channel, receive))
        return self._commands[-1]

    def _start(self, command: str) -> paramiko.Channel:
        channel = self._opened[-1].open_session(window_size=_WINDOW_BYTES)
        channel.exec_command(command)
        return channel

    async def open_files(self) -> RemoteFiles:
        """Start SFTP."""
        try:
            client = await in_thread(paramiko.SFTPClient.from_transport, self._opened[-1])
        except (OSError, EOFError, paramiko.SSHException) as error:
            if not self._opened[-1].is_active():
                raise translated(error) from None
            client = None
        if client is None:
            raise RemoteFailureError(
                "the host offers neither a shell nor SFTP", "ask its administrator for one of them"
            )
        return ParamikoFiles(client)

    async def close(self) -> None:
        """Close the connection and those it went through."""
        for command in self._commands:
            command.forget()
        for transport in reversed(self._opened):
            await in_thread(transport.close)


class ParamikoCommand:
    """A command that runs on a host: one thread sends, another receives."""

    def __init__(self, channel: paramiko.Channel, receive: Receive) -> None:
        self._channel = channel
        self._receive = receive
        self._errors = bytearray()
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        # A long list of names is sent while the answer already comes, or both ends could wait for each other.
        threading.Thread(target=self._send_all, daemon=True).start()
        self._ended = asyncio.ensure_future(in_thread(self._receive_all))
        # Fetched when nobody waits for it, or asyncio would report it as forgotten.
        self._ended.add_done_callback(lambda ended: ended.cancelled() or ended.exception())

    @property
    def errors(self) -> bytes:
        """What it has said on its error output."""
        return bytes(self._errors)

    def redirect(self, receive: Receive) -> None:
        """Give its further output to `receive`."""
        self._receive = receive

    def send(self, data: bytes) -> None:
        """Give it more input."""
        self._outgoing.put(data)

    def end_input(self) -> None:
        """Tell it that no more input comes."""
        self._outgoing.put(None)

    async def wait(self) -> CommandResult:
        """Wait for its end."""
        try:
            status = await asyncio.shield(self._ended)
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise translated(error) from None
        return CommandResult(status if status >= 0 else None, self.errors)

    async def close(self) -> None:
        """End it if it still runs."""
        self.forget()
        await in_thread(self._channel.close)
        await asyncio.wait((self._ended,))

    def forget(self) -> None:
        """Let the sending thread go, and drop whatever still arrives."""
        self._outgoing.put(None)
        self._receive = lambda _: 0.0

    async def _deliver(self, data: bytes) -> None:
        pause_s = self._receive(data)
        if pause_s > 0:
            await asyncio.sleep(pause_s)

    def _send_all(self) -> None:
        try:
            while (data := self._outgoing.get()) is not None:
                self._channel.sendall(data)
            self._channel.shutdown_write()
        except (OSError, EOFError, paramiko.SSHException):
            return  # the receiver meets the same end and reports it

    def _receive_all(self) -> int:
        channel = self._channel
        while data := channel.recv(_READ_BYTES):
            _in_loop(self._loop, self._deliver, data)
            while channel.recv_stderr_ready():
                self._errors += channel.recv_stderr(_READ_BYTES)[: _MAX_ERROR_BYTES - len(self._errors)]
        while more := channel.recv_stderr(_READ_BYTES):
            self._errors += more[: _MAX_ERROR_BYTES - len(self._errors)]
        transport = channel.get_transport()
        if not channel.exit_status_ready() and not transport.is_active():
            raise EOFError
        return channel.recv_exit_status()


def _in_loop(loop: asyncio.AbstractEventLoop, deliver: Any, data: bytes) -> None:
    asyncio.run_coroutine_threadsafe(deliver(data), loop).result()


class ParamikoFiles:
    """SFTP by paramiko, one request after the other but within a file; names must be UTF-8 for it."""

    def __init__(self, client: paramiko.SFTPClient) -> None:
        self._client = client
        self._turn = asyncio.Lock()

    async def _call(self, call: Any, *arguments: Any) -> Any:
        async with self._turn:
            try:
                return await in_thread(call, *arguments)
            except UnicodeDecodeError:
                raise RemoteFailureError(
                    "a name is not UTF-8, which paramiko cannot read", "use transport: asyncssh"
                ) from None
            except (OSError, EOFError, paramiko.SSHException) as error:
                raise _translated_sftp(error) from None

    async def real_path(self, path: bytes) -> bytes:
        """Return the absolute path, links resolved."""
        home_free = path[2:] if path.startswith(b"~/") else b"." if path == b"~" else path
        return os.fsencode(await self._call(self._client.normalize, os.fsdecode(home_free)))

    async def scan(self, directory: bytes, max_entries: int) -> list[RemoteEntry]:
        """Return what lies in a directory."""

        def scan() -> list[RemoteEntry]:
            found = []
            for attributes in self._client.listdir_iter(os.fsdecode(directory)):
                found.append(_entry(os.fsencode(attributes.filename), attributes))
                if len(found) > max_entries:
                    raise HostileDataError(f"a directory holds more than {max_entries} entries")
            return found

        found: list[RemoteEntry] = await self._call(scan)
        return found

    async def stat(self, path: bytes) -> RemoteEntry:
        """Return one file's entry."""
        return _entry(path, await self._call(self._client.lstat, os.fsdecode(path)))

    async def read(self, path: bytes, size_bytes: int, receive: Receive) -> None:
        """Read a file in order."""
        loop = asyncio.get_running_loop()

        async def deliver(data: bytes) -> None:
            pause_s = receive(data)
            if pause_s > 0:
                await asyncio.sleep(pause_s)

        def read() -> None:
            with self._client.open(os.fsdecode(path), "rb") as file:
                file.prefetch(size_bytes + 1, _N_READS_AHEAD)
                n_left = size_bytes + 1
                while n_left > 0 and (data := file.read(min(_READ_BYTES, n_left))):
                    n_left -= len(data)
                    _in_loop(loop, deliver, data)

        await self._call(read)

    async def close(self) -> None:
        """End SFTP."""
        await in_thread(self._client.close)


def _entry(path: bytes, attributes: paramiko.SFTPAttributes) -> RemoteEntry:
    kind = "?" if attributes.st_mode is None else kind_letter(attributes.st_mode)
    return RemoteEntry(path, kind, attributes.st_size or 0, int(attributes.st_mtime or 0) * 1_000_000_000)


def _translated_sftp(error: Exception) -> HostError:
    if isinstance(error, OSError) and error.errno is not None and not isinstance(error, ConnectionError):
        return RemoteFailureError(error.strerror or str(error))
    if isinstance(error, OSError) and not isinstance(error, ConnectionError):
        return RemoteFailureError(str(error) or type(error).__name__)
    return translated(error)


def translated(error: Exception, name: str = "") -> HostError:
    """Return our error for one of paramiko's or the system's."""
    where = f"{name}: " if name else ""
    if isinstance(error, HostError):
        return error
    if isinstance(error, paramiko.AuthenticationException):
        return LoginError(
            f"{where}the login was refused",
            "check user, key and password; it is not tried again, accounts get locked",
        )
    if isinstance(error, paramiko.ChannelException):
        return UnreachableError(f"{where}not reachable through its jump host: {error.text}")
    if isinstance(error, paramiko.ssh_exception.IncompatiblePeer):
        return SshSetupError(f"{where}no agreement with the SSH server: {error}", "try transport: asyncssh")
    return _translated_network(error, where)


def _translated_network(error: Exception, where: str) -> HostError:
    if isinstance(error, socket.gaierror):
        return HostNameError(f"{where}the name does not resolve: {error.strerror}", "check the address")
    if isinstance(error, (TimeoutError, asyncio.TimeoutError)):
        return StalledError(f"{where}timed out")
    if isinstance(error, (EOFError, paramiko.SSHException, ConnectionResetError, BrokenPipeError)):
        return LostConnectionError(f"{where}the connection was lost: {error or 'it was closed'}")
    return UnreachableError(
        f"{where}{str(error) or type(error).__name__}", "is the host up, and its SSH port right?"
    )
