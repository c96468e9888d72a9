"""The keys of a host in an inventory: their names and types. Nothing else lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from cluster_collect.inventory.located import Located, unknown_key
from cluster_collect.spec import LOCAL_NAME, PARAMIKO_NAME, SRUN_NAME, HostSpec
from cluster_run.ids import parse_size

KeyType = Literal["text", "path", "number", "size", "transport", "directories", "become"]

_TRANSPORTS = (HostSpec.transport, PARAMIKO_NAME, SRUN_NAME)


#: The keys of a host, and what their values are. docs/collecting.md says what they mean.
HOST_KEYS: Mapping[str, KeyType] = {
    "address": "text",
    "port": "number",
    "user": "text",
    "identity_file": "path",
    "certificate_file": "path",
    "known_hosts": "path",
    "profiler_root": "text",
    "server_id": "text",
    "device_regex": "text",
    "output_dir": "text",
    "jump": "text",
    "ssh_config": "path",
    "password_env": "text",
    "passphrase_env": "text",
    "become": "become",
    "become_user": "text",
    "prepare": "text",
    "follow_links": "directories",
    "local": "text",
    "transport": "transport",
    "bandwidth": "size",
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
        """Return this entry, with `defaults` for keys that it lacks.

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
        _check_type(name, HOST_KEYS[name], value)
    return Entry(where, values)


def _plain(name: str) -> str:
    plain = name.lower().replace("_", "").replace("-", "")
    for prefix in _PREFIXES:
        plain = plain.removeprefix(prefix)
    return plain


def _check_type(key: str, kind: KeyType, value: Located) -> None:
    name = repr(key)
    if kind == "number":
        value.number(name)
    elif kind == "size":
        size_of(value, name)
    elif kind == "directories":
        directories_of(value, name)
    elif kind == "transport" and value.text(name) not in (*_TRANSPORTS, LOCAL_NAME):
        raise value.wrong(f"{name} is {value.text(name)!r}", " or ".join(_TRANSPORTS))
    elif kind == "become" and value.text(name) != "sudo":
        raise value.wrong(f"{name} is {value.text(name)!r}", "sudo is the one way there is")
    elif kind in ("text", "path"):
        text = value.text(name)
        if any(ord(character) < 32 for character in text) and key != "prepare":
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
