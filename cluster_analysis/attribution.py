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

from cluster_analysis.detectors.wording import milliseconds
from cluster_analysis.evidence import FloatArray, IntArray
from cluster_analysis.model import GroupRole
from cluster_analysis.replay import Graph, Repair

_ROLE_WORDS: dict[str, str] = {
    "tp": "tensor-parallel group",
    "pp": "pipeline",
    "dp": "data-parallel group",
    "cp": "context-parallel group",
    "ep": "expert-parallel group",
    "world": "collectives of all ranks",
    "unknown": "other groups",
}
#: Less waiting than this a step is nobody's news.
_LEAST_US = 200.0


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
        repair: what is different once the culprit is mended.
        culprits: positions of the culprit's ranks in the graph.
        role_of: the role of a group by its name.
    """
    saved = _waiting(graph, Repair()) - _waiting(graph, repair)
    roles = [role_of(name) for name in graph.groups]
    group = graph.operator_group[graph.operator]
    touched = np.zeros(len(graph.groups), bool)
    touched[group[np.isin(graph.rank, culprits)]] = True
    found = []
    for role in sorted(set(roles)):
        of_role = np.array([one == role for one in roles])[group]
        for is_direct in (True, False):
            inside = of_role & (touched[group] == is_direct) & ~np.isin(graph.rank, culprits)
            by_rank = np.bincount(graph.rank[inside], saved[inside], len(graph.ranks)) / graph.n_steps
            waiting = by_rank > _LEAST_US
            if waiting.any():
                worst = int(np.argmax(by_rank))
                found.append(
                    Blame(role, is_direct, float(by_rank[waiting].sum()), int(waiting.sum()),
                          int(graph.ranks[worst]), float(by_rank[worst]))
                )  # fmt: skip
    return tuple(sorted(found, key=lambda one: (not one.is_direct, -one.total_us)))


def _waiting(graph: Graph, repair: Repair) -> FloatArray:
    """What each visit lasts beyond its operator's transfer (V,), every step by itself."""
    end, arrive = graph.visit_times(repair)
    transfer = graph.transfer_us.copy()
    transfer[repair.operators] = repair.transfer_us
    waited: FloatArray = np.where(
        graph.is_side, 0.0, np.maximum(end - arrive - transfer[graph.operator], 0.0)
    )
    return waited


def chain(subject: str, blames: tuple[Blame, ...]) -> tuple[str, ...]:
    """Say how the delay travels, from the culprit's own groups outwards."""
    sentences = []
    for one in blames[:4]:
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
