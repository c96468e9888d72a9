"""How often stages call and how much they move: more work makes more calls, a slow host does not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.sorting import combined
from cluster_analysis.replay.replay import Graph


def more_calls(view: JobView, stages: IntArray) -> FloatArray:
    """Calls of each stage (P,) as a multiple of the mean of all, for the kind where that is most."""
    found = np.ones(len(stages))
    for graph, at, stage in _within_stages(view, stages):
        calls = _by_stage(graph, at, stage, np.ones(len(at)), len(stages))
        found = np.maximum(found, calls / calls.mean())
    return found


def left_of_transfers(view: JobView, stages: IntArray) -> FloatArray | None:
    """What remains of transfers (O,) if each stage moves the mean of all, by kind; None without a graph."""
    left = None if view.graph is None else np.ones(len(view.graph.transfer_us))
    for graph, at, stage in _within_stages(view, stages):
        moved = _by_stage(graph, at, stage, np.nan_to_num(graph.operator_bytes[at]), len(stages))
        if left is not None and moved.min() > 0:
            left[at] = (moved.mean() / moved)[stage]
    return left


def _within_stages(view: JobView, stages: IntArray) -> Iterator[tuple[Graph, IntArray, IntArray]]:
    """Give operators (N,) within stages, and the place of each one's stage, by kinds that all stages have."""
    graph, groups = view.graph, view.topology.groups
    if graph is None:
        return
    place = {int(one): number for number, one in enumerate(stages)}
    of_group = np.full(len(graph.groups), -1)
    for number, name in enumerate(graph.groups):
        members = groups[name].ranks if name in groups else ()
        inside = {place.get(view.topology.stages.get(rank, -1), -1) for rank in members}
        of_group[number] = inside.pop() if len(inside) == 1 else -1
    of_operator = of_group[graph.operator_group]
    found = np.flatnonzero((of_operator >= 0) & ~graph.is_message)
    n_kinds, kind = combined(graph.operator_type[found], graph.operator_n_ranks[found])
    for one in range(n_kinds):
        at = found[kind == one]
        if len(np.unique(of_operator[at])) == len(stages):
            yield graph, at, of_operator[at]


def _by_stage(graph: Graph, at: IntArray, stage: IntArray, values: FloatArray, n_stages: int) -> FloatArray:
    """Sums of operators' values by stage (P,), for each of its groups."""
    first = np.unique(graph.operator_group[at], return_index=True)[1]
    n_groups = np.bincount(stage[first], minlength=n_stages)
    return np.asarray(np.bincount(stage, values, n_stages) / n_groups, np.float64)
