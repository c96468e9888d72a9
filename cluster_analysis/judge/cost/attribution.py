"""Who waits for whom: the waiting that one suspect causes, directly and down the line.

The job is replayed as it was and with the suspect repaired; a call's waiting is what it lasts beyond its
transfer. The suspect caused the waiting that disappears: directly in operators of its own groups, indirectly
in others, where somebody who had waited for it came late in turn. Those cause nothing by themselves
and are never named, however long others waited for them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from cluster_analysis.numeric.arrays import IntArray
from cluster_analysis.replay.replay import Graph, Repair
from cluster_analysis.tables.model import GroupRole
from cluster_analysis.thresholds.cost import LEAST_WAITING_US
from cluster_run.findings import Wait
from cluster_run.ids import Rank


def waits_for(
    graph: Graph, repair: Repair, late: IntArray, role_of: Callable[[str], GroupRole]
) -> tuple[Wait, ...]:
    """Return the waiting that a repair takes away by role, from the suspect's own groups outwards.

    Args:
        graph: the job.
        repair: what is different once the suspect is fixed.
        late: positions of the suspect's ranks in the graph.
        role_of: the role of a group by its name.
    """
    # In place, and then step by step: arrays of all instances are the largest that judging makes.
    saved = graph.waiting_us(repair)
    np.subtract(graph.waits_us, saved, out=saved)
    is_late = np.zeros(len(graph.ranks), bool)
    is_late[late] = True
    touched = np.zeros(len(graph.groups), bool)
    touched[graph.operator_group[graph.operator[graph.instances_of(is_late)]]] = True
    roles = [role_of(name) for name in graph.groups]
    names = sorted(set(roles))
    # One row a role, for groups of the suspect and for others.
    row = 2 * np.array([names.index(role) for role in roles]) + ~touched
    first_cell = (row * len(graph.ranks))[graph.operator_group]
    total = np.zeros(2 * len(names) * len(graph.ranks))
    for begin, end in pairwise(graph.cell_begin[:: len(graph.ranks)].tolist()):
        step = slice(begin, end)
        np.add.at(total, first_cell[graph.operator[step]] + graph.rank[step], saved[step])
    by_rank = (total / graph.n_steps).reshape(-1, len(graph.ranks))
    by_rank[:, is_late] = 0.0
    found: list[tuple[bool, float, Wait]] = []
    for number, own in enumerate(by_rank):
        waiting = own > LEAST_WAITING_US
        if waiting.any():
            worst = int(np.argmax(own))
            one = Wait(
                group=names[number // 2],
                waits_for="late" if number % 2 == 0 else "held_up",
                n_ranks=int(waiting.sum()),
                rank=Rank(int(graph.ranks[worst])),
                ms_per_step=round(float(own[worst]) / 1e3, 3),
            )
            found.append((one.waits_for == "held_up", -float(own[waiting].sum()), one))
    found.sort(key=lambda one_found: one_found[:2])
    return tuple(one for _, _, one in found)
