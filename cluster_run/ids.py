"""Identifiers, degrees of parallelism, and how people write sets of numbers (`0-7,12`) and sizes (`1.5G`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Literal, NamedTuple, NewType

from cluster_run.errors import UsageError

#: Global rank of one process of the job, from 0.
Rank = NewType("Rank", int)
#: Number of a training step, as the profiler wrote it.
Step = NewType("Step", int)
#: Number of an accelerator on its host.
DeviceId = NewType("DeviceId", int)
#: Mapped name of a host in one run directory: "1", "2", … in inventory order. Safe to publish.
HostId = NewType("HostId", str)
#: A host's name in the rank table, often its address. Not to be published unasked.
ServerId = NewType("ServerId", str)

#: What a communication group is for; `unknown` without evidence.
GroupRole = Literal["tp", "pp", "dp", "cp", "ep", "world", "unknown"]

#: Placeholder for the ranks that findings name, where ranks are listed.
SUSPECTS = "suspects"

#: No job has more ranks: a number beyond it is damaged.
MAX_RANKS = 1_000_000
#: No list of hosts stands for more; counted before one name of it is built.
MAX_HOSTS = 65_536
#: No cluster has more ranks or steps than this; a larger range is a typing error.
MAX_RANGE_LENGTH = 10_000_000
_MAX_DIGITS = 18


def host_number(host: str) -> tuple[int, str]:
    """Return what sorts hosts by their numbers: 2 stands before 10."""
    return len(host), host


class ParallelSizes(NamedTuple):
    """Degrees of parallelism; 0 where unknown."""

    tp: int = 0
    pp: int = 0
    dp: int = 0
    cp: int = 0
    ep: int = 0


def parse_number_ranges(text: str) -> frozenset[int]:
    """Parse `0-7,12` into a set of numbers.

    Raises:
        UsageError: the text is not a comma-separated list of numbers and `first-last` ranges.
    """
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or len(part) > 2 * _MAX_DIGITS:
            raise UsageError(f"not a list of numbers: {text!r}", "write it like 0-7,12")
        begin, end = int(first), int(last or first)
        if end < begin or end - begin >= MAX_RANGE_LENGTH:
            raise UsageError(f"not a range: {part.strip()!r}", "write the smaller number first")
        numbers.update(range(begin, end + 1))
    return frozenset(numbers)


def format_number_ranges(numbers: Iterable[int]) -> str:
    """Format numbers as `0-7,12`; the inverse of `parse_number_ranges` for a non-empty set."""
    ordered = sorted(set(numbers))
    if not ordered:
        return ""
    breaks = [right for left, right in pairwise(ordered) if right != left + 1]
    starts = [ordered[0], *breaks]
    ends = [left for left, right in pairwise(ordered) if right != left + 1] + [ordered[-1]]
    return ",".join(
        str(start) if start == end else f"{start}-{end}" for start, end in zip(starts, ends, strict=True)
    )


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
