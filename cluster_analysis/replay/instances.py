"""Order of a graph's replay, and the depth of each operator in it."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import begins, ranges, stable_order


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


def levels(instances: Instances, n_operators: int) -> IntArray:
    """How many rounds of others an operator must wait for (O,); -1 in a circle."""
    sources, targets = _edges(instances)
    waits = np.bincount(targets, minlength=n_operators)
    by_source = stable_order(sources)
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
