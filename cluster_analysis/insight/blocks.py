"""Rows cut into the blocks of Insight's files: one block a set of ranks and step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from cluster_analysis.insight.naming import rank_set, step_key
from cluster_analysis.numeric.arrays import IntArray, codes
from cluster_run.ids import Rank


class RankSets:
    """The distinct sets of members of all groups, numbered in the order of the output."""

    def __init__(self, members: Mapping[str, tuple[Rank, ...]]) -> None:
        distinct = sorted(set(members.values()))
        number_of = {ranks: number for number, ranks in enumerate(distinct)}
        self._texts = [rank_set(ranks) for ranks in distinct]
        self._number_of_group = {group: number_of[ranks] for group, ranks in members.items()}

    def nested(self, places: Iterable[tuple[tuple[int, int], Iterable[bytes]]]) -> Iterator[bytes]:
        """Yield `{set: {step: {…}, …}, …}` of the members of each set and step, which come in that order."""
        last_set = None
        yield b"{"
        for (number, step), members in places:
            if number == last_set:
                yield b", "
            else:
                yield (b'"%b": {' if last_set is None else b'}, "%b": {') % self._texts[number].encode()
                last_set = number
            yield b'"%b": {' % step_key(step).encode()
            separator = b""
            for member in members:
                yield separator
                yield member
                separator = b", "
            yield b"}"
        yield b"}\n" if last_set is None else b"}}\n"

    def numbers_of(self, groups: Sequence[str | None]) -> IntArray:
        """Return the number of each group's set; -1 for a group that nothing mentions."""
        return np.array([self._number_of_group.get(group or "", -1) for group in groups], np.int64)


class Blocks:
    """A table with `step` and `group`, sorted so that the rows of one set of ranks and step lie together.

    Within a block rows stand by group and the column `by`; equal ones keep their order. Blocks stand in
    `table` by set and step, so that what is made of their rows is made of many blocks at once.
    """

    def __init__(self, table: pa.Table, sets: RankSets, by: str = "rank") -> None:
        groups, group = codes(table["group"])
        number = sets.numbers_of(groups)[group]
        step = table["step"].to_numpy()
        order = np.lexsort((table[by].to_numpy(), group, step, number))
        self.table = table.take(pa.array(order))
        self._spans = spans_of(number[order], step[order])

    def places(self) -> set[tuple[int, int]]:
        """Return the sets and steps that have rows."""
        return set(self._spans)

    def rows(self, number: int, step: int) -> tuple[int, int]:
        """Return first and last row (exclusive) of one set and step in `table`."""
        return self._spans.get((number, step), (0, 0))


def spans_of(number: IntArray, step: IntArray) -> dict[tuple[int, int], tuple[int, int]]:
    """Return first and last row (exclusive) of each set and step in sorted columns; set -1 is none."""
    if not len(number):
        return {}
    changes = np.flatnonzero((np.diff(number) != 0) | (np.diff(step) != 0)) + 1
    begins = [0, *changes.tolist(), len(number)]
    return {
        (int(number[begin]), int(step[begin])): (begin, end)
        for begin, end in pairwise(begins)
        if number[begin] >= 0
    }
