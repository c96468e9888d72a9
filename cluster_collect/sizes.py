"""Sizes as people write them."""

from __future__ import annotations

import re

_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([KMGT]?)(i?)B?(?:/s)?", re.IGNORECASE)


def parse_size(text: str) -> int | None:
    """Parse `50M` (1000), `50Mi` (1024), `1.5G`, `50MB/s` into bytes; None when it is not a size."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    number, unit, binary = match.groups()
    if binary and not unit:
        return None
    return int(float(number) * (1024 if binary else 1000) ** " KMGT".index(unit.upper() or " "))
