"""Which hosts share a failure: texts about single hosts folded into one line for all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Trouble:
    """What went wrong with a host, and what to do about it.

    `address` is empty where it has none; `command` can be tried by hand.
    """

    name: str
    reason: str
    advice: str
    address: str = ""
    details: tuple[str, ...] = ()
    command: str = ""


@dataclass(frozen=True)
class SharedTrouble:
    """What went wrong with some hosts, in the order of the inventory; `command` is that of the first."""

    names: tuple[str, ...]
    reason: str
    advice: str
    details: tuple[str, ...] = ()
    command: str = ""


def fold_troubles(troubles: Iterable[Trouble]) -> tuple[SharedTrouble, ...]:
    """Merge troubles that differ only in the host they are about; the advice is that of the first.

    `10.0.0.3: no answer` and `10.0.0.4: no answer` become one trouble of two hosts.
    """
    groups: dict[str, list[Trouble]] = {}
    for one in troubles:
        reason = without_prefix(one.reason, one.name, one.address)
        for known in {one.name, one.address} - {""}:
            reason = re.sub(rf"(?<![\w.]){re.escape(known)}(?![\w.]*\w)", "the host", reason)
        groups.setdefault("".join((reason, *one.details)), []).append(one)
    return tuple(_shared(group) for group in groups.values())


def without_prefix(reason: str, name: str, address: str = "") -> str:
    """Return a reason without the host's name in front of it, for a line that begins with the name."""
    for known in (name, address):
        if known:
            reason = re.sub(rf"^\[?{re.escape(known)}\]?(:\d+)?: ", "", reason)
    return reason


def _shared(group: list[Trouble]) -> SharedTrouble:
    first = group[0]
    reason = without_prefix(first.reason, first.name, first.address)
    names = tuple(one.name for one in group)
    return SharedTrouble(names, reason, first.advice, first.details, first.command)
