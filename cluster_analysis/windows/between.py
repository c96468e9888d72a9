"""What a device idles between two steps: no time counts twice, and none is left out.

Preparing is counted from where the host begins a step to the first work of the device. Where nothing makes
the host wait for the device in each step, the device still works on the step before for part of that time.
Counted twice, it would make steps too long. And what a host does behind the last work of the device, before
it ends the step (it writes a checkpoint), is in no column. Texts of profilers may hold the idle time as free
time, too. Free time behind the last call of a step holds up the next one: there it is counted.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray, numbers
from cluster_analysis.numeric.stats import median, medians_by
from cluster_analysis.tables.schema import rows_of, with_columns
from cluster_analysis.thresholds.common import HALFWAY, MOSTLY, TOLERANCE_SHARE
from cluster_analysis.trace.calls import on_device_us


def between_steps(steps: pa.Table, calls: pa.Table) -> pa.Table:
    """Return STEPS whose preparing time is what the device was idle since the step before.

    From the end of one step's last call to that of the next, a device is at the next step or idles before it.
    From first call to first call it is at the one before, or idles behind it. Of the first step, and of one
    whose predecessor was not recorded, preparing counts no longer than usual in the rank's other steps: what
    happened once would show twice.

    Where neither a file nor calls tell it, a rank is as others of the same step: old profilers have no such
    column, and a rank whose file has one would seem to idle more.

    Args:
        steps: STEPS of all ranks.
        calls: STEP_CALLS of all ranks.
    """
    return _as_others(_by_calls(steps, calls)) if steps.num_rows else steps


def _as_others(steps: pa.Table) -> pa.Table:
    """Return STEPS with the median of the others' preparing time where a rank's own is not known."""
    told = numbers(steps["preparing_us"])
    is_told = np.isfinite(told)
    if is_told.all() or not is_told.any():
        return steps
    _, at = np.unique(steps["step"].to_numpy(), return_inverse=True)
    return with_columns(
        steps, preparing_us=pa.array(np.where(is_told, told, medians_by(told, at)[at]), from_pandas=True)
    )


def _by_calls(steps: pa.Table, calls: pa.Table) -> pa.Table:
    """Return STEPS with the preparing time that the first and last calls of steps tell."""
    told, span = numbers(steps["preparing_us"]), on_device_us(steps)
    preparing = np.nan_to_num(told)
    room, left = _room_us(steps, calls)
    known = np.isfinite(room) & np.isfinite(left)
    if not known.any():
        return steps
    ids, at = np.unique(steps["rank"].to_numpy(), return_inverse=True)
    shown = np.unique(at[known])

    def by_rank(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(at[known], values[known], len(ids)), np.float64)[shown]

    least_us = TOLERANCE_SHARE * float(median(by_rank(span)))
    # A step that begins or ends with longer work moves one of the two, never both.
    missing_us = np.minimum(by_rank(room - preparing), by_rank(left - preparing))
    # Behind the last step no idle time is known: of two steps, first calls alone show what counts twice.
    twice_us, by_first_us = by_rank(preparing - left), by_rank(preparing - room)
    may_be_twice = max(twice_us.max(), by_first_us.max()) > least_us
    counted = _in_free_time(steps, preparing, room, left, known) if may_be_twice else None
    if counted is not None:
        steps = _less_free(steps, counted)
        room, left = _room_us(steps, calls)
    elif median(twice_us) > least_us or missing_us.max() > least_us:
        return _as_calls_tell(steps, left, known, at)
    return _with_idle_behind(steps, room - preparing, left - preparing, _lacking(steps, calls))


def _as_calls_tell(steps: pa.Table, left: FloatArray, known: BoolArray, at: IntArray) -> pa.Table:
    """Return STEPS that last from last call to last call; `at` (N,) tells ranks apart."""
    told, shown = numbers(steps["preparing_us"]), np.unique(at[known])
    inside = np.maximum(left, 0.0)  # samples move the first call of a step more often than its end
    usual = np.full(int(at.max()) + 1, np.inf)
    usual[shown] = medians_by(inside[known], at[known])
    usual[~np.isfinite(usual)] = np.nan
    inside = np.where(known, inside, np.fmin(told, usual[at]))
    # What its totals last longer than a step did is idle time behind it: the next step's preparing.
    behind = np.where(known, np.clip(-left, 0.0, np.maximum(numbers(steps["free_us"]), 0.0)), 0.0)
    steps = _less_free(steps, behind)
    return with_columns(steps, preparing_us=pa.array(inside, from_pandas=True))


def _with_idle_behind(
    steps: pa.Table, by_first: FloatArray, by_last: FloatArray, is_lacking: BoolArray
) -> pa.Table:
    """Return STEPS in which idle time behind the last call of a step is preparing time of the next one.

    A step that has more of it than others of its rank ends so much earlier, by its last call alone, and the
    next one so much later. If that explains most of what its free time is longer, there that lies.

    Args:
        by_first: how much later than its totals say each step came, by first calls; NaN if unknown.
        by_last: the same by last calls.
        is_lacking: steps whose last call may be one of those that are not recorded.
    """
    first, last = np.nan_to_num(by_first), np.nan_to_num(by_last)
    both = np.where(first * last > 0, np.clip(last, -abs(first), abs(first)), 0.0)
    ids, rank = np.unique(steps["rank"].to_numpy(), return_inverse=True)
    numbered, step = np.unique(steps["step"].to_numpy(), return_inverse=True)
    behind = np.zeros((len(ids), len(numbered)))
    free = np.full_like(behind, np.inf)
    behind[rank, step] = both - last
    free[rank, step] = np.nan_to_num(numbers(steps["free_us"]), nan=np.inf)
    behind, is_known = behind.cumsum(axis=1), np.ones(behind.shape, bool)
    is_known[rank[is_lacking], step[is_lacking]] = False
    behind -= np.where(is_known, behind, np.inf).min(axis=1, keepdims=True)
    free -= free.min(axis=1, keepdims=True)
    moved = np.where(behind >= HALFWAY * free, np.minimum(behind, free), 0.0)[rank, step]
    moved[is_lacking] = 0.0
    place = {key: row for row, key in enumerate(rows_of(steps, "rank", "step"))}
    before = [place.get((one, number - 1), -1) for one, number in place]
    told = numbers(steps["preparing_us"]) + np.r_[moved, 0.0][before]
    return with_columns(_less_free(steps, moved), preparing_us=pa.array(told, from_pandas=True))


def _lacking(steps: pa.Table, calls: pa.Table) -> BoolArray:
    """Return which rows of STEPS lack calls that the rank has in other steps, and another rank does not.

    The last step may have been cut while it ran: there all ranks may lack them.
    """
    called = dict(zip(rows_of(calls, "rank", "step"), calls["n_calls"].to_pylist(), strict=True))
    most, common = dict[int, int](), dict[int, int]()
    for (rank, _), n_calls in called.items():
        most[rank] = max(n_calls, most.get(rank, 0))
    for (rank, step), n_calls in called.items():
        common[step] = min(most[rank] - n_calls, common.get(step, most[rank]))
    common[max(common, default=0)] = 0
    found = (
        called.get(key, 0) + common.get(key[1], 0) < most.get(key[0], 0)
        for key in rows_of(steps, "rank", "step")
    )
    return np.fromiter(found, bool)


def _less_free(steps: pa.Table, counted: FloatArray) -> pa.Table:
    """Return STEPS without that much of each row's free time."""
    left_us = pa.array(numbers(steps["free_us"]) - counted, from_pandas=True)
    return with_columns(steps, free_us=left_us)


def _in_free_time(
    steps: pa.Table, preparing: FloatArray, room: FloatArray, left: FloatArray, known: BoolArray
) -> FloatArray | None:
    """Return which part of each free time is preparing, too; None where the device worked meanwhile.

    MindSpore cuts free time where the host begins a step: it holds preparing of its own step. PyTorch counts
    it to the step in which it begins: that of the next step, where hosts wait for their devices.
    """
    free, keys = numbers(steps["free_us"]), list(rows_of(steps, "rank", "step"))
    place = {key: row for row, key in enumerate(keys)}
    now = np.flatnonzero(known)
    before = np.array([place[rank, step - 1] for rank, step in (keys[row] for row in now)], int)

    def miss_us(counted: FloatArray) -> float:
        by_first, by_last = room[now] + counted[before], left[now] + counted[now]
        return float(np.mean(np.abs(by_first - preparing[now]) + np.abs(by_last - preparing[now])))

    least_us, best = HALFWAY * miss_us(np.zeros(len(keys))), None
    for holder in (now, before):
        counted = np.zeros(len(keys))
        counted[holder] = preparing[now]
        if miss_us(counted) < least_us and np.mean(free[holder] >= preparing[now] - 1.0) >= MOSTLY:
            least_us, best = miss_us(counted), np.minimum(counted, np.maximum(free, 0.0))
    return best


def _room_us(steps: pa.Table, calls: pa.Table) -> tuple[FloatArray, FloatArray]:
    """Return how long each device was idle before its step, by first and by last calls; NaN if unknown."""
    times = rows_of(calls, "start_ns", "end_ns")
    called = dict(zip(rows_of(calls, "rank", "step"), times, strict=True))
    keys = list(rows_of(steps, "rank", "step"))
    span = dict(zip(keys, on_device_us(steps).tolist(), strict=True))
    room = np.full((2, len(keys)), np.nan)
    for row, (rank, step) in enumerate(keys):
        now, before = called.get((rank, step)), called.get((rank, step - 1))
        if now is None or before is None:
            continue
        for end, behind in ((0, step - 1), (1, step)):
            if now[end] is not None and before[end] is not None:
                room[end, row] = (now[end] - before[end]) / 1000 - span.get((rank, behind), np.nan)
    return room[0], room[1]
