"""An SSH server by paramiko: the independent other side, and the one that misbehaves on request."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import paramiko
from paramiko.server import InteractiveQuery

from cluster_collect.spec import HostSpec
from cluster_run.ids import HostId, ServerId

Exec = Callable[[str, paramiko.Channel], int]


def run_command(command: str, channel: paramiko.Channel) -> int:
    """Run a command as an honest server does."""
    process = subprocess.Popen(
        ["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def feed() -> None:
        assert process.stdin is not None
        while data := channel.recv(65536):
            process.stdin.write(data)
            process.stdin.flush()
        process.stdin.close()

    threading.Thread(target=feed, daemon=True).start()
    while data := os.read(process.stdout.fileno(), 65536):
        channel.sendall(data)
    process.stdout.close()
    return process.wait()


class Files(paramiko.SFTPServerInterface):
    """The real file system, read only."""

    def list_folder(self, path: str) -> list[paramiko.SFTPAttributes] | int:
        try:
            found = []
            for name in os.listdir(path):
                found.append(
                    paramiko.SFTPAttributes.from_stat(os.lstat(os.path.join(path, name)), filename=name)
                )
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno or 0)
        return found

    def stat(self, path: str) -> paramiko.SFTPAttributes | int:
        return self._stat(os.stat, path)

    def lstat(self, path: str) -> paramiko.SFTPAttributes | int:
        return self._stat(os.lstat, path)

    def _stat(self, call: Callable[[str], os.stat_result], path: str) -> paramiko.SFTPAttributes | int:
        try:
            return paramiko.SFTPAttributes.from_stat(call(path))
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno or 0)

    def open(self, path: str, flags: int, attr: paramiko.SFTPAttributes) -> paramiko.SFTPHandle | int:
        try:
            stream = Path(path).open("rb")  # noqa: SIM115 - the handle closes it
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno or 0)
        handle = paramiko.SFTPHandle(flags)
        handle.readfile = stream  # type: ignore[attr-defined]
        return handle

    def canonicalize(self, path: str) -> str:
        return os.path.realpath(path)


class _Server(paramiko.ServerInterface):
    def __init__(self, owner: ParamikoServer) -> None:
        self._owner = owner

    def check_auth_interactive(
        self, username: str, submethods: str
    ) -> paramiko.server.InteractiveQuery | int:
        return InteractiveQuery("PAM", "", ("Password: ", False))

    def check_auth_interactive_response(self, responses: list[str]) -> int:
        self._owner.n_password_tries += 1
        good = responses == [self._owner.password]
        return paramiko.AUTH_SUCCESSFUL if good else paramiko.AUTH_FAILED

    def get_allowed_auths(self, username: str) -> str:
        return self._owner.allowed

    def check_auth_password(self, username: str, password: str) -> int:
        self._owner.n_password_tries += 1
        good = self._owner.password is not None and password == self._owner.password
        return paramiko.AUTH_SUCCESSFUL if good else paramiko.AUTH_FAILED

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        good = key.get_base64() in self._owner.authorized_keys
        return paramiko.AUTH_SUCCESSFUL if good else paramiko.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        if self._owner.execute is None:
            return False
        threading.Thread(target=self._execute, args=(channel, command.decode()), daemon=True).start()
        return True

    def _execute(self, channel: paramiko.Channel, command: str) -> None:
        assert self._owner.execute is not None
        # A client that hangs up is what many tests are about; closing then fails as writing does.
        with suppress(OSError, EOFError), closing(channel):
            status = self._owner.execute(command, channel)
            if status >= 0:
                channel.send_exit_status(status)


class ParamikoServer:
    """Listens on loopback; `execute` runs commands (None: refuses them), `files` serves SFTP."""

    def __init__(
        self,
        host_key: Path,
        *,
        authorized_keys: str = "",
        password: str | None = None,
        execute: Exec | None = run_command,
        files: type[paramiko.SFTPServerInterface] | None = Files,
        allowed: str = "publickey,password",
    ) -> None:
        self._host_key = paramiko.PKey.from_path(host_key)
        self._files = files
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._transports: list[paramiko.Transport] = []
        self.authorized_keys = authorized_keys
        self.password = password
        self.allowed = allowed
        self.execute = execute
        self.n_password_tries = 0
        self.n_connections = 0
        self.address, self.port = self._listener.getsockname()

    def __enter__(self) -> ParamikoServer:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts; close alone would not
        self._listener.close()
        for transport in self._transports:
            transport.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.n_connections += 1
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        transport = paramiko.Transport(connection)
        self._transports.append(transport)
        transport.add_server_key(self._host_key)
        if self._files is not None:
            transport.set_subsystem_handler("sftp", paramiko.SFTPServer, self._files)
        try:
            transport.start_server(server=_Server(self))
        except (paramiko.SSHException, EOFError, OSError):
            transport.close()


def spec_of(
    server: ParamikoServer, keys: tuple[Path, Path], root: Path | str, number: int = 1, **changes: object
) -> HostSpec:
    """What an inventory would say of the server; `keys` are its own and that of the user."""
    known = keys[0].with_name("known")
    known.write_text(f"[{server.address}]:{server.port} {Path(f'{keys[0]}.pub').read_text()}")
    spec = HostSpec(
        HostId(str(number)),
        ServerId(f"server-{number}"),
        address=server.address,
        port=server.port,
        user="any",
        identity_file=str(keys[1]),
        known_hosts=str(known),
        profiler_root=str(root),
        ssh_config=os.devnull,
    )
    return replace(spec, **changes)  # type: ignore[arg-type]
