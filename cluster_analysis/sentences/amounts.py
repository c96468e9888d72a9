"""How shares and times are written in a sentence."""

from __future__ import annotations


def percent(share: float) -> str:
    """A share as people say it, without its sign: 22 %, 4.5 %, 0.31 %."""
    value = abs(share) * 100
    digits = 0 if value >= 10 else 1 if value >= 1 else 2
    return f"{value:.{digits}f} %"


def milliseconds(time_us: float) -> str:
    """µs as milliseconds with three figures at most."""
    value = time_us / 1e3
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 1 else 2
    return f"{value:.{digits}f} ms"
