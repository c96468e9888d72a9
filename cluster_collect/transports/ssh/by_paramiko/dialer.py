"""SSH by paramiko, for servers that asyncssh does not get along with; this package alone knows that library.

It blocks, so everything runs in threads of its own. GSSAPI, ProxyCommand and host certificates are asyncssh's
alone.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import paramiko

from cluster_collect.faults import HostError, HostKeyError, SshSetupError
from cluster_collect.spec import CollectOptions, HostSpec, Server, parse_server
from cluster_collect.threads import in_thread
from cluster_collect.transports.bounds import Bounds
from cluster_collect.transports.ssh.by_asyncssh.configuration import (
    configured,
    identity_files_of,
    jumps_before,
    known_hosts_of,
)
from cluster_collect.transports.ssh.by_paramiko.connection import ParamikoConnection
from cluster_collect.transports.ssh.by_paramiko.errors import ERRORS, translated
from cluster_collect.transports.ssh.errors import login_refused, of_jump_host
from cluster_collect.transports.ssh.handshake import refuse_open_keys, window_bytes
from cluster_collect.transports.ssh.host_keys import HostKeyJudge, HostKeys
from cluster_run.errors import in_one_line, in_words

_KEEPALIVE_S = 15
# What its threads log comes as errors too; unheard, Python would print it with tracebacks.
logging.getLogger("paramiko").addHandler(logging.NullHandler())
#: A server on the way to a host, and asyncssh's options for it.
_Stop: TypeAlias = tuple[Server, Any]
_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com")


class ParamikoDialer:
    """Connects to hosts, each through jump connections of its own."""

    def __init__(self, options: CollectOptions, bounds: Bounds, host_keys: HostKeys) -> None:
        self._options = options
        self._bounds = bounds
        self._host_keys = host_keys

    async def dial(self, spec: HostSpec) -> ParamikoConnection:
        """Connect and log in."""
        gateway = spec.jump or f"{spec.address}:{spec.port}"
        async with self._bounds.handshake(gateway):
            opened: list[paramiko.Transport] = []
            try:
                return await in_thread(self._dial, spec, await _route(spec), opened)
            except BaseException:
                for transport in opened:
                    transport.close()
                raise

    async def close(self) -> None:
        """Nothing is shared."""

    def _dial(
        self, spec: HostSpec, route: Sequence[_Stop], opened: list[paramiko.Transport]
    ) -> ParamikoConnection:
        *jumps, target = route
        through: paramiko.Transport | None = None
        for jump in jumps:
            try:
                through = self._open(spec, jump, through, opened)
            except HostError as error:
                raise of_jump_host(error, jump[0].name) from None
        self._open(spec, target, through, opened, spec.password)
        return ParamikoConnection(opened, window_bytes(spec, self._options))

    def _open(
        self,
        spec: HostSpec,
        stop: _Stop,
        through: paramiko.Transport | None,
        opened: list[paramiko.Transport],
        password: str | None = None,
    ) -> paramiko.Transport:
        """Connect to one server, directly or through the one before it, and log in."""
        place, base = stop
        name, port = str(base.host), int(base.port)
        known = known_hosts_of(spec, base)
        judge = self._host_keys.judge(spec, place, name, port, base.host_key_alias, known)
        try:
            transport = paramiko.Transport(
                self._socket(base, through), default_window_size=window_bytes(spec, self._options)
            )
            opened.append(transport)
            address = str(transport.getpeername()[0]) if through is None else name
            self._shake_hands(transport, judge, address)
            user = place.user or base.config.get("User") or spec.user or base.username
            log_in(transport, str(user), spec, identity_files_of(base), password)
        except ERRORS as error:
            raise translated(error, by_jump=through is not None) from None
        transport.set_keepalive(_KEEPALIVE_S)
        self._host_keys.confirm(judge, spec.host)
        return transport

    def _socket(self, base: Any, through: paramiko.Transport | None) -> Any:
        deadline_s, there = self._options.connect_deadline_s, (str(base.host), int(base.port))
        if through is None:
            return socket.create_connection(there, deadline_s, base.local_addr)
        return through.open_channel("direct-tcpip", there, ("127.0.0.1", 0), timeout=deadline_s)

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
        security.key_types = [kind for kind in judge.key_kinds() if kind in supported]
        transport.start_client(timeout=deadline_s)
        offered = transport.get_remote_server_key()
        key = f"{offered.get_name()} {offered.get_base64()}"
        if (key not in known.trusted or key in known.revoked) and not judge.accepts(address, key):
            if judge.verdict == "unknown" and known.authorities:
                raise HostKeyError(
                    f"{judge.name} is only known by a certificate (@cert-authority)",
                    "use transport: asyncssh, which reads the certificates of hosts",
                )
            raise judge.error()


async def _route(spec: HostSpec) -> Sequence[_Stop]:
    """Return the servers on the way to a host, the host itself last; each with its configuration."""
    route: list[_Stop] = []
    place = Server(spec.user, spec.address, spec.port)
    chain = tuple(spec.jump.split(",")) if spec.jump else ()
    while True:
        # asyncssh is to read no keys.
        route.insert(0, (place, await configured(spec, place, client_keys=None, agent_path=None)))
        chain = chain or jumps_before(route[0][1], [stop.name for stop, _ in route])
        if not chain:
            return route
        *before, last = chain
        place, chain = parse_server(last), tuple(before)


def log_in(
    transport: paramiko.Transport,
    user: str,
    spec: HostSpec,
    paths: Iterable[Path],
    password: str | None,
) -> None:
    """Try the keys, then the password, once each and only as the server takes them: sites count failures."""
    takes = _accepted(transport.auth_none, user)
    agent = paramiko.Agent()
    try:
        for key in _keys(spec, paths, agent):
            if "publickey" not in takes or transport.is_authenticated() or not transport.is_active():
                break
            takes = _accepted(transport.auth_publickey, user, key) or takes
    finally:
        agent.close()
    if transport.is_authenticated():
        return
    if password is None or not transport.is_active():
        raise login_refused()
    if "password" in takes:
        transport.auth_password(user, password, fallback=False)
    else:  # the server asks for it in a dialogue of its own (PAM)
        transport.auth_interactive(user, lambda _title, _text, questions: [password for _ in questions])


def _accepted(login: Callable[..., list[str]], *how: Any) -> list[str]:
    """Try to log in; return what the server takes next, empty where it does not say."""
    try:
        return login(*how)
    except paramiko.BadAuthenticationType as error:
        return error.allowed_types
    except paramiko.AuthenticationException:
        return []


def _keys(spec: HostSpec, paths: Iterable[Path], agent: paramiko.Agent) -> Iterator[paramiko.PKey]:
    if spec.identity_file is not None:
        yield _key(Path(spec.identity_file).expanduser(), spec, spec.certificate_file)
    yield from agent.get_keys()
    for path in paths:
        with suppress(_UnreadableKeyError):  # one that is not there or is encrypted is simply not offered
            yield _key(path, spec)


class _UnreadableKeyError(SshSetupError):
    """A private key cannot be used."""


def _key(path: Path, spec: HostSpec, certificate: str | None = None) -> paramiko.PKey:
    refuse_open_keys([path])
    passphrase = spec.passphrase.encode() if spec.passphrase else None
    try:
        key = paramiko.PKey.from_path(path, passphrase)  # type: ignore[arg-type]  # it wants bytes
        if certificate is not None:  # one beside the key is read with it
            key.load_certificate(str(Path(certificate).expanduser()))
    except OSError as error:
        raise _UnreadableKeyError(in_words(error), "check identity_file") from None
    except Exception as error:  # those of cryptography, which reads it, have no class in common
        raise _UnreadableKeyError(f"{path}: {in_one_line(error)}", "check identity_file") from None
    return key
