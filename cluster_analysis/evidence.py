"""What the analysis knows about a job once its ranks are read: one value a step, one for all steps.

`StepEvidence` comes out of `reduction.reduce_step`, one a step, in any order and from any process;
`merge_steps` puts them together sorted by step, so that neither scheduling nor partitioning shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.model import Topology
from cluster_analysis.schema import LINKS, MATCHED, OPERATORS, PACKETS, RANK_TIMES, STEPS, empty
from cluster_run.ids import Step, format_number_ranges

if TYPE_CHECKING:
    from cluster_analysis.replay import Graph

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer[Any]]
BoolArray = npt.NDArray[np.bool_]


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


@dataclass(frozen=True)
class JobEvidence:
    """All steps of all ranks, sorted by step. `step_operators` has one entry a step, None without any.

    `graph` stands for them once `graph.laid_out` has laid them side by side: they are dropped then.
    """

    steps: tuple[Step, ...]
    step_table: pa.Table
    matched: pa.Table
    rank_times: pa.Table
    links: pa.Table
    operators: pa.Table
    packets: pa.Table
    step_operators: tuple[StepOperators | None, ...]
    notes: tuple[str, ...] = field(default=())
    graph: Graph | None = None


def merge_steps(
    parts: Sequence[StepEvidence], topology: Topology, operators: pa.Table, packets: pa.Table
) -> JobEvidence:
    """Put the steps together; the order of `parts` does not matter.

    Args:
        parts: one value a step.
        topology: who sits where; ranks that it does not know are dropped from nothing, only noted.
        operators: OPERATORS of all ranks, or an empty table.
        packets: PACKETS of all ranks, or an empty table.
    """
    ordered = sorted(parts, key=lambda part: part.step)
    seen = {rank for part in ordered for rank in part.steps["rank"].to_pylist()}
    silent = sorted(set(topology.ranks) - seen)
    notes = list(dict.fromkeys(note for part in ordered for note in part.notes))
    if silent and ordered:
        verb = "has" if len(silent) == 1 else "have"
        notes.append(f"{len(silent)} of {len(topology.ranks)} ranks {verb} no step times")
    partial = [part.step for part in ordered if len(set(part.steps["rank"].to_pylist())) < len(seen)]
    if partial:
        which = "step" if len(partial) == 1 else "steps"
        notes.append(
            f"{which} {format_number_ranges(partial)}: not of all ranks; their other steps are compared"
        )
    return JobEvidence(
        steps=tuple(part.step for part in ordered),
        step_table=_sorted([part.steps for part in ordered], STEPS, ("step", "rank")),
        matched=_sorted([part.matched for part in ordered], MATCHED, ()),
        rank_times=_sorted([part.rank_times for part in ordered], RANK_TIMES, ("step", "rank")),
        links=_sorted([part.links for part in ordered], LINKS, ()),
        operators=operators.sort_by([("rank", "ascending")]) if operators.num_rows else empty(OPERATORS),
        packets=packets.sort_by([("rank", "ascending"), ("step", "ascending")])
        if packets.num_rows
        else empty(PACKETS),
        step_operators=tuple(part.operators for part in ordered),
        notes=tuple(notes),
    )


def _sorted(tables: Sequence[pa.Table], schema: pa.Schema, keys: tuple[str, ...]) -> pa.Table:
    filled = [table for table in tables if table.num_rows]
    if not filled:
        return empty(schema)
    table = pa.concat_tables(filled).unify_dictionaries()
    return table.sort_by([(key, "ascending") for key in keys]) if keys else table
