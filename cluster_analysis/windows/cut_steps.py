"""A last step that the end of the recording cut: fewer operators and less time than in all steps before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cluster_analysis.thresholds.windows import FEWEST_WHOLE_STEPS, OTHER_LENGTH_SHARE, SAME_COUNT_SHARE
from cluster_analysis.trace.calls import on_device_us
from cluster_analysis.trace.evidence import StepEvidence


def is_last_cut(parts: Sequence[StepEvidence]) -> bool:
    """Return whether the last step is not whole, though all those before it are alike.

    A step in which ranks merely communicate less would be as long for at least one of them.
    """
    if len(parts) <= FEWEST_WHOLE_STEPS:
        return False
    n_operators = np.array([one.matched.num_rows for one in parts])
    before, last = n_operators[:-1], n_operators[-1]
    if before.max() - before.min() > SAME_COUNT_SHARE * before.max() or not before.min():
        return False
    if last >= (1 - SAME_COUNT_SHARE) * before.min():
        return False
    longest = _longest_us(parts[-1].steps)
    return bool(longest < (1 - OTHER_LENGTH_SHARE) * min(_longest_us(one.steps) for one in parts[:-1]))


def _longest_us(steps: pa.Table) -> float:
    """Return how long the step took on the rank on which it took longest; infinite where unknown."""
    lengths = on_device_us(steps)
    return float(np.nanmax(lengths)) if np.isfinite(lengths).any() else np.inf
