"""In which order a job can be replayed: blocks of operators that need nothing of each other.

Instances get *places*, so that a block's are one slice, and lie there member by member: place `begin + m * n
+ i` is member m of the block's i-th operator. A pass over a block is then a handful of operations on slices.
All members leave an operator together, so that ends are kept by operator: its place is its *row*. Rows behind
the operators are no operators: one stands for "waits for nothing", and one for the begin of each rank's step.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np
from msgspec import Struct

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import begins, ranges


class Instances(Struct, frozen=True, dict=True):
    """The columns of a graph's instances (V,) that decide the order; V where there is none, V + 1 for `join`.

    `by_operator` are the instances of each operator, in their order. `cell` numbers step and rank
    through. `join` is an instance of another stream that must have ended too, before
    the local time or, where the instance `waits_last`, behind it. `own_us` is what a receive takes
    once its message is there, NaN where an instance takes the operator's transfer.
    """

    operator: IntArray
    by_operator: IntArray
    cell: IntArray
    after: IntArray
    join: IntArray
    sender: IntArray
    receiver: IntArray
    own_us: FloatArray
    waits_last: BoolArray
    is_p2p: BoolArray
    waits_for_receiver: BoolArray

    def __len__(self) -> int:
        return len(self.operator)

    @cached_property
    def chain(self) -> tuple[IntArray, IntArray]:
        """The operator before each instance on its stream, -1 for none, and its own: in their order (V,)."""
        after = self.after[self.by_operator]
        before = self.operator.take(after, mode="clip")
        before[after >= len(self)] = -1
        return before, self.operator[self.by_operator]


class Partners(Struct, frozen=True):
    """Other ends of messages: `at` (P,) messages of the block, and what says when their partners come.

    `place` is the partner's, `after` and `join` are rows. None stands for none of them.
    """

    at: IntArray
    place: IntArray
    after: IntArray
    join: IntArray | None
    waits_last: BoolArray | None


class Block(Struct, frozen=True):
    """`n_operators` operators of `n_members` instances each, from place `begin` and operator place `first`.

    `joins` are instances that wait for a call of another stream before their local time, counted from
    `begin`, `join_rows` those calls; `late_joins` wait behind it. `is_joint`: the members of each operator
    come from one other together, and wait for nothing else. Of messages (one member) `own_at` take `own_us`
    once the message is there, `partners` are the ends that they wait for.
    """

    begin: int
    first: int
    n_operators: int
    n_members: int
    joins: IntArray
    join_rows: IntArray
    late_joins: IntArray
    late_join_rows: IntArray
    is_joint: bool
    is_messages: bool
    own_at: IntArray
    own_us: FloatArray
    partners: tuple[Partners, ...]

    @property
    def end(self) -> int:
        """Place behind the last instance."""
        return self.begin + self.n_operators * self.n_members


class ReplayOrder(Struct, frozen=True):
    """The blocks in order. `instances` (V,) and `operators` (O,) lie at each place, `place` (V,) and
    `operator_place` (O,) where each one lies.

    `after` (V,) is by place: the row that an instance's gap counts from. Operators in a circle (matched
    wrongly) have the last places and no block. A rank's step, cell `cells[i]`, has ended when the rows
    `last_rows` have, from `last_begin[i]` on.
    """

    instances: IntArray
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
        return len(self.operators)

    @property
    def has_circle(self) -> bool:
        """Whether some operators would wait for each other in a circle, so that they have no block."""
        return sum(block.n_operators for block in self.blocks) < len(self.operators)

    @property
    def n_rows(self) -> int:
        """Operators, "nothing" and the begins of all cells."""
        return len(self.operators) + 1 + self.n_cells


def replay_order(instances: Instances, n_operators: int, n_cells: int) -> ReplayOrder:
    """Put the operators of a graph in topological order."""
    n = len(instances)
    level = _levels(instances, n_operators)
    n_members = np.bincount(instances.operator, minlength=n_operators)
    is_message = np.zeros(n_operators, bool)
    is_message[instances.operator[instances.is_p2p]] = True
    in_circle = level < 0
    height = np.where(in_circle, int(level.max(initial=0)) + 1, level)
    is_joint = _come_together(instances, n_operators) & (n_members > 1)
    kind = (3 * height + is_message + 2 * is_joint) * (int(n_members.max(initial=0)) + 1) + n_members
    operators = np.argsort(_with_runs(kind, instances), kind="stable")
    n_placed = n_operators - int(in_circle.sum())
    first = np.flatnonzero(begins(kind[operators[:n_placed]]))
    counts = np.diff(np.r_[first, n_placed])
    begin = np.r_[0, np.cumsum(n_members[operators])]
    place = _places(instances.by_operator, operators, n_members, first, counts, begin)
    at_place = np.empty(n, np.int32)
    at_place[place] = np.arange(n, dtype=np.int32)
    operator_place = np.empty(n_operators, np.int32)
    operator_place[operators] = np.arange(n_operators, dtype=np.int32)
    # Behind the operators: a row for nothing (instances call it n, joins n + 1), and one a cell.
    row = np.r_[operator_place[instances.operator], np.int32(n_operators), np.int32(n_operators)]
    after = np.empty(n, np.int32)
    after[place] = np.where(
        instances.after < n, row[instances.after], np.int32(n_operators + 1) + instances.cell
    )
    blocks = _blocks(
        instances, place, row, after, (first, counts, begin, operators), (is_message, is_joint, n_members)
    )
    return ReplayOrder(
        at_place, operators.astype(np.int32), place, operator_place, after, blocks, n_cells,
        *_last_rows(instances, row, in_circle),
    )  # fmt: skip


def _come_together(instances: Instances, n_operators: int) -> BoolArray:
    """True for operators whose members all come from one other and wait for nothing else (O,)."""
    n = len(instances)
    before, operator = instances.chain
    together = np.ones(n_operators, bool)
    together[operator[before < 0]] = False
    together[operator[1:][(before[1:] != before[:-1]) & (operator[1:] == operator[:-1])]] = False
    together[instances.operator[instances.join < n]] = False
    return together & ~np.isin(np.arange(n_operators), instances.operator[instances.is_p2p])


def _with_runs(kind: IntArray, instances: Instances) -> IntArray:
    """Numbers in the order of `kind` (O,) that lay messages of a kind that wait for the same side by side.

    Those that wait for their sender last; those that wait for another stream around the middle.
    """
    n, at = len(instances), np.flatnonzero(instances.is_p2p)
    waits, joins = np.zeros((2, len(kind)), bool)
    waits[instances.operator[at]] = instances.sender[at] < n
    joins[instances.operator[at]] = instances.join[at] < n
    return 2 * (2 * kind + waits) + (waits ^ joins)


def _places(
    by_operator: IntArray, operators: IntArray, n_members: IntArray, first: IntArray, counts: IntArray,
    begin: IntArray,
) -> IntArray:  # fmt: skip
    """The place of each instance (V,): by block, then member, then operator."""
    n_placed = int(counts.sum())
    block = np.repeat(np.arange(len(first), dtype=np.int32), counts)
    stride = np.ones(len(operators), np.int32)
    start = begin[:-1].astype(np.int32)
    # Operators of a block lie side by side, its members as many places apart as it has operators.
    stride[:n_placed] = counts[block]
    start[:n_placed] = begin[first[block]] + np.arange(n_placed) - first[block]
    offsets = np.cumsum(n_members) - n_members
    spot = np.empty(len(operators), np.int32)
    spot[operators] = np.arange(len(operators), dtype=np.int32)
    member = np.arange(len(by_operator), dtype=np.int32) - np.repeat(offsets.astype(np.int32), n_members)
    place = np.empty(len(by_operator), np.int32)
    place[by_operator] = np.repeat(start[spot], n_members) + member * np.repeat(stride[spot], n_members)
    return place


def _blocks(
    instances: Instances, place: IntArray, row: IntArray, after: IntArray,
    cuts: tuple[IntArray, IntArray, IntArray, IntArray], kinds: tuple[BoolArray, BoolArray, IntArray],
) -> tuple[Block, ...]:  # fmt: skip
    n = len(instances)
    first, counts, begin, operators = cuts
    is_message, is_joint, n_members = kinds
    borders = begin[np.r_[first, counts.sum()].astype(np.intp)]

    def cut(chosen: BoolArray) -> list[tuple[IntArray, IntArray]]:
        """Places and instances that are chosen, by the block that they lie in."""
        found = np.flatnonzero(chosen)
        found = found[np.argsort(place[found])]
        bounds = np.searchsorted(place[found], borders)
        inside = [found[one:other] for one, other in pairwise(bounds.tolist())]
        return [(place[own], own) for own in inside]

    has_join = instances.join < n
    joins, late_joins = cut(has_join & ~instances.waits_last), cut(has_join & instances.waits_last)
    owns = cut(np.isfinite(instances.own_us) & instances.is_p2p)
    ends = [
        (instances.sender, cut(instances.sender < n)),
        (instances.receiver, cut((instances.receiver < n) & instances.waits_for_receiver)),
    ]
    blocks = []
    for number, (from_operator, n_operators) in enumerate(zip(first.tolist(), counts.tolist(), strict=True)):
        lead = operators[from_operator]
        start = int(borders[number])
        (mains, main_instances), (sides, side_instances), (lasts, last_instances) = (
            joins[number], late_joins[number], owns[number],
        )  # fmt: skip
        partners = []
        if is_message[lead]:
            for other, paired in ends:
                at, instance = paired[number]
                if len(at):
                    partner = other[instance]
                    waits_last, join = instances.waits_last[partner], instances.join[partner]
                    partners.append(
                        Partners(
                            at - start, place[partner], after[place[partner]],
                            row[join] if (join < n).any() else None, waits_last if waits_last.any() else None,
                        )
                    )  # fmt: skip
        blocks.append(
            Block(
                start, from_operator, n_operators, int(n_members[lead]),
                mains - start, row[instances.join[main_instances]],
                sides - start, row[instances.join[side_instances]],
                bool(is_joint[lead]), bool(is_message[lead]), lasts - start, instances.own_us[last_instances],
                tuple(partners),
            )
        )  # fmt: skip
    return tuple(blocks)


def _last_rows(
    instances: Instances, row: IntArray, in_circle: BoolArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Cells, and the rows of instances that no other counts from; those in circles, which end at 0, too."""
    n = len(instances)
    is_last = np.ones(n, bool)
    counted = instances.after[~in_circle[instances.operator]]  # what follows a circle is taken to be in it
    is_last[counted[counted < n]] = False
    chosen = np.flatnonzero(is_last)
    chosen = chosen[np.argsort(instances.cell[chosen], kind="stable")]
    cells, begin = np.unique(instances.cell[chosen], return_index=True)
    return cells.astype(np.intp), row[chosen], begin


def _levels(instances: Instances, n_operators: int) -> IntArray:
    """How many rounds of others an operator must wait for (O,); -1 in a circle."""
    sources, targets = _edges(instances)
    waits = np.bincount(targets, minlength=n_operators)
    by_source = np.argsort(sources, kind="stable")
    targets = targets[by_source]
    count = np.bincount(sources, minlength=n_operators)
    begin = np.cumsum(count) - count
    level = np.full(n_operators, -1, np.int32)
    ready: IntArray = np.flatnonzero(waits == 0)
    number = 0
    while len(ready):
        level[ready] = number
        number += 1
        released = targets.take(ranges(begin.take(ready), count.take(ready)))
        np.subtract.at(waits, released, 1)
        ready = _distinct(released[waits.take(released) == 0])
    return level


def _edges(instances: Instances) -> tuple[IntArray, IntArray]:
    """(source operator, target operator): what must have ended before an operator can end."""
    n, operator = len(instances), instances.operator
    sources, targets = [], []

    def add(source: IntArray, target: IntArray) -> None:
        real = source < n
        sources.append(operator[source[real]])
        targets.append(operator[target[real]])

    # The members of an operator mostly come from one other together: such edges lie side by side.
    before, own = instances.chain
    is_first = begins(before) | begins(own)
    is_first &= before >= 0
    sources.append(before[is_first])
    targets.append(own[is_first])
    joining = np.flatnonzero(instances.join < n)
    add(instances.join[joining], joining)
    for other, counts in ((instances.sender, None), (instances.receiver, instances.waits_for_receiver)):
        paired = np.flatnonzero(other < n if counts is None else (other < n) & counts)
        add(instances.after[other[paired]], paired)
        add(instances.join[other[paired]], paired)
    source, target = np.concatenate(sources), np.concatenate(targets)
    kept = begins(source) | begins(target)
    return source[kept], target[kept]


def _distinct(numbers: IntArray) -> IntArray:
    ordered = np.sort(numbers)
    return ordered[begins(ordered)]
