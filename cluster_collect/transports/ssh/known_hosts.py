"""OpenSSH's known_hosts files: parsed once, hashed names too, and one rule for all transports.

A key is trusted when the files list it for the host. A host that the files do not know at all is
refused, or, when told so, written down on its first login. A host that they know with another key
is always refused.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import hmac
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path

from cluster_collect.faults import SshSetupError
from cluster_collect.spec import SSH_PORT

_WILDCARDS = re.compile(r"[*?!,]")


@dataclass(frozen=True)
class KnownKeys:
    """What the files say about one host: public keys as `type base64`."""

    trusted: tuple[str, ...]
    authorities: tuple[str, ...]
    revoked: tuple[str, ...]


@dataclass
class KnownHosts:
    """The entries of some known_hosts files, ready for many lookups."""

    _plain: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    _hashed: list[tuple[bytes, bytes, str, str]] = field(default_factory=list)
    _patterns: list[tuple[list[str], str, str]] = field(default_factory=list)
    # One handshake asks several times, and a hashed file costs a digest an entry.
    _looked_up: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def add_text(self, text: str) -> None:
        """Add the lines of a known_hosts file; comments and lines that cannot be read are passed over."""
        self._looked_up.clear()
        for line in text.splitlines():
            fields = line.split()
            if not fields or fields[0].startswith("#"):
                continue
            marker = fields.pop(0) if fields[0].startswith("@") else ""
            if len(fields) >= 3:
                self._add(marker, fields[0], f"{fields[1]} {fields[2]}")

    def _add(self, marker: str, names: str, key: str) -> None:
        if names.startswith("|1|"):
            try:
                salt, digest = (base64.b64decode(part, validate=True) for part in names.split("|")[2:4])
            except (ValueError, binascii.Error):
                return
            self._hashed.append((salt, digest, marker, key))
        elif _WILDCARDS.search(names.replace(",", "")):
            self._patterns.append((names.lower().split(","), marker, key))
        else:
            for name in names.lower().split(","):
                self._plain.setdefault(name, []).append((marker, key))

    def lookup(self, names: Iterable[str], port: int) -> KnownKeys:
        """Return what is known of a host under any of `names` (its name, its address) at `port`."""
        found: list[tuple[str, str]] = []
        for name in dict.fromkeys(_spelled(name.lower(), port) for name in names if name):
            if name not in self._looked_up:
                self._looked_up[name] = self._entries_of(name)
            found += self._looked_up[name]
        return KnownKeys(
            trusted=tuple(dict.fromkeys(key for marker, key in found if not marker)),
            authorities=tuple(dict.fromkeys(key for marker, key in found if marker == "@cert-authority")),
            revoked=tuple(dict.fromkeys(key for marker, key in found if marker == "@revoked")),
        )

    def _entries_of(self, name: str) -> list[tuple[str, str]]:
        """Marker and key of every entry for a name."""
        found = list(self._plain.get(name, ()))
        encoded = name.encode()
        found += [
            (marker, key)
            for salt, digest, marker, key in self._hashed
            if hmac.digest(salt, encoded, "sha1") == digest
        ]
        return found + [(marker, key) for pattern, marker, key in self._patterns if _matches(pattern, name)]


def _spelled(name: str, port: int) -> str:
    return name if port == SSH_PORT else f"[{name}]:{port}"


def _matches(patterns: list[str], name: str) -> bool:
    hit = False
    for pattern in patterns:
        # [host]:port is literal in these files; fnmatch would read the brackets as a set
        literal = pattern.replace("[", "[[]")
        if literal.startswith("!"):
            if fnmatchcase(name, literal[1:]):
                return False
        elif fnmatchcase(name, literal):
            hit = True
    return hit


def read_known_hosts(paths: Iterable[Path]) -> KnownHosts:
    """Read the files that exist.

    Raises:
        SshSetupError: one of them cannot be read.
    """
    known = KnownHosts()
    for path in paths:
        try:
            if path.is_file():
                known.add_text(path.read_text(errors="replace"))
        except OSError as error:
            raise SshSetupError(
                f"the known host keys cannot be read: {path}: {error.strerror}", "let this user read it"
            ) from None
    return known


def remember_host(path: Path, name: str, port: int, key: str) -> None:
    """Append a host's key to a known_hosts file, which is made (for its owner only) when missing."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        size = os.fstat(descriptor).st_size
        ends_whole = size == 0 or os.pread(descriptor, 1, size - 1) == b"\n"
        os.write(
            descriptor, ("" if ends_whole else "\n").encode() + f"{_spelled(name, port)} {key}\n".encode()
        )
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fingerprint(key: str) -> str:
    """Return the SHA256 fingerprint of a public key `type base64`, as ssh-keygen -l prints it."""
    digest = sha256(base64.b64decode(key.split()[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")
