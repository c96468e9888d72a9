"""How a source module says that a file, or a part of it, cannot be used."""

from __future__ import annotations

from collections.abc import Callable

from cluster_run.errors import InputError

#: Takes one sentence about a part of a file that could not be used; the rest of the file counts.
Remark = Callable[[str], None]


class BadFileError(InputError):
    """The whole file cannot be used. The message is the reason, without the file's name."""
