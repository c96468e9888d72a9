"""The keys of a host in an inventory: their names, types and meanings. Nothing else lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from cluster_collect.inventory.located import Located, unknown_key
from cluster_collect.spec import LOCAL_NAME, PARAMIKO_NAME, SRUN_NAME, HostSpec
from cluster_collect.wording import parse_size

KeyType = Literal["text", "number", "size", "transport", "directories", "become"]

_TRANSPORTS = (HostSpec.transport, PARAMIKO_NAME, SRUN_NAME)


@dataclass(frozen=True)
class HostKey:
    """One key: the type its value must have, and what it means, as the documentation says it."""

    name: str
    type: KeyType
    meaning: str


HOST_KEYS: Mapping[str, HostKey] = {
    key.name: key
    for key in (
        HostKey("address", "text", "name or address to connect to; a node set stands for many hosts"),
        HostKey("port", "number", "port of the SSH server"),
        HostKey("user", "text", "login name"),
        HostKey("identity_file", "text", "private key on this machine"),
        HostKey("certificate_file", "text", "certificate of the private key, where it has another name"),
        HostKey("known_hosts", "text", "file of known host keys on this machine"),
        HostKey(
            "profiler_root",
            "text",
            "directory of the profiler data on the host, from the home unless it begins with /; "
            "wildcards, %h (its address) and $NAME may be in it",
        ),
        HostKey(
            "server_id", "text", "name in the rank table, where it is not the address; may be a node set"
        ),
        HostKey("device_regex", "text", "r1.x: name of the folders of one device each, without the number"),
        HostKey("output_dir", "text", "r1.x: directory below the device folder"),
        HostKey("jump", "text", "jump host: [user@]host[:port], several with commas"),
        HostKey("ssh_config", "text", "OpenSSH client configuration to read instead of ~/.ssh/config"),
        HostKey("password_env", "text", "environment variable that holds the password"),
        HostKey(
            "passphrase_env", "text", "environment variable that holds the passphrase of the private key"
        ),
        HostKey("become", "become", "sudo: work as another user of the host, without a password"),
        HostKey("become_user", "text", "that user, where it is not root"),
        HostKey("prepare", "text", "command to run on the host before its files are listed"),
        HostKey(
            "follow_links",
            "directories",
            "directories on the host that symbolic links may lead to, with commas; . is the profiler root",
        ),
        HostKey("local", "text", "directory of a shared file system that is read instead of connecting"),
        HostKey(
            "transport",
            "transport",
            f"{HostSpec.transport} (the default), {PARAMIKO_NAME}, or {SRUN_NAME}: "
            "by steps of Slurm, where address is the node",
        ),
        HostKey("bandwidth", "size", "limit of this host in bytes a second, like 50M"),
    )
}

#: What ssh_config, Ansible and other tools call a key, in small letters without `_`, `-` and their prefixes.
_ELSEWHERE = {
    **dict.fromkeys(("host", "hostname", "ip", "name", "node", "server", "addr"), "address"),
    **dict.fromkeys(("username", "login", "loginuser", "remoteuser"), "user"),
    **dict.fromkeys(("key", "keyfile", "pem", "identity", "privatekey", "privatekeyfile"), "identity_file"),
    **dict.fromkeys(("userknownhostsfile", "knownhostsfile"), "known_hosts"),
    **dict.fromkeys(
        ("path", "dir", "directory", "root", "data", "profiledir", "profilepath"), "profiler_root"
    ),
    **dict.fromkeys(("proxy", "proxyjump", "bastion", "gateway", "jumphost"), "jump"),
    **dict.fromkeys(("sudo", "becomemethod"), "become"),
    **dict.fromkeys(("connection", "backend", "via"), "transport"),
    **dict.fromkeys(("rate", "ratelimit", "bwlimit"), "bandwidth"),
    **dict.fromkeys(("config", "configfile"), "ssh_config"),
}
_PREFIXES = ("ansible", "ssh")
#: Keys that people write for a password; none of them is read.
_PASSWORD_KEYS = ("password", "passwd", "pass", "pw", "ssh_pass", "ssh_password")


@dataclass(frozen=True)
class Entry:
    """The keys of one host entry, checked by name and type; `where` is the place of the entry itself."""

    where: Located
    values: Mapping[str, Located] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        """Return a text key, or None where it is not set."""
        return self.values[name].text(repr(name)) if name in self.values else None

    def number(self, name: str) -> int | None:
        """Return a number key, or None where it is not set."""
        return self.values[name].number(repr(name)) if name in self.values else None

    def over(self, defaults: Entry) -> Entry:
        """Return this entry with `defaults` where it says nothing.

        `address` and `local` exclude each other, so the one an entry has hides the other's default.
        """
        hidden = {"address", "local"} if {"address", "local"} & set(self.values) else set()
        inherited = {name: value for name, value in defaults.values.items() if name not in hidden}
        return Entry(self.where, {**inherited, **self.values})


def check_entry(where: Located, values: Mapping[str, Located], of: str) -> Entry:
    """Return an entry whose keys are known and whose values have the right types.

    Raises:
        InputError: naming file, line and key, and the nearest key that exists.
    """
    for name, value in values.items():
        if name.lower() in _PASSWORD_KEYS:
            raise value.wrong(
                f"unknown key {name!r} {of}",
                "a password does not belong into an inventory: password_env names the environment variable",
            )
        if name not in HOST_KEYS:
            raise unknown_key(value, name, HOST_KEYS, of, _ELSEWHERE.get(_plain(name)))
        _check_type(HOST_KEYS[name], value)
    return Entry(where, values)


def _plain(name: str) -> str:
    plain = name.lower().replace("_", "").replace("-", "")
    for prefix in _PREFIXES:
        plain = plain.removeprefix(prefix)
    return plain


def _check_type(key: HostKey, value: Located) -> None:
    name = repr(key.name)
    if key.type == "number":
        value.number(name)
    elif key.type == "size":
        size_of(value, name)
    elif key.type == "directories":
        directories_of(value, name)
    elif key.type == "transport" and value.text(name) not in (*_TRANSPORTS, LOCAL_NAME):
        raise value.wrong(f"{name} is {value.text(name)!r}", " or ".join(_TRANSPORTS))
    elif key.type == "become" and value.text(name) != "sudo":
        raise value.wrong(f"{name} is {value.text(name)!r}", "sudo is the one way there is")
    elif key.type == "text":
        text = value.text(name)
        if any(ord(character) < 32 for character in text) and key.name != "prepare":
            raise value.wrong(f"{name} holds a line break or another control character")


def size_of(value: Located, name: str) -> int:
    """Return a size in bytes from a number or a text like `50M` (1000) or `50Mi` (1024)."""
    if isinstance(value.value, int) and not isinstance(value.value, bool):
        size: int | None = value.value
    else:
        size = parse_size(value.text(name))
    if size is None or size <= 0:
        raise value.wrong(f"{name} is not a size", "write it like 50M or 1.5G")
    return size


def directories_of(value: Located, name: str) -> tuple[str, ...]:
    """Return the absolute directories of a list with commas; `.` may stand among them."""
    directories = tuple(part.strip() for part in value.text(name).split(",") if part.strip())
    for directory in directories:
        if directory != "." and (not directory.startswith("/") or ":" in directory):
            raise value.wrong(f"{name}: {directory!r} is no absolute path", "write it like /data2,/data3")
    return directories


@dataclass(frozen=True)
class Draft:
    """An inventory as written.

    `groups` hold node sets; `aliases` server ids by other names of hosts; `passwords` those of an r1.x
    account file.
    """

    entries: tuple[Entry, ...]
    defaults: Entry
    groups: Mapping[str, Located] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    rank_table: str | None = None
    output: str | None = None
    passwords: Mapping[str, str] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()
