"""What paired probes found, as the log of actions keeps it: newer evidence than any job's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

#: What the log calls a probe, and what it may have found.
PROBE, CONFIRMED, CLEARED, OPEN = "probe", "slow", "not slow", "open"
#: A probe counts for this many seconds; later, jobs have shown more.
COUNTS_S = 7 * 86400.0
_DEVICE = re.compile(r"device (\d+) of ")


def probes_of(actions: Iterable[Mapping[str, Any]], now_s: float) -> dict[str, str]:
    """Return what the newest probe of each device found that still counts, by its place as in `node017:5`."""
    return {
        one["unit"]: one["state"] for one in actions if one["way"] == PROBE and now_s - one["at_s"] < COUNTS_S
    }


def place_of(host: str, name: str) -> str:
    """Return where a probe finds a device of that name; a host itself is at no such place."""
    number = device_number(name)
    return "" if number is None else f"{host}:{number}"


def device_number(name: str) -> int | None:
    """Return the number of a device whose name, or a sentence of it, begins with it; None for a host."""
    found = _DEVICE.match(name)
    return int(found[1]) if found else None
