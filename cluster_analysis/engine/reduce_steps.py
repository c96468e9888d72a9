"""Reduces all steps of a run: the second half of the job as a Dask graph.

Two graphs and not one: which steps there are, and which rank sits where, is known only when all ranks have
been read.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.engine.graph import task
from cluster_analysis.engine.handover import set_aside
from cluster_analysis.engine.protocol import Engine, Graph
from cluster_analysis.engine.read_ranks import Progress, RanksRead
from cluster_analysis.engine.step_files import StepFiles, StepTables
from cluster_analysis.engine.tasks import reduce_pieces
from cluster_analysis.tables.model import Topology
from cluster_analysis.trace.evidence import StepEvidence
from cluster_run.facts import Value, fact
from cluster_run.ids import Step
from cluster_run.problem import Problem

_WHAT = "reducing steps"


def reducing(read: RanksRead, topology: Topology, steps: Sequence[Step], folder: str) -> Graph:
    """Return the graph that cuts what was read by step, and reduces each step to evidence.

    Args:
        read: all ranks.
        topology: who sits where.
        steps: which ones.
        folder: where evidence is set aside by the process that reduces all steps; empty to keep it.
    """
    graph: Graph = {("topology",): topology, **read.cut(steps)}
    for step in steps:
        own = read.steps.filter(pc.equal(read.steps["step"], step))
        rest = step, own, ("topology",), read.pieces(step)
        graph["evidence", step] = (
            task(_reduced_aside, folder, *rest) if folder else task(reduce_pieces, *rest)
        )
    return graph


def reduce_all(
    engine: Engine, read: RanksRead, topology: Topology, on_progress: Progress, folder: str = ""
) -> tuple[list[StepEvidence], tuple[Problem, ...]]:
    """Reduce all steps; one that cannot be reduced is a problem, and the others go on.

    Args:
        engine: who does the work.
        read: all ranks.
        topology: who sits where.
        on_progress: called after each step.
        folder: where evidence is set aside, unless the engine hands it over in files; empty to keep it.
    """
    steps = sorted(set(read.bulk_steps) | {Step(one) for one in read.steps["step"].unique().to_pylist()})
    graph = reducing(read, topology, steps, "" if engine.wants_files else folder)
    on_progress(_WHAT, 0, len(steps))
    outcomes = engine.run(
        graph, [("evidence", step) for step in steps], lambda n_done: on_progress(_WHAT, n_done, len(steps))
    )
    evidence: list[StepEvidence] = []
    failed: list[Problem] = []
    unmapped: dict[Value, Problem] = {}
    for step, outcome in zip(steps, outcomes, strict=True):
        if outcome.value is None:
            failed.append(Problem(fact("step_not_analysed", step=step, detail=outcome.failure)))
            continue
        one, of_groups = outcome.value
        evidence.append(one)
        # A group that cannot be mapped is reported for the first step that has it.
        unmapped = {problem.why["group"]: problem for problem in of_groups} | unmapped
    return evidence, (*unmapped.values(), *failed)


def _reduced_aside(
    folder: str, step: Step, steps: pa.Table, topology: Topology, pieces: Sequence[StepTables | StepFiles]
) -> tuple[StepEvidence, tuple[Problem, ...]]:
    """Reduce a step in the process that reduces all of them: what it found so far lies in files."""
    found: tuple[StepEvidence, tuple[Problem, ...]]
    found = set_aside(folder, reduce_pieces(step, steps, topology, pieces))
    return found
