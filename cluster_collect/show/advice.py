"""Which hosts share a failure: texts about single hosts folded into one line for all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Trouble:
    """What went wrong with a host, or with some in the order of the inventory, and what to do about it.

    `address` is that of a single host, empty where it has none; `command` can be tried by hand.
    """

    names: tuple[str, ...]
    reason: str
    advice: str
    address: str = ""
    details: tuple[str, ...] = ()
    command: str = ""


def fold_troubles(troubles: Iterable[Trouble]) -> tuple[Trouble, ...]:
    """Merge troubles of single hosts that differ in the host alone; advice and command are the first one's.

    `10.0.0.3: no answer` and `10.0.0.4: no answer` become one trouble of two hosts.
    """
    groups: dict[str, list[Trouble]] = {}
    for one in troubles:
        reason = without_prefix(one.reason, one.names[0], one.address)
        for known in {one.names[0], one.address} - {""}:
            reason = re.sub(rf"(?<![\w.]){re.escape(known)}(?![\w.]*\w)", "the host", reason)
        groups.setdefault("".join((reason, *one.details)), []).append(one)
    return tuple(_shared(group) for group in groups.values())


def without_prefix(reason: str, name: str, address: str) -> str:
    """Return a reason without the host's name in front of it, for a line that begins with the name."""
    for known in (name, address):
        if known:
            reason = re.sub(rf"^\[?{re.escape(known)}\]?(:\d+)?: ", "", reason)
    return reason


def _shared(group: list[Trouble]) -> Trouble:
    first = group[0]
    reason = without_prefix(first.reason, first.names[0], first.address)
    return replace(first, names=tuple(one.names[0] for one in group), reason=reason)
