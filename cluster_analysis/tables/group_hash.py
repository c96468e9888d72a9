"""The number by which names of communication operators call a group."""

from __future__ import annotations

import re
from functools import lru_cache

_HASH = re.compile(r"^\d{15,20}$")
_MASK = 0xFFFFFFFF


@lru_cache(maxsize=4096)
def group_hash(group_id: str) -> str:
    """Return the number that operator names carry for a group id of `parallel_group_info`.

    Two 32-bit sums, base 29 and base 131, joined; checked against real captures.
    """
    low, high = 0, 0
    for character in group_id:
        high = (high * 29 + ord(character)) & _MASK
        low = (low * 131 + ord(character)) & _MASK
    return str((high << 32) | low)


def as_group_hash(name: str) -> str:
    """Return the group's hash for a group id, or for what is a hash already; "" names no group."""
    return name if not name or _HASH.match(name) else group_hash(name)
