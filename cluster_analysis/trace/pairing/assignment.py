"""Assign calls to slots of the program where their numbers do not say which slot they are in.

A profiler that numbers only what it records leaves no hole where a record is lost. Calls keep their order,
though. They end about when their replicas do, and together with a call of the stage that their slot
communicates with.
"""

from __future__ import annotations

import numpy as np

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.stats import median
from cluster_analysis.thresholds.messages import ALIKE_SHARE, LEAST_SCORE, OTHER_KIND
from cluster_analysis.trace.pairing.slots import Family

_ROUNDS = 2


def assign_to_slots(
    family: Family,
    partner: IntArray,
    usual_us: FloatArray,
    row: IntArray,
    kind: IntArray,
    ended_us: FloatArray,
    stage: IntArray,
    together_us: float,
) -> IntArray | None:
    """Return the calls of one group by slot of a family (slots,); None where they do not fit.

    Args:
        family: groups that run the program.
        partner: the other end of each slot's message (slots,), -1 for none.
        usual_us: when the family's calls of each slot end (slots,), on the clock of all.
        row: the group's calls (N,), stage by stage, in order.
        kind: their kinds (N,).
        ended_us: when they ended (N,).
        stage: their stages (N,).
        together_us: ends that are less apart are together.
    """
    slot = np.full(len(row), -1, np.int64)
    score = 0.0
    for number in range(_ROUNDS):
        score = 0.0
        before = slot.copy()
        for one in range(family.n_stages):
            own, slots = np.flatnonzero(stage == one), family.slots_of(one)
            if len(own) > len(slots):
                return None
            if not len(own):
                continue
            spacing = (
                float(np.nan_to_num(median(np.diff(usual_us[slots])), nan=1.0)) if len(slots) > 1 else 1.0
            )
            apart = np.abs(ended_us[own][:, None] - usual_us[slots])
            worth = ALIKE_SHARE * np.exp(-np.nan_to_num(apart, nan=np.inf) / max(spacing, 1.0))
            for column, other in enumerate(partner[slots].tolist()):
                if other < 0:
                    continue
                theirs = np.flatnonzero((before == other) if number else (stage == family.stage[other]))
                near = np.abs(ended_us[own][:, None] - ended_us[theirs]) < together_us
                worth[:, column] += near.any(axis=1)
            worth[kind[own][:, None] != family.kind[slots]] = OTHER_KIND
            chosen, own_score = _best_in_order(worth)
            slot[own] = slots[chosen]
            score += own_score
    if score < LEAST_SCORE * len(row):
        return None
    found = np.full(len(family.stage), -1, np.int64)
    found[slot] = row
    return found


def _best_in_order(worth: FloatArray) -> tuple[IntArray, float]:
    """Lay N calls on K slots so that both keep their order and the sum of `worth` (N, K) is greatest."""
    n, k = worth.shape
    best = np.full((n + 1, k + 1), -np.inf)
    best[0] = 0.0
    for i in range(n):
        taken = best[i, :k] + worth[i]
        best[i + 1, 1:] = np.maximum.accumulate(taken)
    chosen = np.empty(n, np.int64)
    at = k
    for i in range(n - 1, -1, -1):
        taken = best[i, :at] + worth[i, :at]
        at = int(np.argmax(taken))
        chosen[i] = at
    return chosen, float(best[n, k])
