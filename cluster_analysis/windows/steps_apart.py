"""Ranks whose steps are not those that the others made, by when they leave collectives from step to step.

Clocks of hosts differ by an offset that stays. So from one step to the next a collective's members count the
same time. Who counts another one was in other steps: of an earlier run, say, or numbered otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from cluster_analysis.numeric.grouped import medians_of, quantiles_of
from cluster_analysis.numeric.sorting import combined, distinct
from cluster_analysis.thresholds.calls import DRIFT, LEAST_TOLERANCE_US
from cluster_analysis.thresholds.common import TOLERANCE_SHARE
from cluster_analysis.trace.evidence import StepEvidence
from cluster_analysis.windows.other_times import in_minority
from cluster_run.facts import Fact, fact
from cluster_run.ids import Rank, Step


def at_other_times(steps: Sequence[StepEvidence]) -> tuple[Fact, ...]:
    """Return a note on ranks that were not in steps together with most others of their groups.

    They left apart in most of their steps, or counted other times between most of them; or once, when a
    clock was set by a step or more.
    """
    often = Counter(rank for one in steps for rank in one.apart)
    in_steps = Counter(rank for one in steps for rank in one.clocks["rank"].unique().to_pylist())
    apart = {
        (one.step, rank) for one in steps for rank in one.apart if 2 * often[rank] > in_steps[rank]
    } | _between(steps)
    ranks, numbers = (tuple(sorted({one[at] for one in apart})) for at in (1, 0))
    return (fact("other_times", ranks=ranks, steps=numbers),) if apart else ()


def _between(steps: Sequence[StepEvidence]) -> set[tuple[Step, Rank]]:
    """Return before which steps ranks counted another time since the step before than most others."""
    if len(steps) < 2:
        return set()
    number = np.repeat([one.step for one in steps], [one.clocks.num_rows for one in steps])
    group, rank, came_us, left_us = (
        np.concatenate([one.clocks[at].to_numpy() for one in steps]) for at in range(4)
    )
    order = np.lexsort((number, rank, group))
    member = combined(group, rank)[1][order]
    now, before = order[1:], order[:-1]
    is_known = (member[1:] == member[:-1]) & np.isfinite(left_us[now] - left_us[before])
    now, before = now[is_known], before[is_known]
    took = left_us[now] - left_us[before]
    waited = np.abs(took - (came_us[now] - came_us[before]))
    group, (ranks, rank) = group[now], distinct(rank[now])
    _, pair = combined(group, number[now], number[before])
    other = np.abs(took - medians_of(took, pair)[pair])
    is_off = other > LEAST_TOLERANCE_US + DRIFT * np.abs(took) + TOLERANCE_SHARE * waited
    is_far = other > quantiles_of(np.abs(took), pair, 0.0)[pair]
    _, member = combined(group, rank)
    _, one = np.unique(member, return_index=True)
    is_near = 2 * np.bincount(member, is_off) <= np.bincount(member)
    is_named = is_off & in_minority(is_near, group[one], rank[one], len(ranks))[rank]
    for step in np.unique(number[now][is_far]):
        here = number[now] == step
        is_named[here] |= in_minority(~is_far[here], group[here], rank[here], len(ranks))[rank[here]]
    return {
        (Step(int(step)), Rank(int(ranks[at])))
        for step, at in zip(number[now][is_named], rank[is_named], strict=True)
    }
