"""Why ranks are not read together: their files have something to report, or no batch can read them."""

from __future__ import annotations

from cluster_run.facts import Fact

#: A file's path, and whose it is.
FileOfRank = tuple[str, int]


class RefusedError(Exception):
    """Fewer ranks are to be read at once; of one alone its reader tells what is the matter."""


def refuse(why: Fact, *also: Fact) -> None:
    """Refuse in place of telling."""
    raise RefusedError(why, *also)
