"""A last step that the recording cut: fewer operators, less time, and another end than steps before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cluster_analysis.thresholds.calls import FEWEST_WHOLE_STEPS, OTHER_LENGTH_SHARE, SAME_COUNT_SHARE
from cluster_analysis.thresholds.common import MOSTLY
from cluster_analysis.trace.calls import on_device_us
from cluster_analysis.trace.evidence import StepEvidence


def is_last_cut(parts: Sequence[StepEvidence]) -> bool:
    """Return whether the last step is not whole, though all those before it are alike.

    A step in which ranks merely communicate less would be as long for at least one of them. One that has less
    to do, as it has fewer micro-batches, ends as others do.
    """
    if len(parts) <= FEWEST_WHOLE_STEPS:
        return False
    n_operators = np.array([one.matched.num_rows for one in parts])
    before, last = n_operators[:-1], n_operators[-1]
    if before.max() - before.min() > SAME_COUNT_SHARE * before.max() or not before.min():
        return False
    if last >= (1 - SAME_COUNT_SHARE) * before.min():
        return False
    if _ends_as(parts[-1], parts[-2]):
        return False
    longest = _longest_us(parts[-1].steps)
    return bool(longest < (1 - OTHER_LENGTH_SHARE) * min(_longest_us(one.steps) for one in parts[:-1]))


def _ends_as(last: StepEvidence, before: StepEvidence) -> bool:
    """Return whether most ranks end both steps with the same operator, and have equally many of it."""
    ends, others = _ends(last), _ends(before)
    same = [others.get(rank) == end for rank, end in ends.items()]
    return bool(same) and sum(same) > MOSTLY * len(others)


def _ends(part: StepEvidence) -> dict[int, tuple[str, str, int]]:
    """Return by rank the group and the type of its last operator, and how many of these it has."""
    one = part.operators
    if one is None:
        return {}
    kind = one.operator_group.astype(np.int64) * len(one.types) + one.operator_type
    kind = kind[one.instance_operator]
    found = {}
    for at in np.unique(one.instance_rank).tolist():
        own = kind[one.instance_rank == at]
        group, of_type = divmod(int(own[-1]), len(one.types))
        found[int(one.ranks[at])] = one.groups[group], one.types[of_type], int((own == own[-1]).sum())
    return found


def _longest_us(steps: pa.Table) -> float:
    """Return how long the step took on the rank on which it took longest; infinite where unknown."""
    lengths = on_device_us(steps)
    return float(np.nanmax(lengths)) if np.isfinite(lengths).any() else np.inf
