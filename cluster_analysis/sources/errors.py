"""How a source module says that a file, or a part of it, cannot be used."""

from __future__ import annotations

from collections.abc import Callable

from cluster_run.errors import InputError

#: Takes one sentence about a part of a file that could not be used; the rest of the file counts.
Remark = Callable[[str], None]


class BadFileError(InputError):
    """The whole file cannot be used. The message is the reason, without the file's name."""


def left_out(n_parts: int, part: str, which: str = "") -> str:
    """Return the sentence that counts parts of a file that were not used: `left out: 2 cells of column X`."""
    plural = part if n_parts == 1 else part.removesuffix("y") + ("ies" if part.endswith("y") else "s")
    return f"left out: {n_parts} {plural} {which}".rstrip()
