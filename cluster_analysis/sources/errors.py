"""How a source module says that a file, or a part of it, cannot be used: by facts, never by sentences."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Protocol

from cluster_run.errors import InputError, spoken
from cluster_run.facts import AdviceKind, Fact, Value, fact

#: Parts of files that are left out one by one.
Part = Literal[
    "cell",
    "duration",
    "entry",
    "event",
    "line",
    "link",
    "link_end",
    "name",
    "operator",
    "packet_size",
    "row",
    "start_time",
    "step",
    "task",
    "value",
]
#: Why they are.
LeftOutReason = Literal[
    "no_number",
    "no_number_in_column",
    "impossible",
    "no_time",
    "nothing_computed",
    "no_start",
    "in_no_step",
    "no_step_number",
    "no_step_number_but",
    "not_source_destination",
    "other_number_of_cells",
    "not_readable",
    "not_sum_of_parts",
    "step_repeated",
    "operators_differ",
    "shared_name",
    "of_no_operator",
    "nothing_carried",
    "no_transport",
    "size_or_time_alone",
    "no_rank",
    "no_such_rank",
]


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

    def __init__(self, why: Fact, advice: AdviceKind | None = None, *also: Fact) -> None:
        super().__init__(why, advice, *also)
        self.why, self.advice_kind, self.also = why, advice, also

    @property
    def advice(self) -> str:
        """Kind of the advice; empty where the reason says it all."""
        return self.advice_kind or ""


def tell_left_out(remark: Remark, n_parts: int, part: Part, reason: LeftOutReason, **values: Value) -> None:
    """Tell `remark` how many parts of a file were not used, and why; nothing where all were."""
    if n_parts > 0:
        remark(fact("left_out", n_parts=n_parts, part=part, reason=reason, **values))


@contextmanager
def as_bad_file() -> Iterator[None]:
    """Raise BadFileError for what the system has against reading a file."""
    try:
        yield
    except OSError as error:
        raise BadFileError(fact("unreadable", detail=spoken(error))) from error
