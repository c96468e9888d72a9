"""What to collect from where: the values that the inventory makes and the transfer uses."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from cluster_run.ids import HostId, ServerId

#: The other transports than asyncssh: the second library of SSH, steps of Slurm, a directory of this machine.
PARAMIKO_NAME, SRUN_NAME, LOCAL_NAME = "paramiko", "srun", "local"

#: `host_deadline_s` of a capture, which is not made again; a watch goes on all the same.
LIVE_HOST_DEADLINE_S = 3600.0

#: Reason in the manifest for a file that its host could not read: a later call asks for it again.
UNREAD = "its host had no time or memory to read it"

_WILDCARD = re.compile(r"[*?]|\[[^\]/]+\]")

#: How archives are packed on the way; the best first, and not at all.
Codec = Literal["zstd", "gzip", "none"]
#: `auto`: the first of them that the host has.
Compression = Literal["auto", Codec]


SSH_PORT = 22
#: Digits of a port: one more than the largest has, so that a typing error is recognised.
_MOST_DIGITS = 6


@dataclass(frozen=True)
class Server:
    """Where to log in, as people write it: `[user@]name[:port]`; what is not said is None."""

    user: str | None
    name: str
    port: int | None


def parse_server(text: str) -> Server:
    """Read a server or a node set of them; an IPv6 address is in brackets when a port follows.

    A number that no port comes near belongs to the name, which is refused.
    """
    user, _, place = text.strip().removeprefix("ssh://").rpartition("@")
    name, colon, port = place.rpartition(":")
    is_port = port.isdecimal() and len(port) <= _MOST_DIGITS
    if not (colon and is_port and (":" not in name or name.startswith("["))):
        name, port = place, ""
    return Server(user or None, name.strip("[]") if ":" in name else name, int(port) if port else None)


@dataclass(frozen=True)
class HostSpec:
    """One host of the inventory. Paths are on that host; unset SSH values come from `~/.ssh/config`.

    `local` names a directory of a shared file system that is read instead of connecting.
    `jump` is an OpenSSH jump list (`[user@]host[:port]`, commas between several). `ssh_config` replaces
    `~/.ssh/config`. `follow_links` names the directories that symbolic links may lead to. `password` and
    `passphrase` (of `identity_file`) never show in a repr. With `become` (`sudo`) commands run as
    `become_user` there, root where that is unset. `captures` are those that are taken, by their paths below
    the profiler root; None for all. `device_ranks` are those of its devices, as the rank table has them.
    """

    host: HostId
    server_id: ServerId
    address: str = ""
    port: int | None = None
    user: str | None = None
    identity_file: str | None = None
    known_hosts: str | None = None
    profiler_root: str = ""
    device_regex: str | None = None
    output_dir: str | None = None
    jump: str | None = None
    prepare: str | None = None
    local: str | None = None
    transport: str = "asyncssh"
    bandwidth_bytes_per_s: int | None = None
    password: str | None = field(default=None, repr=False)
    passphrase: str | None = field(default=None, repr=False)
    certificate_file: str | None = None
    ssh_config: str | None = None
    follow_links: tuple[str, ...] = ()
    become: str | None = None
    become_user: str | None = None
    captures: frozenset[str] | None = None
    device_ranks: Mapping[int, int] = field(default_factory=dict, hash=False)

    @property
    def root(self) -> str:
        """The directory to list on the host: what stands before the first wildcard."""
        return self._divided_root[0]

    @property
    def pattern(self) -> bytes:
        """What below that is listed, with wildcards; empty for all of it."""
        return os.fsencode(self._divided_root[1])

    @property
    def _divided_root(self) -> tuple[str, str]:
        root = self.local if self.local is not None else self.profiler_root
        parts = root.rstrip("/").split("/")
        first = next((place for place, part in enumerate(parts) if _WILDCARD.search(part)), None)
        if first is None:
            return root, ""
        return "/".join(parts[:first]) or ("/" if root.startswith("/") else "."), "/".join(parts[first:])

    @property
    def sudo_words(self) -> tuple[str, ...]:
        """What stands before a command that runs as another user; its words mean the same to every shell."""
        return ("sudo", "-n", "-H", *(("-u", self.become_user) if self.become_user else ()))

    @property
    def by_ssh(self) -> bool:
        """Whether it is reached by SSH."""
        return self.local is None and self.transport in (HostSpec.transport, PARAMIKO_NAME)


@dataclass(frozen=True)
class CollectOptions:
    """How to collect. Times are seconds; `None` means no limit.

    `what` holds `analysis`, `columns` (the same files) or `full`, or globs, or one of the three and globs
    that narrow it. `since_s` is a time in seconds since 1970; a capture is taken whole when one of its files
    is not older. With `ranks` only their captures are taken; None for all. Of `whole_ranks` everything is
    taken, in whatever form all else comes.
    With `columns` in `what`, a reader of ours runs on the hosts: for `columns_deadline_s` at most, in
    processes of `columns_memory_bytes` each; for root, and while a process has one of `columns_devices`
    (a regular expression) open, only if told so.
    Captures that are being parsed are looked at each `parsing_look_s`, for `parsing_deadline_s` at most.
    `host_deadline_s` is what a host may take in all, `deadline_s` all of them; infinite for no end. Of a
    host's time its queues, its `prepare`, its parsing and pauses that `bandwidth` asks for do not count.
    While a host keeps the call waiting for `interim_s`, a manifest of the others is written.
    `verify` has the hosts hash their files, too. `give_up_s` is how long a host may take without bringing
    anything, over all attempts and without the time in queues, before it is not tried again.
    `hide_addresses` keeps the names of servers out of reasons and advices.
    """

    what: tuple[str, ...] = ("analysis",)
    exclude: tuple[str, ...] = ()
    since_s: float | None = None
    capture: str = "all"
    ranks: frozenset[int] | None = None
    whole_ranks: frozenset[int] = frozenset()
    n_jobs: int = 32
    n_connecting: int = 100
    n_handshakes_per_gateway: int = 5
    connect_deadline_s: float = 10.0
    login_deadline_s: float = 20.0
    prepare_deadline_s: float = 3600.0
    listing_deadline_s: float = 25.0
    progress_deadline_s: float = 25.0
    parsing_deadline_s: float = 120.0
    parsing_look_s: float = 5.0
    least_bytes_per_s: float = 1000
    n_attempts: int = 5
    give_up_s: float = 40.0
    host_deadline_s: float = 400.0
    interim_s: float = 20.0
    deadline_s: float = math.inf
    backoff_first_s: float = 1.0
    backoff_most_s: float = 60.0
    bandwidth_bytes_per_s: int | None = None
    compression: Compression = "auto"
    max_entries_per_host: int = 500_000
    min_free_bytes: int = 256 * 1024 * 1024
    accept_new_host_keys: bool = False
    verify: bool = False
    hide_addresses: bool = False
    dry_run: bool = False
    check: bool = False
    columns_as_root: bool = False
    columns_deadline_s: float = 600.0
    columns_memory_bytes: int = 2 << 30
    columns_devices: str = "/dev/davinci[0-9]+"
    while_running: bool = False

    @property
    def columns(self) -> bool:
        """Whether large files are reduced on their hosts."""
        return "columns" in self.what
