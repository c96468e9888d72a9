"""The keys of a host in an inventory: their names and types. Nothing else lists them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from cluster_collect.inventory.located import Located, unknown_key
from cluster_collect.spec import LOCAL_NAME, PARAMIKO_NAME, SRUN_NAME, HostSpec
from cluster_run.ids import parse_size

KeyType = Literal["text", "path", "number", "size", "transport", "directories", "become", "variable"]

_TRANSPORTS = (HostSpec.transport, PARAMIKO_NAME, SRUN_NAME)
_VARIABLE = re.compile(r"[A-Za-z_]\w*")


class Key(NamedTuple):
    """What the value of a key is, and an example of one, which an error shows."""

    kind: KeyType
    like: str


#: The keys of a host. docs/collecting.md says what they mean.
HOST_KEYS: Mapping[str, Key] = {
    "address": Key("text", "node[01-04,07]"),
    "port": Key("number", "2222"),
    "user": Key("text", "trainer"),
    "identity_file": Key("path", "~/.ssh/id_ed25519"),
    "certificate_file": Key("path", "~/.ssh/id_ed25519-cert.pub"),
    "known_hosts": Key("path", "~/.ssh/known_hosts"),
    "profiler_root": Key("text", "/home/trainer/prof"),
    "server_id": Key("text", "10.0.0.[1-4,7]"),
    "device_regex": Key("text", "device"),
    "output_dir": Key("text", "data"),
    "jump": Key("text", "gate.example,operator@bastion.example:2222"),
    "ssh_config": Key("path", "~/.ssh/config"),
    "password_env": Key("variable", "NODE_PASSWORD"),
    "passphrase_env": Key("variable", "KEY_PASSPHRASE"),
    "become": Key("become", "sudo"),
    "become_user": Key("text", "profiler"),
    "prepare": Key("text", "python3 parse_offline.py /data/prof"),
    "follow_links": Key("directories", "/data2,/data3"),
    "local": Key("text", "/mnt/shared/prof/node9"),
    "transport": Key("transport", "srun"),
    "bandwidth": Key("size", "50M"),
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


def check_entry(
    where: Located, values: Mapping[str, Located], of: str, written: Mapping[str, str] | None = None
) -> Entry:
    """Return an entry whose keys are known and whose values have the right types.

    `written` says how the file calls a key, where that is another name.

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
        _check_type(HOST_KEYS[name], value, repr((written or {}).get(name, name)))
    return Entry(where, values)


def _plain(name: str) -> str:
    plain = name.lower().replace("_", "").replace("-", "")
    for prefix in _PREFIXES:
        plain = plain.removeprefix(prefix)
    return plain


def _check_type(key: Key, value: Located, name: str) -> None:
    advice = f"write it like {key.like}, or leave the key out"
    if key.kind == "number":
        value.number(name, advice)
        return
    text = value.text(name, advice)
    if key.kind == "size":
        size_of(value, name)
    elif key.kind == "directories":
        directories_of(value, name)
    elif key.kind == "transport" and text not in (*_TRANSPORTS, LOCAL_NAME):
        raise value.wrong(f"{name} is {text!r}", " or ".join(_TRANSPORTS))
    elif key.kind == "become" and text != "sudo":
        raise value.wrong(f"{name} is {text!r}", "sudo is the one way there is")
    elif key.kind == "variable" and not _VARIABLE.fullmatch(text):
        raise value.wrong(f"{name} is no name of a variable", advice)
    elif any(ord(character) < 32 for character in text) and name != "'prepare'":
        raise value.wrong(f"{name} holds a line break or another control character")


def size_of(value: Located, name: str) -> int:
    """Return a size in bytes from a text like `50M` (1000) or `50Mi` (1024)."""
    size = parse_size(value.text(name))
    if not size:
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
