"""Evidence on one step once all its ranks are read: made by `reduce_step`, in any order and process."""

from __future__ import annotations

import pyarrow as pa
from msgspec import Struct, field

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.tables.schema import CLOCKS, SENT
from cluster_run.facts import Fact
from cluster_run.ids import Rank, Step


class Queue(Struct, frozen=True):
    """Evidence of computing during calls, for a step in which no two calls of a rank overlap.

    `start_us` (V,) is when instances began on their rank's clock, `is_recorded` (V,) which of them were not
    filled in, `left_late_us` (V,) how long before that their rank was still leaving the last one. The rest is
    by rank (R,), NaN for unknown: its pipeline stage, the communication that computing covers, its computing,
    and its idle time outside of calls.
    """

    start_us: FloatArray
    is_recorded: BoolArray
    left_late_us: FloatArray
    stage: IntArray
    covered_us: FloatArray
    computing_us: FloatArray
    idle_us: FloatArray


class StepOperators(Struct, frozen=True):
    """The communication operators of one step as a graph that can be replayed.

    An *instance* is one rank's part in one operator; the instances of a rank stand in program order. The
    local time before an instance is its gap, taken on the rank's own clock. `instance_after` is the instance
    (same rank) whose end the gap counts from, -1 for the begin of the step; an instance on a second (side)
    stream counts from the main stream's instance that had ended when it began. `instance_join` is an instance
    that must have ended too, -1 for none: before the gap, or behind it where the instance `waits_last`. A
    point-to-point instance is an operator of its own; `instance_sender` is the instance it receives from,
    `instance_receiver` the one that receives from it. `instance_by_operator` are those of each operator side
    by side, by rank. `operator_place` counts the operators of a group. `left_late_us` (R,) is how long ranks
    were still leaving operators, behind the first member, in the gaps of their main stream. `queue` is there
    where all calls are in one queue.

    Shapes: (R,) ranks, (V,) instances, (O,) operators. Times in µs.
    """

    ranks: IntArray
    step_us: FloatArray
    left_late_us: FloatArray
    instance_rank: IntArray
    instance_operator: IntArray
    instance_by_operator: IntArray
    instance_after: IntArray
    instance_join: IntArray
    instance_sender: IntArray
    instance_receiver: IntArray
    instance_gap_us: FloatArray
    instance_elapse_us: FloatArray
    instance_is_send: BoolArray
    instance_is_receive: BoolArray
    instance_is_p2p: BoolArray
    instance_is_side: BoolArray
    instance_waits_last: BoolArray
    operator_group: IntArray
    operator_type: IntArray
    operator_place: IntArray
    operator_bytes: FloatArray
    operator_transfer_us: FloatArray
    groups: tuple[str, ...]
    types: tuple[str, ...]
    queue: Queue | None = None

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return len(self.instance_rank)


class StepEvidence(Struct, frozen=True):
    """One step of all ranks; some may be `apart`. `links` are usable rows of LINKS, else `sent` is SENT.
    `clocks` are CLOCKS."""

    step: Step
    steps: pa.Table
    matched: pa.Table
    rank_times: pa.Table
    links: pa.Table
    operators: StepOperators | None
    notes: tuple[Fact, ...] = ()
    sent: pa.Table = field(default_factory=SENT.empty_table)
    apart: tuple[Rank, ...] = ()
    clocks: pa.Table = field(default_factory=CLOCKS.empty_table)
