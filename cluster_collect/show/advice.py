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

    `the key of node3 is revoked` and `the key of node4 is revoked` become one trouble of two hosts.
    """
    groups: dict[str, list[Trouble]] = {}
    for one in troubles:
        reason = one.reason
        for known in {one.names[0], one.address} - {""}:
            reason = re.sub(rf"(?<![\w.]){re.escape(known)}(?![\w.]*\w)", "the host", reason)
        groups.setdefault("".join((reason, *one.details)), []).append(one)
    return tuple(replace(group[0], names=tuple(one.names[0] for one in group)) for group in groups.values())
