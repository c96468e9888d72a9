"""Finds the settings of the OpenSSH client's configuration that would matter and are not honoured here."""

from __future__ import annotations

import glob
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from cluster_collect.spec import PARAMIKO_NAME, HostSpec
from cluster_collect.transports.ssh.handshake import client_configuration
from cluster_collect.wording import KEYS_ARE_CHECKED

_MAX_DEPTH = 4
#: Settings that none of our transports honours, and what happens instead.
_BY_NOBODY: Mapping[str, str] = {
    "stricthostkeychecking": KEYS_ARE_CHECKED,
    "match final": "the configuration is read once; write the settings below Host or another Match",
    "match canonical": "names are not made canonical; write the settings below Host or another Match",
    "canonicalizehostname": "names are not made canonical; write whole names into the inventory",
    "controlmaster": "every host gets a connection of its own",
    "controlpath": "every host gets a connection of its own",
    "knownhostscommand": "host keys are looked up in known_hosts files only",
    "verifyhostkeydns": "host keys are looked up in known_hosts files only",
    "globalknownhostsfile": "/etc/ssh/ssh_known_hosts is read",
    "revokedhostkeys": "mark them @revoked in known_hosts",
}
_BY_ASYNCSSH_ALONE = frozenset(
    (
        *("ciphers", "macs", "kexalgorithms", "hostkeyalgorithms", "proxycommand", "addressfamily"),
        *("identityagent", "certificatefile", "gssapiauthentication"),
        *("pkcs11provider", "securitykeyprovider"),
    )
)
#: Values that ask for what happens here anyhow.
_HARMLESS: Mapping[str, frozenset[str]] = {
    "stricthostkeychecking": frozenset({"yes", "ask"}),
    "canonicalizehostname": frozenset({"no"}),
    "controlmaster": frozenset({"no"}),
    "controlpath": frozenset({"none"}),
    "knownhostscommand": frozenset({"none"}),
    "verifyhostkeydns": frozenset({"no"}),
    "gssapiauthentication": frozenset({"no"}),
    "proxycommand": frozenset({"none"}),
}


@dataclass(frozen=True)
class _Setting:
    place: str
    key: str
    value: str
    hosts: tuple[str, ...]

    def concerns(self, name: str) -> bool:
        """Whether the block that contains it is for the host `name`; a Match block may be."""
        wanted = [pattern for pattern in self.hosts if not pattern.startswith("!")]
        unwanted = [pattern[1:] for pattern in self.hosts if pattern.startswith("!")]
        return any(fnmatchcase(name, one) for one in wanted) and not any(
            fnmatchcase(name, one) for one in unwanted
        )


def ignored_settings(specs: Sequence[HostSpec]) -> tuple[str, ...]:
    """Return a warning for each setting for one of these hosts that is not honoured, in the order met."""
    read: dict[str, list[_Setting]] = {}
    warnings: dict[str, None] = {}
    for spec in specs:
        path = client_configuration(spec) if spec.by_ssh else None
        if path is None:
            continue
        for setting in read.setdefault(path, list(_settings(Path(path)))):
            why = _why_ignored(setting, spec)
            if why and setting.concerns(spec.address):
                warnings[f"{setting.place}: {setting.key} is not honoured: {why}"] = None
    return tuple(warnings)


def _why_ignored(setting: _Setting, spec: HostSpec) -> str:
    key = setting.key.lower()
    if setting.value.lower() in _HARMLESS.get(key, ()):
        return ""
    if spec.transport == PARAMIKO_NAME and key in _BY_ASYNCSSH_ALONE:
        return "only transport: asyncssh honours it"
    return _BY_NOBODY.get(key, "")


def _settings(path: Path, hosts: tuple[str, ...] = ("*",), depth: int = 0) -> Iterator[_Setting]:
    """Read the settings of a file and of those it includes; what cannot be read is left to the libraries."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return
    for number, line in enumerate(lines, 1):
        key, words = _split(line)
        if key.lower() == "host":
            hosts = tuple(words)
        elif key.lower() == "match":
            hosts = ("*",)
            for criterion in {"final", "canonical"} & {word.lower() for word in words}:
                yield _Setting(f"{path}:{number}", f"Match {criterion}", "", hosts)
        elif key.lower() == "include" and depth < _MAX_DEPTH:
            for included in _included(words):
                yield from _settings(included, hosts, depth + 1)
        elif words:
            yield _Setting(f"{path}:{number}", key, words[0], hosts)


def _split(line: str) -> tuple[str, list[str]]:
    try:
        words = shlex.split(line.replace("=", " ", 1), comments=True)
    except ValueError:
        return "", []
    return (words[0], words[1:]) if words else ("", [])


def _included(patterns: Iterable[str]) -> Iterator[Path]:
    for pattern in patterns:
        full = os.path.join(os.path.expanduser("~/.ssh"), os.path.expanduser(pattern))
        yield from map(Path, sorted(glob.glob(full)))
