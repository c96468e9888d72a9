"""How shares and times are written in a sentence; charts write times alike, in `js/amounts.js`."""

from __future__ import annotations


def percent(share: float) -> str:
    """A share as people say it, without its sign: 22 %, 4.5 %, 0.31 %."""
    value = abs(share) * 100
    digits = 0 if value >= 10 else 1 if value >= 1 else 2
    return f"{value:.{digits}f} %"


def format_share(share: float | None) -> str:
    """Format a share of the step, so that many stand below each other: `4.4 %`; `?` for None."""
    return "?" if share is None else f"{100 * share:.1f} %"


def format_ms(value_ms: float | None) -> str:
    """Format a time, the same everywhere: `12.3 ms`, `1.24 s`, `410 µs`; `?` for None."""
    if value_ms is None:
        return "?"
    size = abs(value_ms)
    if size >= 1000:
        return f"{value_ms / 1000:.{1 if size >= 10_000 else 2}f} s"
    if size >= 1:
        return f"{value_ms:.{0 if size >= 100 else 1}f} ms"
    return f"{value_ms * 1000:.0f} µs" if size else "0 ms"


def milliseconds(time_us: float) -> str:
    """Format a time in µs as `format_ms` does."""
    return format_ms(time_us / 1e3)
