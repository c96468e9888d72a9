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
    for _, _, stage, n_groups in _within_stages(view, stages):
        calls = np.bincount(stage, minlength=len(stages)) / n_groups
        found = np.maximum(found, calls / calls.mean())
    return found


def left_of_transfers(view: JobView, stages: IntArray) -> FloatArray | None:
    """What remains of transfers (O,) if each stage moves the mean of all, by kind; None without a graph."""
    left = None if view.graph is None else np.ones(len(view.graph.transfer_us))
    for graph, at, stage, n_groups in _within_stages(view, stages):
        moved = np.bincount(stage, np.nan_to_num(graph.operator_bytes[at]), len(stages)) / n_groups
        if left is not None and moved.min() > 0:
            left[at] = (moved.mean() / moved)[stage]
    return left


def _within_stages(view: JobView, stages: IntArray) -> Iterator[tuple[Graph, IntArray, IntArray, IntArray]]:
    """Give operators (N,) within stages, each one's stage, and how many groups that has, by common kinds."""
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
        first = np.unique(graph.operator_group[at], return_index=True)[1]
        n_groups = np.bincount(of_operator[at[first]], minlength=len(stages))
        if n_groups.all():
            yield graph, at, of_operator[at], n_groups
