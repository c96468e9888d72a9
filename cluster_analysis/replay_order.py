"""In which order a job can be replayed: blocks of operators that need nothing of each other.

Visits get *places*, so that a block's are one slice, and lie there member by member: place
`begin + m * n + i` is member m of the block's i-th operator. A pass over a block is then a handful of
operations on slices. Rows behind the visits stand for what is no visit: one for "waits for nothing", and one
for the begin of each rank's step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cluster_analysis.evidence import BoolArray, FloatArray, IntArray
from cluster_analysis.sorting import begins, stable_order


@dataclass(frozen=True)
class Visits:
    """The columns of a graph's visits (V,) that decide the order; V where there is none, V + 1 for `join`.

    `cell` numbers step and rank through. `join` is a visit of another stream that must have ended too.
    `own_us` is what a receive takes once its message is there, NaN where a visit takes the operator's
    transfer.
    """

    operator: IntArray
    cell: IntArray
    after: IntArray
    join: IntArray
    sender: IntArray
    receiver: IntArray
    own_us: FloatArray
    is_side: BoolArray
    is_p2p: BoolArray
    waits_for_receiver: BoolArray

    def __len__(self) -> int:
        return len(self.operator)


@dataclass(frozen=True)
class Partners:
    """Other ends of messages: `at` (P,) messages of the block, and what says when their partners come."""

    at: IntArray
    place: IntArray
    after: IntArray
    join: IntArray
    is_side: BoolArray | None


@dataclass(frozen=True)
class Block:
    """`n_operators` operators of `n_members` visits each, from place `begin` and operator place `first`.

    `joins` are visits of the main streams that wait for a call of another stream too, counted from
    `begin`, `join_rows` those calls; `side_joins` the same on second streams. Of messages (one member)
    `own_at` take `own_us` once the message is there, `partners` are whom they wait for.
    """

    begin: int
    first: int
    n_operators: int
    n_members: int
    joins: IntArray
    join_rows: IntArray
    side_joins: IntArray
    side_join_rows: IntArray
    is_messages: bool
    own_at: IntArray
    own_us: FloatArray
    partners: tuple[Partners, ...]

    @property
    def end(self) -> int:
        """Place behind the last visit."""
        return self.begin + self.n_operators * self.n_members


@dataclass(frozen=True)
class ReplayOrder:
    """The blocks in order. `visits` (V,) and `operators` (O,) are what lies at each place, `place` (V,) and
    `operator_place` (O,) where each one lies.

    `after` (V,) is by place: the row that a visit's gap counts from. Operators in a circle (matched
    wrongly) have the last places and no block. The last visits of cell `cells[i]` are the rows of
    `last_rows` from `last_begin[i]` on: a rank's step has ended when they have.
    """

    visits: IntArray
    operators: IntArray
    place: IntArray
    operator_place: IntArray
    after: IntArray
    blocks: tuple[Block, ...]
    n_cells: int
    cells: IntArray
    last_rows: IntArray
    last_begin: IntArray

    @property
    def nothing(self) -> int:
        """The row that stands for no call to wait for."""
        return len(self.visits)

    @property
    def n_rows(self) -> int:
        """Visits, "nothing" and the begins of all cells."""
        return len(self.visits) + 1 + self.n_cells


def replay_order(visits: Visits, n_operators: int, n_cells: int) -> ReplayOrder:
    """Put the operators of a graph in topological order."""
    n = len(visits)
    level = _levels(visits, n_operators)
    n_members = np.bincount(visits.operator, minlength=n_operators)
    is_message = np.zeros(n_operators, bool)
    is_message[visits.operator[visits.is_p2p]] = True
    in_circle = level < 0
    height = np.where(in_circle, int(level.max(initial=0)) + 1, level)
    kind = (2 * height + is_message) * (int(n_members.max(initial=0)) + 1) + n_members
    operators = stable_order(kind)
    n_placed = n_operators - int(in_circle.sum())
    first = np.flatnonzero(begins(kind[operators[:n_placed]]))
    counts = np.diff(np.r_[first, n_placed])
    begin = np.r_[0, np.cumsum(n_members[operators])]
    place = _places(visits.operator, operators, n_members, first, counts, begin)
    at_place = np.empty(n, np.int32)
    at_place[place] = np.arange(n, dtype=np.int32)
    # Behind the places: a row for nothing (visits call it n, joins n + 1), and one a cell.
    row = np.r_[place, n, n].astype(np.int32)
    after_visit = visits.after[at_place]
    after = np.where(after_visit < n, row[after_visit], n + 1 + visits.cell[at_place]).astype(np.int32)
    blocks = _blocks(visits, at_place, row, after, (first, counts, begin, operators), (is_message, n_members))
    operator_place = np.empty(n_operators, np.int32)
    operator_place[operators] = np.arange(n_operators, dtype=np.int32)
    return ReplayOrder(
        at_place, operators.astype(np.int32), place, operator_place, after, blocks, n_cells,
        *_last_rows(visits, place, in_circle),
    )  # fmt: skip


def _levels(visits: Visits, n_operators: int) -> IntArray:
    """How many rounds of others an operator must wait for (O,); -1 in a circle."""
    sources, targets = _edges(visits)
    waits = np.bincount(targets, minlength=n_operators)
    by_source = stable_order(sources)
    targets = targets[by_source]
    begin = np.r_[0, np.cumsum(np.bincount(sources, minlength=n_operators))]
    level = np.full(n_operators, -1, np.int32)
    ready: IntArray = np.flatnonzero(waits == 0)
    number = 0
    while len(ready):
        level[ready] = number
        number += 1
        released = targets[_ranges(begin[ready], begin[ready + 1] - begin[ready])]
        np.subtract.at(waits, released, 1)
        ready = _distinct(released[waits[released] == 0])
    return level


def _edges(visits: Visits) -> tuple[IntArray, IntArray]:
    """(source operator, target operator): what must have ended before an operator can end."""
    n, operator = len(visits), visits.operator
    sources, targets = [], []

    def add(source: IntArray, target: IntArray | None) -> None:
        real = np.flatnonzero(source < n)
        sources.append(operator[source[real]])
        targets.append(operator[real if target is None else target[real]])

    add(visits.after, None)
    add(visits.join, None)
    for other, counts in ((visits.sender, None), (visits.receiver, visits.waits_for_receiver)):
        paired = np.flatnonzero(other < n if counts is None else (other < n) & counts)
        add(visits.after[other[paired]], paired)
        add(visits.join[other[paired]], paired)
    source, target = np.concatenate(sources), np.concatenate(targets)
    # Members of one operator that come from one other are one edge; most repeat the one before them.
    again = (source[1:] == source[:-1]) & (target[1:] == target[:-1])
    kept = np.r_[True, ~again] if len(source) else np.empty(0, bool)
    return source[kept], target[kept]


def _places(
    operator: IntArray, operators: IntArray, n_members: IntArray, first: IntArray, counts: IntArray,
    begin: IntArray,
) -> IntArray:  # fmt: skip
    """The place of each visit (V,): by block, then member, then operator."""
    n_placed = int(counts.sum())
    block = np.repeat(np.arange(len(first), dtype=np.int32), counts)
    stride = np.ones(len(operators), np.int32)
    start = begin[:-1].astype(np.int32)
    # Operators of a block lie side by side, its members as many places apart as it has operators.
    stride[:n_placed] = counts[block]
    start[:n_placed] = begin[first[block]] + np.arange(n_placed) - first[block]
    by_operator = stable_order(operator)
    offsets = np.cumsum(n_members) - n_members
    member = np.arange(len(operator), dtype=np.int32) - np.repeat(offsets.astype(np.int32), n_members)
    spot = np.empty(len(operators), np.int32)
    spot[operators] = np.arange(len(operators), dtype=np.int32)
    of = np.repeat(spot, n_members)
    place = np.empty(len(operator), np.int32)
    place[by_operator] = start[of] + member * stride[of]
    return place


def _blocks(
    visits: Visits, at_place: IntArray, row: IntArray, after: IntArray,
    cuts: tuple[IntArray, IntArray, IntArray, IntArray], kinds: tuple[BoolArray, IntArray],
) -> tuple[Block, ...]:  # fmt: skip
    n = len(visits)
    first, counts, begin, operators = cuts
    is_message, n_members = kinds
    borders = begin[np.r_[first, counts.sum()].astype(np.intp)]
    join, side = visits.join[at_place], visits.is_side[at_place]
    joins = _cut(np.flatnonzero((join < n) & ~side), borders)
    side_joins = _cut(np.flatnonzero((join < n) & side), borders)
    own = visits.own_us[at_place]
    owns = _cut(np.flatnonzero(np.isfinite(own) & visits.is_p2p[at_place]), borders)
    ends = [
        (other, _cut(np.flatnonzero(chosen), borders))
        for other, chosen in (
            (visits.sender[at_place], visits.sender[at_place] < n),
            (
                visits.receiver[at_place],
                (visits.receiver[at_place] < n) & visits.waits_for_receiver[at_place],
            ),
        )
    ]
    blocks = []
    for number, (from_operator, n_operators) in enumerate(zip(first.tolist(), counts.tolist(), strict=True)):
        lead = operators[from_operator]
        start = int(borders[number])
        mains, sides, lasts = joins[number], side_joins[number], owns[number]
        partners = []
        if is_message[lead]:
            for other, paired in ends:
                at = paired[number]
                if len(at):
                    place = row[other[at]]
                    is_side = visits.is_side[other[at]]
                    partners.append(
                        Partners(
                            at - start, place, after[place], row[visits.join[other[at]]],
                            is_side if is_side.any() else None,
                        )
                    )  # fmt: skip
        blocks.append(
            Block(
                start, from_operator, n_operators, int(n_members[lead]),
                mains - start, row[join[mains]], sides - start, row[join[sides]],
                bool(is_message[lead]), lasts - start, own[lasts], tuple(partners),
            )
        )  # fmt: skip
    return tuple(blocks)


def _last_rows(visits: Visits, place: IntArray, in_circle: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """Cells, and the rows of visits that no other counts from; those in circles, which end at 0, too."""
    n = len(visits)
    is_last = np.ones(n, bool)
    counted = visits.after[~in_circle[visits.operator]]  # what follows a circle is taken to be in it
    is_last[counted[counted < n]] = False
    chosen = np.flatnonzero(is_last)
    chosen = chosen[stable_order(visits.cell[chosen])]
    cells, begin = np.unique(visits.cell[chosen], return_index=True)
    return cells.astype(np.intp), place[chosen], begin


def _cut(positions: IntArray, borders: IntArray) -> list[IntArray]:
    """Sorted positions by the block that they lie in."""
    return np.split(positions, np.searchsorted(positions, borders))[1:-1]


def _distinct(numbers: IntArray) -> IntArray:
    ordered = np.sort(numbers)
    return ordered[begins(ordered)]


def _ranges(starts: IntArray, lengths: IntArray) -> IntArray:
    """Concatenate arange(start, start + length) of each pair."""
    total = int(lengths.sum())
    if not total:
        return np.empty(0, np.intp)
    offsets = np.repeat(starts - np.r_[0, np.cumsum(lengths)[:-1]], lengths)
    return offsets + np.arange(total)
