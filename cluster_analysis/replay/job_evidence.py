"""Evidence on a job once its ranks are read: all steps, merged.

`merge_steps` sorts by step, so the result does not depend on scheduling or partitioning.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from msgspec import Struct, field

from cluster_analysis.replay.replay import Graph
from cluster_analysis.tables.schema import (
    COUNTERS,
    LINKS,
    MATCHED,
    OPERATORS,
    PACKETS,
    RANK_TIMES,
    SENT,
    STEPS,
)
from cluster_analysis.trace.evidence import StepEvidence, StepOperators
from cluster_run.facts import Fact, fact
from cluster_run.ids import Step


class JobEvidence(Struct, frozen=True):
    """All steps of all ranks, sorted by step. `step_operators` has one entry a step, None without any;
    `graph` stands in their place where `graph.laid_out` has put the steps together.
    """

    steps: tuple[Step, ...]
    step_table: pa.Table
    matched: pa.Table
    rank_times: pa.Table
    links: pa.Table
    operators: pa.Table
    packets: pa.Table
    step_operators: tuple[StepOperators | None, ...] = ()
    notes: tuple[Fact, ...] = field(default=())
    graph: Graph | None = None
    counters: pa.Table = field(default_factory=COUNTERS.empty_table)
    sent: pa.Table = field(default_factory=SENT.empty_table)


def merge_steps(parts: Sequence[StepEvidence], operators: pa.Table, packets: pa.Table) -> JobEvidence:
    """Put the steps together; the order of `parts` does not matter.

    Args:
        parts: one value a step.
        operators: OPERATORS of all ranks, or an empty table.
        packets: PACKETS of all ranks, or an empty table.
    """
    ordered = sorted(parts, key=lambda part: part.step)
    # All that is judged has these steps: operators and links of a step without times belong to none.
    timed = [part for part in ordered if part.steps.num_rows] or ordered
    seen = {rank for part in timed for rank in part.steps["rank"].to_pylist()}
    notes = list(dict.fromkeys(note for part in ordered for note in part.notes))
    lacking = {part.step: seen.difference(part.steps["rank"].to_pylist()) for part in timed}
    partial = tuple(step for step, ranks in lacking.items() if ranks)
    all_lacking = set().union(*lacking.values())
    if partial and len(partial) == len(timed) and len(seen) > 1:
        # Ranks that lack what most others have.
        odd = set().union(*(ranks for ranks in lacking.values() if 2 * len(ranks) < len(seen)))
        notes.append(fact("no_common_step", ranks=tuple(sorted(odd or all_lacking))))
    elif partial:
        notes.append(fact("steps_of_some_ranks", steps=partial, ranks=tuple(sorted(all_lacking))))
    return JobEvidence(
        steps=tuple(part.step for part in timed),
        step_table=_sorted([part.steps for part in ordered], STEPS, ("step", "rank")),
        matched=_sorted([part.matched for part in ordered], MATCHED, ()),
        rank_times=_sorted([part.rank_times for part in ordered], RANK_TIMES, ("step", "rank")),
        links=_sorted([part.links for part in timed], LINKS, ()),
        operators=_sorted([operators], OPERATORS, ("rank",)),
        packets=_sorted([packets], PACKETS, ("rank", "step")),
        step_operators=tuple(part.operators for part in timed),
        notes=tuple(notes),
        sent=_sorted([part.sent for part in timed], SENT, ()),
    )


def _sorted(tables: Sequence[pa.Table], schema: pa.Schema, keys: tuple[str, ...]) -> pa.Table:
    filled = [table for table in tables if table.num_rows]
    if not filled:
        return schema.empty_table()
    table = pa.concat_tables(filled).unify_dictionaries()
    return table.sort_by([(key, "ascending") for key in keys]) if keys else table
