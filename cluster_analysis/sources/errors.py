"""How a source module says that a file, or a part of it, cannot be used: by facts, never by sentences."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from cluster_run.errors import InputError, spoken
from cluster_run.facts import Fact, Value, fact


class Remark(Protocol):
    """Takes why a part of a file could not be used; the rest of the file counts."""

    def __call__(self, why: Fact, *also: Fact) -> None:
        """Take one reason, and what else is to be said of it."""


def unheard(why: Fact, *also: Fact) -> None:
    """Report nothing: another reader of the same file does."""


#: A file's path, and whose it is.
FileOfRank = tuple[str, int]


class NotTogetherError(Exception):
    """Fewer ranks are to be read at once; of one alone its reader reports what is the matter."""


def not_together(why: Fact, *also: Fact) -> None:
    """Refuse in place of telling."""
    raise NotTogetherError(why, *also)


class BadFileError(InputError):
    """The whole file cannot be used: why, what to do about it, and further reasons.

    Whatever reads a file, a database or a host's columns raises it.
    """

    def __init__(self, why: Fact, advice: str | None = None, *also: Fact) -> None:
        super().__init__(why, advice, *also)
        self.why, self.advice_kind, self.also = why, advice, also

    @property
    def advice(self) -> str:
        """Kind of the advice; empty where the reason says it all."""
        return self.advice_kind or ""


def tell_left_out(remark: Remark, n_parts: int, part: str, reason: str, **values: Value) -> None:
    """Tell `remark` how many parts of a file were not used, and why; nothing where all were.

    `part` and `reason` are keys of `parts` and `left_out` in `cluster_words/problems.json`.
    """
    if n_parts > 0:
        remark(fact("left_out", n_parts=n_parts, part=part, reason=reason, **values))


@contextmanager
def as_bad_file() -> Iterator[None]:
    """Raise BadFileError for what the system has against reading a file."""
    try:
        yield
    except OSError as error:
        raise BadFileError(fact("unreadable", detail=spoken(error))) from error
