"""Real SSH servers on loopback, each with its own address, port and host key; for the demo and the tests.

Works as root and as an ordinary user (who can then log in as himself only). Every process is ended by
its own process group when the block ends.
"""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

_START_DEADLINE_S = 20.0
_END_DEADLINE_S = 5.0
#: What hosts have, whoever logs in; behind it comes our own Python, where the system has none.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PLACES = ("/usr/sbin/sshd", "/usr/local/sbin/sshd", "/usr/lib/ssh/sshd")


class SshServerError(RuntimeError):
    """An SSH server could not be started; the message holds the end of its log."""


def find_sshd() -> str | None:
    """Return the path of the OpenSSH server, None where it is not installed."""
    return shutil.which("sshd") or next((place for place in _PLACES if os.access(place, os.X_OK)), None)


def free_port(address: str) -> int:
    """Return a TCP port that nobody listens on at `address`."""
    with socket.socket() as listener:
        listener.bind((address, 0))
        return int(listener.getsockname()[1])


def make_key(path: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    """Make a key pair `path` and `path`.pub."""
    command = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", path.name, "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return path


@dataclass(frozen=True)
class SshServer:
    """A running server. `process_id` is the listener's; sessions are in its process group."""

    address: str
    port: int
    directory: Path
    process_id: int

    @property
    def host_key(self) -> Path:
        """Its private host key."""
        return self.directory / "host_key"

    @property
    def log(self) -> str:
        """What it has logged so far."""
        return (self.directory / "sshd.log").read_text(errors="replace")


class SshLab:
    """A directory with a user key, a known_hosts file and any number of servers that trust that key.

    Use it as a context manager; `start` adds servers.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.user = getpass.getuser()
        self.known_hosts = directory / "known_hosts"
        self.identity_file = directory / "user_key"
        self.authorized_keys = directory / "authorized_keys"
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> SshLab:
        self.directory.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            # The server refuses to start as root without the directory that Debian's service makes.
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        if not self.identity_file.exists():
            make_key(self.identity_file)
        self.authorized_keys.write_bytes(self.identity_file.with_suffix(".pub").read_bytes())
        self.known_hosts.touch()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._running:
            _signal(process, signal.SIGTERM)
        for process in self._running:
            _end(process)
        self._running.clear()

    def start(
        self,
        address: str,
        *,
        settings: Mapping[str, str] | None = None,
        port: int | None = None,
        host_key: Path | None = None,
        known: bool = True,
        inside: Sequence[str] = (),
    ) -> SshServer:
        """Start a server at a loopback address and wait until it listens.

        `settings` are lines of sshd_config that go before ours, so that they win. `known` says whether its
        key goes into the known_hosts file. `inside` is a command that runs the server, such as unshare.

        Raises:
            SshServerError: sshd is not installed, or does not start.
        """
        program = find_sshd()
        if program is None:
            raise SshServerError("no sshd on this machine: install openssh-server")
        port = port or free_port(address)
        directory = self.directory / f"{address}-{port}"
        directory.mkdir(exist_ok=True)
        if host_key is None:
            host_key = directory / "host_key"
            if not host_key.exists():
                make_key(host_key)
        config = self._config(directory, address, port, host_key, settings or {})
        log_file = directory / "sshd.log"
        with log_file.open("ab") as log:
            begin = log.tell()
            process = subprocess.Popen(
                [*inside, program, "-D", "-e", "-f", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._running.append(process)
        _wait_until_it_listens(process, f"{address} port {port}", log_file, begin)
        if known:
            self.trust(address, port, host_key)
        return SshServer(address, port, directory, process.pid)

    def trust(self, address: str, port: int, host_key: Path) -> None:
        """Add a server's key to the known_hosts file."""
        public = Path(f"{host_key}.pub").read_text().split()
        with self.known_hosts.open("a") as stream:
            stream.write(f"[{address}]:{port} {public[0]} {public[1]}\n")

    def stop(self, server: SshServer) -> None:
        """End one server and its sessions."""
        for process in list(self._running):
            if process.pid == server.process_id:
                _signal(process, signal.SIGTERM)
                _end(process)
                self._running.remove(process)

    def _config(
        self, directory: Path, address: str, port: int, host_key: Path, settings: Mapping[str, str]
    ) -> Path:
        lines = {
            **settings,
            "ListenAddress": address,
            "Port": str(port),
            "HostKey": f'"{host_key}"',
            "PidFile": "none",
        }
        ours = {
            "AuthorizedKeysFile": f'"{self.authorized_keys}"',
            "StrictModes": "no",  # temporary directories are often writable by others
            "UsePAM": "no",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "PermitRootLogin": "prohibit-password",
            "PrintMotd": "no",
            # Below another shell bash reads no ~/.bashrc: to set up pyenv takes most of the time of a login.
            "SetEnv": f"SHLVL=1 PATH={_PATH}:{Path(sys.base_prefix, 'bin')}",
            "Subsystem": "sftp internal-sftp",
        }
        lines.update({name: value for name, value in ours.items() if name not in lines})
        config = directory / "sshd_config"
        config.write_text("".join(f"{name} {value}\n" for name, value in lines.items()))
        return config


def _wait_until_it_listens(process: subprocess.Popen[bytes], where: str, log: Path, begin: int) -> None:
    """Wait for its own word: a port that answers may be the server of somebody who was quicker."""
    deadline_s = time.monotonic() + _START_DEADLINE_S
    while time.monotonic() < deadline_s and process.poll() is None:
        if f"Server listening on {where}." in log.read_bytes()[begin:].decode(errors="replace"):
            return
        time.sleep(0.02)
    raise SshServerError(f"sshd on {where} did not start: {log.read_text(errors='replace')[-500:]}")


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_END_DEADLINE_S)
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGKILL)
        process.wait()
