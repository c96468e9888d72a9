"""Waiting of a job: which rank it is for, and which part of it no repair makes shorter.

The job is replayed as it was and with a suspect repaired; a call's waiting is what it lasts beyond its
transfer. The suspect caused the waiting that disappears: directly in operators of its own groups, indirectly
in others, where a rank that had waited for it came late in turn. Such ranks are never named, however long
others waited for them. Waiting that a replay only copies stays whatever is repaired, so costs may be too low.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from msgspec import Struct

from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.sorting import combined, half_octaves, rows_at
from cluster_analysis.replay.replay import Graph, Repair
from cluster_analysis.thresholds.calls import GAP_TOLERANCE, QUICK_QUANTILE
from cluster_analysis.thresholds.common import HALFWAY, TOLERANCE_SHARE
from cluster_analysis.thresholds.judging import LEAST_WAITING_US
from cluster_run.findings import Wait
from cluster_run.ids import GroupRole, Rank


class Copied(Struct, frozen=True):
    """Waiting of each rank (R,) of a graph, in µs over all steps: what is copied, and what follows.

    It is copied in messages whose other end is not known (`lone_us`), which last as long as they did, and
    in gaps longer than all that their rank did itself (`gaps_us`). The rest follows from who comes late.
    """

    lone_us: FloatArray
    gaps_us: FloatArray
    followed_us: FloatArray
    measured_us: FloatArray

    @property
    def share(self) -> float:
        """Share of all waiting that is copied; 0 where no rank waits."""
        copied, followed = float((self.lone_us + self.gaps_us).sum()), float(self.followed_us.sum())
        return copied / (copied + followed) if copied > 0 else 0.0

    @property
    def step_share(self) -> float:
        """Copied waiting as a share of the steps of all ranks."""
        return float((self.lone_us + self.gaps_us).sum() / max(float(self.measured_us.sum()), 1.0))

    @property
    def holds_the_step(self) -> bool:
        """Whether some rank mostly waits for unknown ends, and long: the last rank ends the step."""
        is_most = self.lone_us >= HALFWAY * (self.lone_us + self.gaps_us + self.followed_us)
        return bool((is_most & (self.lone_us > TOLERANCE_SHARE * self.measured_us)).any())


def copied_waiting(view: JobView, graph: Graph) -> Copied:
    """Return the waiting that the replay of `graph` takes as it was."""
    n, waited, at = len(graph.ranks), graph.waits_us, np.flatnonzero(graph.is_lone)
    lone = waited[at] + graph.transfer_us[graph.operator[at]] - _quick_us(graph)[graph.operator[at]]
    beyond: FloatArray = np.zeros(n)
    if view.local_us.shape[1] == graph.n_steps:
        inside = 0.0 if view.waited_inside_us is None else view.waited_inside_us
        gaps, own = graph.main_gaps_us, rows_at(graph.ranks, view.ranks, view.local_us + inside, np.nan)
        beyond = np.where(gaps > (1.0 + GAP_TOLERANCE) * own, gaps - own, 0.0).sum(axis=1)
    lone_us, followed_us = (
        np.bincount(graph.rank[one], us, n).astype(np.float64)
        for one, us in ((at, lone), (np.flatnonzero(~graph.is_lone), waited[~graph.is_lone]))
    )
    return Copied(lone_us, beyond, followed_us, np.nansum(graph.measured_us, axis=0))


def _quick_us(graph: Graph) -> FloatArray:
    """Transfers (O,) with lone messages no longer than the quick ones of their kind and size."""
    quick_us: FloatArray = graph.transfer_us.copy()
    if not graph.is_lone.any():
        return quick_us
    at = np.flatnonzero(graph.is_p2p)
    operator, lone = graph.operator[at], graph.is_lone[at]
    _, alike = combined(graph.operator_type[operator], half_octaves(graph.operator_bytes[operator]))
    for one in np.unique(alike[lone]):
        same = alike == one
        least = float(np.quantile(graph.transfer_us[operator[same]], QUICK_QUANTILE))
        quick_us[operator[same & lone]] = np.minimum(quick_us[operator[same & lone]], least)
    return quick_us


def waits_for(
    graph: Graph, repair: Repair, late: IntArray, role_of: Callable[[str], GroupRole]
) -> tuple[Wait, ...]:
    """Return the waiting that a repair takes away by role, from the suspect's own groups outwards.

    Args:
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
