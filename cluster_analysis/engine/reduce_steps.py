"""All steps of a run, reduced: the second half of the job as a Dask graph.

It cannot be one graph with the first: which steps there are, and who sits where, is known when all ranks
have been read.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc

from cluster_analysis.engine import tasks
from cluster_analysis.engine.graph import task
from cluster_analysis.engine.protocol import Engine, Graph
from cluster_analysis.engine.read_ranks import Progress, RanksRead
from cluster_analysis.tables.model import Topology
from cluster_analysis.trace.evidence import StepEvidence
from cluster_run.facts import fact
from cluster_run.ids import Step
from cluster_run.problem import Problem

_WHAT = "reducing steps"


def reducing(read: RanksRead, topology: Topology, steps: Sequence[Step]) -> Graph:
    """Return the graph that cuts what was read by step, and reduces each step to evidence."""
    graph: Graph = {("topology",): topology, **read.cut(steps)}
    for step in steps:
        own = read.steps.filter(pc.equal(read.steps["step"], step))
        graph["evidence", step] = task(tasks.reduce_parts, step, own, ("topology",), read.parts(step))
    return graph


def reduce_all(
    engine: Engine, read: RanksRead, topology: Topology, tell: Progress
) -> tuple[list[StepEvidence], tuple[Problem, ...]]:
    """Reduce all steps; one that cannot be reduced is a problem, and the others go on.

    Args:
        engine: who does the work.
        read: all ranks.
        topology: who sits where.
        tell: told after each step.
    """
    steps = sorted(set(read.bulk_steps) | {Step(one) for one in read.steps["step"].unique().to_pylist()})
    graph = reducing(read, topology, steps)
    tell(_WHAT, 0, len(steps))
    outcomes = engine.run(
        graph, [("evidence", step) for step in steps], lambda n_done: tell(_WHAT, n_done, len(steps))
    )
    evidence: list[StepEvidence] = []
    problems: list[Problem] = []
    for step, outcome in zip(steps, outcomes, strict=True):
        if outcome.value is None:
            problems.append(Problem(fact("step_not_analysed", step=step, detail=outcome.failure)))
            continue
        one, unmapped = outcome.value
        evidence.append(one)
        # Groups that cannot be mapped are the same in each step: once is enough.
        problems = problems or list(unmapped)
    return evidence, tuple(problems)
