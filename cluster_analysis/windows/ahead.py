"""Hosts that run ahead: they begin a step while the device is still at the one before.

Preparing is counted from where the host begins a step to the first work of the device. Where nothing makes
the host wait for the device in each step, the device still works on the step before for part of that time.
Counted twice, it would make steps too long.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.numeric.columns import numbers
from cluster_analysis.numeric.stats import median
from cluster_analysis.thresholds.common import TOLERANCE_SHARE
from cluster_analysis.trace.calls import on_device_us


def without_ahead(steps: pa.Table, firsts: pa.Table) -> pa.Table:
    """Return STEPS whose preparing time is no more than the device was idle since the step before.

    From first call to first call a step takes as long as its device was busy or idle between operators, and
    the preparing time of the next one. Of the first step, and of one whose predecessor was not recorded,
    preparing counts no longer than that of the rank's other steps.

    Args:
        steps: STEPS of all ranks.
        firsts: FIRST_CALLS of all ranks.
    """
    if not steps.num_rows or not firsts.num_rows:
        return steps
    place = steps.schema.get_field_index("preparing_us")
    preparing, span, room = numbers(steps["preparing_us"]), on_device_us(steps), _room_us(steps, firsts)
    known = np.isfinite(room) & np.isfinite(preparing)
    if not known.any():
        return steps
    ids, at = np.unique(steps["rank"].to_numpy(), return_inverse=True)
    shown = np.unique(at[known])

    def typical_us(values: FloatArray) -> float:
        by_rank = np.asarray(np.bincount(at[known], values[known], len(ids)), np.float64)
        return float(median(by_rank[shown]))

    if typical_us(preparing - room) <= TOLERANCE_SHARE * typical_us(span):
        return steps
    inside = np.clip(room, 0.0, preparing)
    most = np.full(len(ids), np.inf)
    most[shown] = -np.inf
    np.maximum.at(most, at[known], inside[known])
    inside = np.where(known, inside, np.minimum(preparing, most[at]))
    return steps.set_column(place, steps.schema.field(place), pa.array(inside, from_pandas=True))


def _room_us(steps: pa.Table, firsts: pa.Table) -> FloatArray:
    """Return how long each row's device was idle before its step; NaN where unknown."""
    began = dict(zip(_keys(firsts), firsts["start_ns"].to_pylist(), strict=True))
    keys = _keys(steps)
    span = dict(zip(keys, on_device_us(steps).tolist(), strict=True))
    room = np.full(len(keys), np.nan)
    for row, (rank, step) in enumerate(keys):
        now, before = began.get((rank, step)), began.get((rank, step - 1))
        if now is not None and before is not None:
            room[row] = (now - before) / 1000 - span.get((rank, step - 1), np.nan)
    return room


def _keys(table: pa.Table) -> list[tuple[int, int]]:
    return list(zip(table["rank"].to_pylist(), table["step"].to_pylist(), strict=True))
