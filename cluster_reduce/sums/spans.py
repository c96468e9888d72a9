"""Spans of time, int ns: their unions, what two unions share, and one without the other.

Begins and ends stand in arrays of their own. A union loses nothing when spans are merged early, so memory
grows with the gaps that are left, and not with the spans that were added.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    #: Begin and end of parts that do not touch, in order.
    Parts = list[tuple[int, int]]

_MERGED_FROM = 1 << 19


class Spans:
    """Spans that took any time, in the order in which they were added until they are merged."""

    def __init__(self) -> None:
        self._begins, self._ends = array("q"), array("q")
        self._most = _MERGED_FROM

    def add(self, begin: int, end: int) -> None:
        """Add a span; one that took no time is left out."""
        if end > begin:
            self._begins.append(begin)
            self._ends.append(end)
            if len(self._begins) > self._most:
                union = self.merged()
                self._begins = array("q", [begin for begin, _ in union])
                self._ends = array("q", [end for _, end in union])
                self._most = max(_MERGED_FROM, 2 * len(union))

    def merged(self) -> Parts:
        """Return the union."""
        return merged(self._begins, self._ends)


def merged(begins: Sequence[int], ends: Sequence[int]) -> Parts:
    """Return the union of spans: those that touch made one.

    Behind the i-th end there is a gap if the next begin, both in order, is later: then as many spans have
    begun as have ended.
    """
    if not begins:
        return []
    begins, ends = sorted(begins), sorted(ends)
    found: Parts = []
    begin = begins[0]
    for end, following in zip(ends, begins[1:]):
        if following > end:
            found.append((begin, end))
            begin = following
    return [*found, (begin, ends[-1])]


def length_of(spans: Iterable[tuple[int, int]]) -> int:
    """Return how long spans are, one by one."""
    return sum(end - begin for begin, end in spans)


def common(left: Parts, right: Parts) -> int:
    """Return how long both hold, of two unions."""
    both = [*left, *right]
    return length_of(both) - length_of(merged([begin for begin, _ in both], [end for _, end in both]))


def without(left: Parts, right: Parts) -> Parts:
    """Return the parts of `left` outside of `right`, two unions."""
    found: Parts = []
    at = 0
    for first, end in left:
        begin = first
        while at < len(right) and right[at][1] <= begin:
            at += 1
        place = at
        while place < len(right) and right[place][0] < end:
            if right[place][0] > begin:
                found.append((begin, right[place][0]))
            begin = max(begin, right[place][1])
            place += 1
        if begin < end:
            found.append((begin, end))
    return found
