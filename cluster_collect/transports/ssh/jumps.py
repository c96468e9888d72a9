"""The notation of jump hosts: `[user@]host[:port]`, commas between several."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Jump:
    """One jump host; unset values come from the client's configuration."""

    user: str | None
    name: str
    port: int | None


def parse_jump(text: str) -> Jump:
    """Read one jump host; IPv6 addresses stand in brackets when a port follows."""
    user, _, place = text.strip().removeprefix("ssh://").rpartition("@")
    name, colon, port = place.rpartition(":")
    if colon and port.isdecimal() and (":" not in name or name.startswith("[")):
        return Jump(user or None, name.strip("[]"), int(port))
    return Jump(user or None, place.strip("[]"), None)
