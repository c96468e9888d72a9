"""Which hosts share a failure: texts about single hosts folded into one line for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Trouble:
    """What went wrong with some hosts, and what to do about it. `names` are server ids in order."""

    names: tuple[str, ...]
    reason: str
    advice: str


def fold_troubles(troubles: Iterable[Trouble]) -> tuple[Trouble, ...]:
    """Merge troubles that differ only in the name of the host; the advice is that of the first.

    `10.0.0.3: no answer` and `10.0.0.4: no answer` become one trouble of two hosts.
    """
    merged: dict[str, Trouble] = {}
    for one in troubles:
        reason = one.reason
        for name in one.names:
            reason = reason.removeprefix(f"{name}: ").replace(name, "the host")
        found = merged.get(reason)
        if found is None:
            merged[reason] = Trouble(one.names, one.reason, one.advice)
        else:
            merged[reason] = Trouble(found.names + one.names, reason, found.advice)
    return tuple(merged.values())
