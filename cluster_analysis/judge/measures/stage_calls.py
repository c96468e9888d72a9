"""How much stages move: one with more layers moves more."""

from __future__ import annotations

import numpy as np

from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.sorting import combined


def left_of_transfers(view: JobView, stages: IntArray) -> FloatArray | None:
    """What remains of transfers (O,) if each stage moves the mean of all, by kind; None without a graph.

    Kinds of operators within stages that all stages have; each stage counts for each of its groups.
    """
    graph, groups = view.graph, view.topology.groups
    if graph is None:
        return None
    place = {int(one): number for number, one in enumerate(stages)}
    of_group = np.full(len(graph.groups), -1)
    for number, name in enumerate(graph.groups):
        members = groups[name].ranks if name in groups else ()
        inside = {place.get(view.topology.stages.get(rank, -1), -1) for rank in members}
        of_group[number] = inside.pop() if len(inside) == 1 else -1
    left, of_operator = np.ones(len(graph.transfer_us)), of_group[graph.operator_group]
    found = np.flatnonzero((of_operator >= 0) & ~graph.is_message)
    n_kinds, kind = combined(graph.operator_type[found], graph.operator_n_ranks[found])
    for at in (found[kind == one] for one in range(n_kinds)):
        stage, first = of_operator[at], np.unique(graph.operator_group[at], return_index=True)[1]
        n_groups = np.bincount(stage[first], minlength=len(stages))
        moved = np.bincount(stage, np.nan_to_num(graph.operator_bytes[at]), len(stages)) / np.maximum(
            n_groups, 1
        )
        if moved.min() > 0:
            left[at] = (moved.mean() / moved)[stage]
    return left
