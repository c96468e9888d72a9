"""Who waits for whom: the waiting that one culprit causes, directly and down the line.

The job is replayed as it was and with the culprit repaired; a call's waiting is what it lasts beyond its
transfer. What disappears was caused by the culprit: directly in operators of its own groups, indirectly
in others, where somebody who had waited for it came late in turn. Victims cause nothing by themselves
and are never blamed, however long others waited for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cluster_analysis.judge.wording import milliseconds
from cluster_analysis.numeric.arrays import IntArray
from cluster_analysis.replay.replay import Graph, Repair
from cluster_analysis.tables.model import GroupRole
from cluster_analysis.thresholds.cost import LEAST_WAITING_US, N_LINKS_OF_CHAIN

_ROLE_WORDS: dict[str, str] = {
    "tp": "tensor-parallel group",
    "pp": "pipeline",
    "dp": "data-parallel group",
    "cp": "context-parallel group",
    "ep": "expert-parallel group",
    "world": "collectives of all ranks",
    "unknown": "other groups",
}


@dataclass(frozen=True)
class Blame:
    """Waiting caused in groups of one role, a step: its sum over ranks, who waits most, and how long."""

    role: GroupRole
    is_direct: bool
    total_us: float
    n_ranks: int
    worst_rank: int
    worst_us: float


def blame(
    graph: Graph, repair: Repair, culprits: IntArray, role_of: Callable[[str], GroupRole]
) -> tuple[Blame, ...]:
    """Return the waiting that a repair takes away, the largest sum first.

    Args:
        graph: the job.
        repair: what is different once the culprit is fixed.
        culprits: positions of the culprit's ranks in the graph.
        role_of: the role of a group by its name.
    """
    saved = graph.waiting_us(Repair()) - graph.waiting_us(repair)
    is_culprit = np.zeros(len(graph.ranks), bool)
    is_culprit[culprits] = True
    touched = np.zeros(len(graph.groups), bool)
    touched[graph.operator_group[graph.operator[is_culprit[graph.rank]]]] = True
    roles = [role_of(name) for name in graph.groups]
    names = sorted(set(roles))
    # One row a role, for groups of the culprit and for others.
    row = 2 * np.array([names.index(role) for role in roles]) + ~touched
    cell = (row * len(graph.ranks))[graph.operator_group][graph.operator] + graph.rank
    total = np.bincount(cell, saved, 2 * len(names) * len(graph.ranks)) / graph.n_steps
    by_rank = total.reshape(-1, len(graph.ranks))
    by_rank[:, is_culprit] = 0.0
    found = []
    for number, own in enumerate(by_rank):
        waiting = own > LEAST_WAITING_US
        if waiting.any():
            worst = int(np.argmax(own))
            found.append(
                Blame(names[number // 2], number % 2 == 0, float(own[waiting].sum()), int(waiting.sum()),
                      int(graph.ranks[worst]), float(own[worst]))
            )  # fmt: skip
    return tuple(sorted(found, key=lambda one: (not one.is_direct, -one.total_us)))


def chain(subject: str, blames: tuple[Blame, ...]) -> tuple[str, ...]:
    """Say how the delay travels, from the culprit's own groups outwards."""
    sentences = []
    for one in blames[:N_LINKS_OF_CHAIN]:
        words = _ROLE_WORDS[one.role]
        others = "rank waits" if one.n_ranks == 1 else "ranks wait"
        longest = f"rank {one.worst_rank} longest, {milliseconds(one.worst_us)} a step"
        if one.is_direct:
            sentences.append(f"In its {words} {one.n_ranks} {others} for {subject} ({longest}).")
        else:
            sentences.append(
                f"Down the line {one.n_ranks} {others} in their {words} for ranks that {subject} held up "
                f"({longest})."
            )
    return tuple(sentences)
