"""Gap replay: compute the times of a job again with some local times or transfers changed.

A rank's clock advances by its local gaps; a collective ends for all its members when the last one has
come, plus its transfer time; a receive ends when the message is there. Changing gaps or transfers and
running again gives the step time that would have been, waiting included. No clock of one host is ever
compared with another's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import ranges
from cluster_analysis.replay.order import ReplayOrder
from cluster_analysis.replay.passes import Entries, Stage, arrivals, ends_of, entries_of
from cluster_analysis.tables.hccl_names import OWN_GROUP_PREFIX
from cluster_analysis.thresholds.calls import SETTLED_US
from cluster_analysis.trace.streams.points import POINT

#: Rounds in which ranks' leads are carried from step to step. A collective of all ranks in each step
#: makes the second round exact.
_CARRY_ROUNDS = 3
#: Memory for the local times and ends of the scenarios that go through a pass together.
_PASS_BYTES = 4 * 1024 * 1024
_FLOAT_BYTES = 8
#: Values that a graph computes once; the second set depends on the gaps.
_WHATEVER_THE_GAPS = ("cell_begin", "cell", "around", "is_message", "is_lone", "_entries", "_transfers")
_OF_GAPS = ("main_gaps_us", "_local", "waits_us")


class Repair(Struct, frozen=True):
    """Changes to a graph: local times of some instances, transfers of some operators, each in µs."""

    instances: IntArray = field(default_factory=lambda: np.empty(0, np.int32))
    gap_us: FloatArray = field(default_factory=lambda: np.empty(0))
    operators: IntArray = field(default_factory=lambda: np.empty(0, np.int32))
    transfer_us: FloatArray = field(default_factory=lambda: np.empty(0))


class Graph(Struct, frozen=True, dict=True):
    """All steps of a job side by side; instances and operators are numbered through.

    `rank` and `step` (V,) are positions in `ranks` and among the steps. `after`, `sender` and `receiver`
    (V,) are instances, V where there is none. `waits_for_receiver` marks sends that do not return before the
    receiver has come. Operators: (O,). `measured_us` is (steps, ranks), and so is `left_late_us`: the part of
    the gaps in which ranks leave operators behind the first. `order` holds what only a replay asks for.
    """

    ranks: IntArray
    n_steps: int
    rank: IntArray
    step: IntArray
    operator: IntArray
    after: IntArray
    sender: IntArray
    receiver: IntArray
    gap_us: FloatArray
    is_side: BoolArray
    is_p2p: BoolArray
    waits_for_receiver: BoolArray
    transfer_us: FloatArray
    operator_step: IntArray
    operator_group: IntArray
    operator_type: IntArray
    operator_place: IntArray
    operator_bytes: FloatArray
    operator_n_ranks: IntArray
    groups: tuple[str, ...]
    types: tuple[str, ...]
    measured_us: FloatArray
    left_late_us: FloatArray
    order: ReplayOrder
    first_step_leads: bool = True

    @cached_property
    def cell_begin(self) -> IntArray:
        """Where the instances of each rank's step begin, by [step, rank], and where the last ones end."""
        n_cells = self.n_steps * len(self.ranks)
        counts = np.bincount(self.step * np.int32(len(self.ranks)) + self.rank, minlength=n_cells)
        return np.concatenate([[0], np.cumsum(counts)])

    @cached_property
    def cell(self) -> IntArray:
        """Rank and step of each instance as one number: rank * n_steps + step."""
        return self.rank.astype(np.int32) * np.int32(self.n_steps) + self.step

    @cached_property
    def around(self) -> IntArray:
        """The main call that counts from where each call of another stream (V,) does; V for none."""
        n = len(self.rank)
        since = np.where(self.after < n, self.after, n + self.cell)
        main, first = np.flatnonzero(~self.is_side)[::-1], np.full(n + self.n_steps * len(self.ranks), n)
        first[since[main]] = main
        return np.where(self.is_side, first[since], n)

    @cached_property
    def main_gaps_us(self) -> FloatArray:
        """Time of each rank outside of operators of its main stream, by step (R, S).

        Where computing is separated from calls, gaps are the delay with which others leave the last call.
        """
        gaps_us = self.sum_by_cell(np.where(self.is_side, 0.0, self.gap_us)) - self.left_late_us.T
        of_points_us = self.sum_by_cell(np.where(self.is_point, self.gap_us, 0.0))
        return np.where(self.sum_by_cell(self.is_point) > 0, of_points_us, np.maximum(gaps_us, 0.0))

    @cached_property
    def is_point(self) -> BoolArray:
        """Which instances (V,) are points, which move nothing."""
        return np.array([one == POINT for one in self.types], bool)[self.operator_type][self.operator]

    def sum_by_cell(self, values: FloatArray | BoolArray, at: IntArray | slice = slice(None)) -> FloatArray:
        """Return sums of instances' values (all, or `at`), or how many are true, by rank and step (R, S)."""
        sums = np.bincount(self.cell[at], values, len(self.ranks) * self.n_steps)
        return np.asarray(sums, np.float64).reshape(len(self.ranks), self.n_steps)

    def saved_us(self, left: FloatArray) -> FloatArray:
        """What each rank saves, by step (R, S), if this part of each operator's transfer is left (O,)."""
        at = np.flatnonzero((left != 1.0)[self.operator])
        return self.sum_by_cell((self.transfer_us * (1.0 - left))[self.operator[at]], at)

    @cached_property
    def is_message(self) -> BoolArray:
        """Which operators (O,) go from one rank to another one."""
        found = np.zeros(len(self.transfer_us), bool)
        found[self.operator[self.is_p2p]] = True
        return found

    @cached_property
    def is_unmatched(self) -> BoolArray:
        """Which operators (O,) are of one rank alone, as files name no group: they hold its waiting."""
        return np.array([one.startswith(OWN_GROUP_PREFIX) for one in self.groups], bool)[self.operator_group]

    @cached_property
    def is_lone(self) -> BoolArray:
        """Which instances (V,) are messages whose other ends are both unknown."""
        none = len(self.rank)
        return np.asarray(self.is_p2p & (self.sender == none) & (self.receiver == none))

    def instances_of(self, is_chosen: BoolArray) -> IntArray:
        """Return the instances of ranks that are chosen (R,), sorted."""
        cells = np.flatnonzero(np.tile(is_chosen, self.n_steps))
        return ranges(self.cell_begin[cells], np.diff(self.cell_begin)[cells])

    def with_gaps(self, gap_us: FloatArray) -> Graph:
        """Return the graph with other gaps (V,), in µs."""
        return self._altered(replace(self, gap_us=gap_us), _WHATEVER_THE_GAPS)

    def with_first_step_leads(self, *, leads: bool) -> Graph:
        """Return the graph with what is known of how the first step began."""
        return self._altered(replace(self, first_step_leads=leads), (*_WHATEVER_THE_GAPS, *_OF_GAPS))

    def _altered(self, other: Graph, kept: Sequence[str]) -> Graph:
        """Hand on what has been worked out and stays the same."""
        other.__dict__.update({name: self.__dict__[name] for name in kept if name in self.__dict__})
        return other

    @property
    def begins(self) -> BoolArray:
        """Instances of the main stream without a predecessor: their gap is the begin of the step."""
        return np.asarray((self.after == len(self.rank)) & ~self.is_side)

    def replay(self, repairs: Sequence[Repair], lead: FloatArray | None = None) -> FloatArray:
        """Return the step times in µs of every scenario, (K, n_steps).

        A step's time is from the last rank's end of the step before to the last rank's end. Ranks that
        end a step early begin the next one early: the lead is carried over. The first step has the lead
        that its own end shows, or none with `first_step_leads` off (all ranks began together).

        Args:
            repairs: what is different in each scenario.
            lead: a first guess of the ranks' leads (steps, ranks).
        """
        return np.asarray(self.rank_ends(repairs, lead).max(axis=2))

    def rank_ends(self, repairs: Sequence[Repair], lead: FloatArray | None) -> FloatArray:
        """Return each rank's end of each step, µs after the last rank's end of the step before.

        The result is (K, steps, ranks).

        Args:
            repairs: what is different in each scenario.
            lead: a first guess of the ranks' leads (steps, ranks), see `leads`.
        """
        n_scenarios = len(repairs)
        shape = (n_scenarios, self.n_steps, len(self.ranks))
        order = self.order
        now = np.zeros(shape) if lead is None else np.broadcast_to(lead, shape)
        ends = np.full((n_scenarios, self.n_steps * len(self.ranks)), -np.inf)
        left = np.arange(n_scenarios)
        for _ in range(_CARRY_ROUNDS):
            for part in self._parts(len(left)):
                chosen = left[part]
                rows = self._pass([repairs[one] for one in chosen], now[chosen])
                latest = np.maximum.reduceat(rows[order.last_rows], order.last_begin, axis=0)
                ends[np.ix_(chosen, order.cells)] = latest.T
            before, now = now, self.leads(ends.reshape(shape))
            moved_us = np.abs(now - before).max(axis=(1, 2), initial=0.0)
            if float(moved_us.max(initial=0.0)) < SETTLED_US:
                break
            # With the same leads a scenario would end the same.
            left = np.flatnonzero(moved_us)
        return ends.reshape(shape)

    def leads(self, ends: FloatArray) -> FloatArray:
        """Return how early each rank begins each step, from its end of the step before; not above 0."""
        late = np.where(np.isfinite(ends), ends - ends.max(axis=2, keepdims=True), 0.0)
        first = late[:, :1] if self.first_step_leads else np.zeros_like(late[:, :1])
        return np.concatenate([first, late[:, :-1]], axis=1)

    @cached_property
    def waits_us(self) -> FloatArray:
        """`waiting_us` of the job as measured; not to be changed."""
        waits = self.waiting_us(Repair())
        waits.flags.writeable = False
        return waits

    def waiting_us(self, repair: Repair) -> FloatArray:
        """Return how much longer each instance of a main stream lasts than its operator's transfer (V,).

        Every step is by itself.
        """
        order, by_instance = self.order, np.zeros(len(self.rank))
        end = self._pass((repair,), np.zeros((1, self.n_steps, len(self.ranks))))
        transfer = self._transfers.copy()
        transfer[order.operator_place[repair.operators]] = repair.transfer_us
        with _changed(self.gap_us, [(repair.instances, repair.gap_us)]) as gap:
            # Block by block: arrays of all instances would take longer to get than to fill.
            for stage in self._entries.stages:
                block, instances = stage.block, order.instances[stage.block.begin : stage.block.end]
                arrive = self._arrivals(end, stage, gap[instances])
                lasted = end[stage.rows] - arrive.reshape(block.n_members, block.n_operators)
                lasted -= transfer[stage.rows]
                by_instance[instances] = np.maximum(lasted, 0.0, out=lasted).ravel()
        by_instance[self.is_side] = 0.0
        return by_instance

    def call_times(self, begin: int, end: int) -> tuple[FloatArray, FloatArray]:
        """Return when instances `begin` to `end` come to their operators, and when they leave them, in µs.

        Every step is by itself: all ranks begin it at 0. Those of no block have no times, but 0.
        """
        ends = self._pass((Repair(),), np.zeros((1, self.n_steps, len(self.ranks))))
        came_us, left_us = np.zeros(end - begin), np.zeros(end - begin)
        for stage in self._entries.stages:
            block, instances = stage.block, self.order.instances[stage.block.begin : stage.block.end]
            chosen = (instances >= begin) & (instances < end)
            if chosen.any():
                at = instances[chosen] - begin
                came_us[at] = np.ravel(self._arrivals(ends, stage, self.gap_us[instances]))[chosen]
                left_us[at] = np.tile(ends[stage.rows], block.n_members)[chosen]
        return came_us, left_us

    def _arrivals(self, ends: FloatArray, stage: Stage, own: FloatArray) -> FloatArray:
        """When the instances of a block come to their operators, by their local times (n,)."""
        if not stage.block.is_joint:
            return arrivals(ends, stage, own)
        return np.asarray(ends.take(self.order.after[stage.block.begin : stage.block.end]) + own)

    def _parts(self, n_scenarios: int) -> list[slice]:
        """Scenarios that go through a pass together."""
        at_once = max(1, _PASS_BYTES // (_FLOAT_BYTES * (self._entries.n + self.order.n_rows)))
        return [slice(begin, begin + at_once) for begin in range(0, n_scenarios, at_once)]

    @cached_property
    def _entries(self) -> Entries:
        """Where local times lie in a pass."""
        return entries_of(self.order)

    @cached_property
    def _local(self) -> FloatArray:
        """Local times by entry, as they were."""
        return self._entries.local_us(self.gap_us)

    @cached_property
    def _transfers(self) -> FloatArray:
        """Transfers by place (O,), as they were."""
        return self.transfer_us[self.order.operators]

    def _pass(self, repairs: Sequence[Repair], lead: FloatArray) -> FloatArray:
        """Return the end of every row of the order, (rows,) of one scenario or (rows, K).

        Args:
            repairs: K scenarios.
            lead: when each rank begins each step, (K, steps, ranks).
        """
        gaps = [self._entries.changes(one.instances, one.gap_us, self.gap_us) for one in repairs]
        transfers = [(self.order.operator_place[one.operators], one.transfer_us) for one in repairs]
        with _changed(self._local, gaps) as local, _changed(self._transfers, transfers) as moved:
            return ends_of(self._entries, local, moved, lead)


@contextmanager
def _changed(values: FloatArray, changes: Sequence[tuple[IntArray, FloatArray]]) -> Iterator[FloatArray]:
    """Values of N places with each scenario's changes: (N,) for one, else (N, K), or (N, 1) without any.

    For one scenario they are changed in place until the end of the block: a copy would take as long as a
    tenth of the pass.
    """
    if len(changes) == 1:
        ((at, changed),) = changes
        before = values[at]
        values[at] = changed
        try:
            yield values
        finally:
            values[at] = before
        return
    if not any(len(at) for at, _ in changes):
        yield values[:, None]
        return
    columns = np.repeat(values[:, None], len(changes), axis=1)
    for number, (at, changed) in enumerate(changes):
        columns[at, number] = changed
    yield columns
