"""Ranks whose steps are not those that the others made, by when they leave collectives from step to step.

Clocks of hosts differ by an offset that stays. So from one step to the next a collective's members count the
same time. Who counts another one was in other steps: of an earlier run, say, or numbered otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import compress, pairwise

import numpy as np

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import begins
from cluster_analysis.thresholds.calls import DRIFT, LEAST_TOLERANCE_US
from cluster_analysis.thresholds.common import MOSTLY, TOLERANCE_SHARE
from cluster_analysis.trace.evidence import StepEvidence
from cluster_analysis.windows.other_times import in_minority
from cluster_run.facts import Fact, fact
from cluster_run.ids import Rank, Step

#: More than a job has.
_MOST_RANKS = 1 << 31


def at_other_times(steps: Sequence[StepEvidence]) -> tuple[Fact, ...]:
    """Return a note on ranks that were not in steps together with most others of their groups.

    They left apart in most of their steps, or counted other times between most of them; or once a clock was
    set, by a step or more.
    """
    within = {(one.step, rank) for one in steps for rank in one.apart}
    in_steps = Counter(Rank(rank) for one in steps for rank in one.clocks["rank"].unique().to_pylist())
    between: set[tuple[Step, Rank]] = set()
    far: set[tuple[Step, Rank]] = set()
    pairs: Counter[Rank] = Counter()
    for before, after in pairwise(steps):
        ranks, is_off, is_far = _changes(before, after)
        pairs.update(ranks)
        between |= {(after.step, rank) for rank in compress(ranks, is_off)}
        far |= {(after.step, rank) for rank in compress(ranks, is_far)}
    apart = far | _usual(within, in_steps) | _usual(between, pairs)
    who, when = (tuple(sorted({one[at] for one in apart})) for at in (1, 0))
    return (fact("other_times", ranks=who, steps=when),) if apart else ()


def _usual(apart: set[tuple[Step, Rank]], met: Counter[Rank]) -> set[tuple[Step, Rank]]:
    """Return those of ranks that are apart in most of what was compared; noise of a few steps is none."""
    often = Counter(rank for _, rank in apart)
    return {(step, rank) for step, rank in apart if often[rank] >= MOSTLY * met[rank]}


def _changes(before: StepEvidence, after: StepEvidence) -> tuple[list[Rank], BoolArray, BoolArray]:
    """Return ranks that made calls in both steps, and which of them (R,) count another time between than
    most: by more than clocks drift, and by a step."""
    (keys, *former), (later_keys, *later) = _times(before), _times(after)
    key, was, now = np.intersect1d(keys, later_keys, assume_unique=True, return_indices=True)
    group, of_rank = np.divmod(key, _MOST_RANKS)
    came, took = (then[now] - before_us[was] for before_us, then in zip(former, later, strict=True))
    waited = np.abs(took - came)
    ranks, rank = np.unique(of_rank, return_inverse=True)
    drift = LEAST_TOLERANCE_US + DRIFT * np.abs(took) + TOLERANCE_SHARE * waited
    off, far = (
        in_minority(_sets(group, took, limit), group, rank, len(ranks)) for limit in (drift, np.abs(took))
    )
    return [Rank(one) for one in ranks.tolist()], off, far


def _times(step: StepEvidence) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the key of each member of CLOCKS, and when it came and left."""
    group, rank, came_us, left_us = (column.to_numpy() for column in step.clocks.columns)
    return group.astype(np.int64) * _MOST_RANKS + rank, came_us, left_us


def _sets(group: IntArray, took: FloatArray, limit: FloatArray) -> IntArray:
    """Number the sets of members of a group that lie within a limit (M,); -1 where nothing is known."""
    order = np.lexsort((took, group))
    is_first = begins(group[order])
    is_first[1:] |= np.diff(took[order]) > np.minimum(limit[order][1:], limit[order][:-1])
    label = np.empty(len(order), np.int64)
    label[order] = np.cumsum(is_first)
    return np.where(np.isfinite(took), label, -1)
