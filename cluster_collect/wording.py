"""Numbers and texts for people; text of strangers is made safe to print."""

from __future__ import annotations

#: What is done in place of settings that say when host keys are checked.
KEYS_ARE_CHECKED = "an unknown host key is refused unless --accept-new-host-keys, a changed one always"
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def format_bytes(n_bytes: float) -> str:
    """Return a size with three digits: `0 B`, `9.8 kB`, `338 MB`."""
    size = float(n_bytes)
    for unit in _UNITS[:-1]:
        if size < 999.5:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 99.95 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} {_UNITS[-1]}"


def format_seconds(seconds: float) -> str:
    """Return a duration: `0.4 s`, `75 s`, `12 min`, `2 h 05 min`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def count(number: int, thing: str) -> str:
    """Return `1 file`, `2 files`, `1,203 files`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def printable(text: str) -> str:
    """Return text of a host so that it cannot move the cursor, change colours or break a line."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def last_line(errors: bytes) -> str:
    """Return the last thing a command said, fit for a message."""
    lines = errors.decode(errors="replace").strip().splitlines()
    return lines[-1].strip()[:300] if lines else "no message"
