"""Decides about a server's key; the same for every SSH library."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from cluster_collect.faults import HostKeyError
from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import SSH_PORT, CollectOptions, HostSpec, Server
from cluster_collect.transports.ssh.known_hosts import (
    KnownHosts,
    KnownKeys,
    fingerprint,
    read_known_hosts,
    remember_host,
)
from cluster_run.ids import HostId

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

_KEY_KINDS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)
#: Words for a server whose name must not be shown: the host, or its jump host.
_ROLES = {True: "the host", False: "the jump host"}
_SYSTEM_KNOWN_HOSTS = Path("/etc/ssh/ssh_known_hosts")


def user_known_hosts(named: str | None) -> Path:
    """Return the known_hosts file of a host: the inventory's, or the user's own."""
    return Path(named or "~/.ssh/known_hosts").expanduser()


class HostKeys:
    """Judges the servers of one collection; each set of known_hosts files is read once for all."""

    def __init__(self, options: CollectOptions, watch: ProgressListener) -> None:
        self._accepts_new = options.accept_new_host_keys
        self._watch = watch
        self._read = cache(read_known_hosts)
        self._hosts: defaultdict[HostId, dict[str, str]] = defaultdict(dict)
        self._jump_hosts: dict[str, str] = {}

    def names(self, host: HostId) -> Mapping[str, str]:
        """Return what messages call the servers on the way to a host, and what each of them is.

        The client's configuration may call them something else than the inventory does (`HostName`).
        """
        return {**self._jump_hosts, **self._hosts.get(host, {})}

    def judge(
        self, spec: HostSpec, server: Server, name: str, port: int, alias: str | None, paths: Sequence[Path]
    ) -> HostKeyJudge:
        """Return who judges the key of a server on the way to a host, by these files and those of the system.

        The client's configuration gives it `name` and `alias`.
        """
        is_host = server.name == spec.address
        called = self._hosts[spec.host] if is_host else self._jump_hosts
        called.update(dict.fromkeys(filter(None, (server.name, name, alias)), _ROLES[is_host]))
        return HostKeyJudge(name, port, alias, (*paths, _SYSTEM_KNOWN_HOSTS), self._read, self._accepts_new)

    def confirm(self, judge: HostKeyJudge, host: HostId) -> None:
        """Write down a key that was accepted as new, and say so."""
        if new_key := judge.confirm():
            self._watch.noted(host, f"new host key of {judge.name} accepted: {new_key}")


@dataclass
class HostKeyJudge:
    """Judges the key of one server in one handshake.

    `alias` (HostKeyAlias) replaces name and port in the lookup. The key of an unknown host is accepted
    when `accept_new` says so, and written down by `confirm` after the login. `read` keeps what files say.
    """

    name: str
    port: int
    alias: str | None
    paths: tuple[Path, ...]
    read: _lru_cache_wrapper[KnownHosts]
    accept_new: bool
    offered: str = ""
    verdict: str = ""

    def known(self, address: str) -> KnownKeys:
        """Return what the files say of this server."""
        hosts = self.read(self.paths)
        if self.alias:
            return hosts.lookup([self.alias], SSH_PORT)
        return hosts.lookup(dict.fromkeys([self.name, address]), self.port)

    def key_kinds(self) -> tuple[str, ...]:
        """Return the signature algorithms to ask for: those of the listed keys first, then all others.

        Without the others a server whose key has changed in kind would just hang up. None of SHA-1: OpenSSH
        asks for those only where its configuration says so, too.
        """
        known = self.known(self.name)
        kinds = {key.split()[0] for key in known.trusted}
        listed = [
            kind for kind in _KEY_KINDS if kind in kinds or (kind.startswith("rsa") and "ssh-rsa" in kinds)
        ]
        certified = [f"{kind}-cert-v01@openssh.com" for kind in _KEY_KINDS if known.authorities]
        return (*certified, *listed, *(kind for kind in _KEY_KINDS if kind not in listed))

    def accepts(self, address: str, key: str) -> bool:
        """Judge a key (`type base64`) that the files do not list for this server.

        A server that the files list with another key is refused whatever `accept_new` says.
        """
        self.offered = key
        known = self.known(address)
        if key in known.revoked:
            self.verdict = "revoked"
        elif key in known.trusted:
            self.verdict = "trusted"
        elif known.trusted:
            self.verdict = "changed"
        else:
            self.verdict = "new" if self.accept_new else "unknown"
        return self.verdict in ("new", "trusted")

    def confirm(self) -> str:
        """Write down a key that was accepted as new; return its fingerprint, empty when there is none."""
        if self.verdict != "new":
            return ""
        path, port = self.paths[0], SSH_PORT if self.alias else self.port
        try:
            remember_host(path, self.alias or self.name, port, self.offered)
        except OSError as error:
            where = f"{error.filename or path}: {error.strerror}"
            raise HostKeyError(
                f"the new key of {self.name} cannot be written down: {where}",
                "name another file, with known_hosts below 'defaults' or --set known_hosts=FILE",
            ) from None
        self.read.cache_clear()
        self.verdict = "trusted"
        return fingerprint(self.offered)

    @property
    def _forget(self) -> str:
        """The command that removes the server's old key."""
        name, port = (self.alias, SSH_PORT) if self.alias else (self.name, self.port)
        entry = name if port == SSH_PORT else f"[{name}]:{port}"
        return f"ssh-keygen -f {shlex.quote(str(self.paths[0]))} -R {shlex.quote(entry)}"

    def error(self, detail: str = "") -> HostKeyError:
        """Return the error for a refused key."""
        print_of = f" ({fingerprint(self.offered)})" if self.offered else ""
        if self.verdict == "changed":
            return HostKeyError(
                f"the key of {self.name} has changed{print_of}: reinstalled, or somebody is in between",
                "compare it with what the host says: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub; "
                f"if it is right, forget the old one: {self._forget}",
            )
        if self.verdict == "revoked":
            return HostKeyError(f"the key of {self.name} is revoked{print_of}", "ask who runs the host")
        if self.verdict == "unknown":
            return HostKeyError(
                f"the key of {self.name} is not known{print_of}",
                "log in once with ssh and compare the fingerprint, or call it with --accept-new-host-keys",
            )
        return HostKeyError(
            f"the key of {self.name} cannot be verified{': ' + detail if detail else ''}",
            f"see what ssh says to it, and {self.paths[0]}",
        )
