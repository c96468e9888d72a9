"""Step totals that were summed up from the records lack what these lack: a lost call passes for idle time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import BoolArray, FloatArray
from cluster_analysis.numeric.stats import median
from cluster_analysis.thresholds.common import HALFWAY
from cluster_analysis.trace.calls import Calls, numbers
from cluster_analysis.trace.missing.durations import Exposed


def with_lost_communication(steps: pa.Table, calls: Calls, exposed: Exposed, is_side: BoolArray) -> pa.Table:
    """Return the totals with calls that were filled in as communication; the same table where they have them.

    Args:
        steps: STEPS rows of one step.
        calls: the step's calls, with those that were filled in.
        exposed: what communication adds up to, by the totals and by these calls.
        is_side: whether a call (V,) runs beside computing: it is not missed there.
    """
    lost_us = _lost_us(calls, exposed, is_side)
    if not lost_us.any():
        return steps
    rank = steps["rank"].to_numpy()
    at = np.minimum(np.searchsorted(calls.ranks, rank), len(calls.ranks) - 1)
    idle_us = numbers(steps["free_us"])
    moved_us = np.fmin(np.where(calls.ranks[at] == rank, lost_us[at], 0.0), np.nan_to_num(idle_us))
    for name, more_us in (("free_us", -moved_us), ("communication_not_overlapped_us", moved_us)):
        column = pa.array(numbers(steps[name]) + more_us, from_pandas=True)
        steps = steps.set_column(steps.schema.get_field_index(name), name, column)
    return steps


def _lost_us(calls: Calls, exposed: Exposed, is_side: BoolArray) -> FloatArray:
    """How long the calls took that were filled in and that each rank's totals lack (ranks,), in µs.

    Then records hold more communication than totals, by half of it or more in all, beyond what they do on
    ranks of the stage that lack nothing, and have not waited.
    """
    filled = (calls.rows < 0) & ~is_side
    lost_us = np.bincount(calls.rank[filled], calls.elapse_us[filled], len(calls.ranks)).astype(np.float64)
    # Only the totals hold the main stream's waiting for a second one.
    short_us, unexplained_us = -exposed.rest_us, exposed.unexplained_us
    for stage in np.unique(exposed.stage):
        inside = exposed.stage == stage
        short_us[inside] += np.nan_to_num(median(unexplained_us[inside & (lost_us == 0)]))
    known = (lost_us > 0) & np.isfinite(short_us)
    is_short = short_us[known].sum() > HALFWAY * lost_us[known].sum()
    return np.where(known & is_short, lost_us, 0.0)
