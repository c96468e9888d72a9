"""What is known of one step once all its ranks are read: made by `reduce_step`, in any order and process."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_run.ids import Step


@dataclass(frozen=True)
class StepOperators:
    """The communication operators of one step as a graph that can be replayed.

    A *visit* is one rank's part in one operator; the visits of a rank stand in program order. The
    local time before a visit is its gap, taken on the rank's own clock. `visit_after` is the visit
    (same rank) whose end the gap counts from, -1 for the begin of the step; a visit on a second (side)
    stream counts from the main stream's visit that had ended when it began. `visit_join` is a visit
    that must have ended too, -1 for none: before the gap, or behind it where the visit `waits_last`.
    A point-to-point visit is an operator of its own; `visit_sender` is the visit it receives from,
    `visit_receiver` the one that receives from it. `visit_by_operator` are the visits of each operator
    side by side, by rank. `operator_place` counts the operators of a group.

    Shapes: (R,) ranks, (V,) visits, (O,) operators. Times in µs.
    """

    ranks: IntArray
    step_us: FloatArray
    visit_rank: IntArray
    visit_operator: IntArray
    visit_by_operator: IntArray
    visit_after: IntArray
    visit_join: IntArray
    visit_sender: IntArray
    visit_receiver: IntArray
    visit_gap_us: FloatArray
    visit_elapse_us: FloatArray
    visit_is_send: BoolArray
    visit_is_receive: BoolArray
    visit_is_p2p: BoolArray
    visit_is_side: BoolArray
    visit_waits_last: BoolArray
    operator_group: IntArray
    operator_type: IntArray
    operator_place: IntArray
    operator_bytes: FloatArray
    operator_transfer_us: FloatArray
    groups: tuple[str, ...]
    types: tuple[str, ...]

    @property
    def n_visits(self) -> int:
        """Number of visits."""
        return len(self.visit_rank)


@dataclass(frozen=True)
class StepEvidence:
    """One step of all ranks. `links` holds the usable rows of LINKS with global ranks."""

    step: Step
    steps: pa.Table
    matched: pa.Table
    rank_times: pa.Table
    links: pa.Table
    operators: StepOperators | None
    notes: tuple[str, ...] = ()
