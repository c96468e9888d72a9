"""What devices idle between steps: no time counts twice, and none is left out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cluster_analysis.numeric.arrays import FloatArray, numbers
from cluster_analysis.tables.schema import STEP_CALLS, STEPS, with_columns
from cluster_analysis.windows.between import between_steps

LEAD_US, TAIL_US = 2_000.0, 3_000.0
IDLE_US = 300.0


def recorded(ahead_us: FloatArray, busy_us: FloatArray) -> tuple[pa.Table, pa.Table]:
    """Steps and first calls of ranks (R, S) whose hosts began each step so long before the device was free.

    A device is `busy_us` in a step, and idle for `IDLE_US` before it. Its first call comes `LEAD_US` later,
    and its last one ends `TAIL_US` before the step does. A host that is ahead by less than nothing ended
    the step before so much later than its device did.
    """
    steps, calls = [], []
    for rank, (own_ahead, own_busy) in enumerate(zip(ahead_us, busy_us, strict=True)):
        now_us = 1e9 + 1e5 * rank  # clocks differ
        for step, (ahead, busy) in enumerate(zip(own_ahead.tolist(), own_busy.tolist(), strict=True)):
            times = {"computing_us": busy - 100.0, "free_us": 100.0, "communication_not_overlapped_us": 0.0}
            row = dict.fromkeys(STEPS.names, 0.0) | times | {"preparing_us": max(ahead, 0.0) + IDLE_US}
            steps.append(row | {"rank": rank, "step": step})
            now_us += IDLE_US + max(-ahead, 0.0)
            began_us = now_us + LEAD_US
            now_us += busy
            times_ns = {"start_ns": round(1000 * began_us), "end_ns": round(1000 * (now_us - TAIL_US))}
            calls.append({"rank": rank, "step": step, "n_calls": 8} | times_ns)
    return pa.Table.from_pylist(steps, STEPS), pa.Table.from_pylist(calls, STEP_CALLS)


def preparing(steps: pa.Table, n_steps: int) -> FloatArray:
    return steps["preparing_us"].to_numpy().reshape(-1, n_steps)


def assert_same(found: pa.Table, expected: pa.Table) -> None:
    """The same times, but for the ns to which starts are rounded."""
    for name in ("free_us", "preparing_us"):
        assert found[name].to_pylist() == pytest.approx(expected[name].to_pylist(), abs=0.01)


@pytest.mark.parametrize("n_ranks", [1, 4])
def test_preparing_is_what_the_device_idled_where_hosts_run_ahead(n_ranks: int) -> None:
    dice = np.random.default_rng(5)
    ahead_us, busy_us = dice.uniform(0, 4e4, (n_ranks, 6)), dice.uniform(5e4, 6e4, (n_ranks, 6))
    told = preparing(between_steps(*recorded(ahead_us, busy_us)), 6)
    assert told == pytest.approx(np.full((n_ranks, 6), IDLE_US), abs=0.01)


def test_a_rank_whose_host_comes_late_keeps_its_idle_time() -> None:
    ahead_us, busy_us = np.full((4, 6), 2e4), np.full((4, 6), 5e4)
    steps, calls = recorded(ahead_us, busy_us)
    for place, name in ((2, "start_ns"), (3, "end_ns")):
        later = calls[name].to_numpy().copy()
        later[21:] += 7_000_000  # the device of rank 3 idles 7 ms more before step 3
        calls = calls.set_column(place, STEP_CALLS.field(name), pa.array(later))
    told = preparing(between_steps(steps, calls), 6)
    assert told[3, 3] == pytest.approx(IDLE_US + 7_000)
    assert told[:3] == pytest.approx(np.full((3, 6), IDLE_US))


def test_preparing_stays_as_recorded_where_hosts_wait_for_their_devices_in_each_step() -> None:
    steps, calls = recorded(np.zeros((4, 6)), np.full((4, 6), 5e4))
    assert_same(between_steps(steps, calls), steps)


def test_preparing_stays_as_recorded_where_nothing_tells_when_steps_began() -> None:
    steps, calls = recorded(np.full((2, 3), 2e4), np.full((2, 3), 5e4))
    assert between_steps(steps, STEP_CALLS.empty_table()) is steps
    every_other = calls.take([0, 2, 3, 5])  # no two steps follow each other
    assert between_steps(steps, every_other) is steps


def test_what_a_host_does_behind_the_last_work_of_a_step_is_idle_time() -> None:
    """Each third step ends with a checkpoint, for which all devices wait; no column holds that."""
    busy_us = np.random.default_rng(3).uniform(4.9e4, 5.1e4, (4, 7))
    behind_us = np.zeros((4, 7))
    behind_us[:, 3::3] = 2e4
    behind_us[2, 3::3] = 6e4
    told = preparing(between_steps(*recorded(-behind_us, busy_us)), 7)
    assert told == pytest.approx(behind_us + IDLE_US, abs=1.0)


def test_longer_work_before_the_first_call_of_a_step_is_no_idle_time() -> None:
    steps, calls = recorded(np.zeros((4, 6)), np.full((4, 6), 5e4))
    start = calls["start_ns"].to_numpy() + np.tile(np.arange(6), 4) * 4_000_000  # as a device that gets hot
    moved = with_columns(calls, start_ns=pa.array(start))
    assert_same(between_steps(steps, moved), steps)


def test_where_hosts_run_ahead_samples_before_the_first_call_are_no_idle_time() -> None:
    """Gradients are summed in the last micro-batch alone: all that comes before it moves the first call."""
    steps, calls = recorded(np.full((4, 6), 2e4), np.full((4, 6), 5e4))
    moved = np.random.default_rng(2).integers(0, 9_000_000, 24)
    start = pa.array(calls["start_ns"].to_numpy() + moved)
    told = preparing(between_steps(steps, calls.set_column(2, STEP_CALLS.field("start_ns"), start)), 6)
    assert told == pytest.approx(np.full((4, 6), IDLE_US), abs=0.01)


@pytest.mark.parametrize("n_steps", [2, 6])
@pytest.mark.parametrize("holder", ["own step", "step before"])
@pytest.mark.parametrize("late", [slice(None), slice(3, 4)], ids=["all ranks", "one rank"])
def test_preparing_that_is_free_time_too_counts_once(holder: str, late: slice, n_steps: int) -> None:
    """MindSpore counts it to the step's own free time, PyTorch to that of the step before."""
    behind_us = np.zeros((4, n_steps))
    behind_us[late] = np.random.default_rng(4).uniform(8e3, 2e4, behind_us[late].shape)
    steps, calls = recorded(-behind_us, np.full((4, n_steps), 5e4))
    idle_us = behind_us + IDLE_US
    idle_us[:, 0] = IDLE_US
    in_free = np.roll(idle_us, -1 if holder == "step before" else 0, axis=1)
    in_free[:, -1 if holder == "step before" else 0] = 0.0
    free_us = pa.array(steps["free_us"].to_numpy() + in_free.ravel())
    given = steps.set_column(STEPS.names.index("free_us"), STEPS.field("free_us"), free_us)
    given = given.set_column(
        STEPS.names.index("preparing_us"), STEPS.field("preparing_us"), pa.array(idle_us.ravel())
    )
    told = between_steps(given, calls)
    assert told["free_us"].to_pylist() == pytest.approx(steps["free_us"].to_pylist(), abs=1.0)
    assert preparing(told, n_steps) == pytest.approx(idle_us, abs=1.0)


def test_a_step_that_a_host_ended_late_shows_its_idle_time_once_where_hosts_run_ahead() -> None:
    """Rank 2 writes a checkpoint behind step 2. PyTorch counts that to the free time of step 2."""
    ahead_us = np.full((4, 6), 2e4)
    ahead_us[2, 3] = -6e4
    steps, calls = recorded(ahead_us, np.full((4, 6), 5e4))
    free_us = steps["free_us"].to_numpy().copy()
    free_us[2 * 6 + 2] += 6e4 + IDLE_US
    given = steps.set_column(STEPS.names.index("free_us"), STEPS.field("free_us"), pa.array(free_us))
    told = between_steps(given, calls)
    idle_us = (told["free_us"].to_numpy() + told["preparing_us"].to_numpy()).reshape(4, 6)
    expected = np.full((4, 6), 100.0 + IDLE_US)
    expected[2, 3] += 6e4
    assert idle_us == pytest.approx(expected, abs=2 * IDLE_US)
    assert idle_us[2].sum() == pytest.approx(expected[2].sum(), abs=IDLE_US)


def idle_in(free_us: FloatArray, behind: bool) -> tuple[pa.Table, pa.Table]:
    """Steps (R, S) whose hosts wait for devices, which idle so long: behind the last call, or before it."""
    steps, calls = recorded(np.zeros(free_us.shape), 5e4 + free_us)
    busy_us = pa.array(numbers(steps["computing_us"]) - free_us.ravel())
    steps = with_columns(steps, computing_us=busy_us, free_us=pa.array(100.0 + free_us.ravel()))
    end_ns = calls["end_ns"].to_numpy() - behind * (1000 * free_us.ravel()).astype(np.int64)
    return steps, with_columns(calls, end_ns=pa.array(end_ns))


PAUSES_US = np.zeros((4, 6))
PAUSES_US[2, 1:5] = 9e3, 0.0, 2e4, 4e3


def test_free_time_behind_the_last_call_of_a_step_is_idle_time_before_the_next_one() -> None:
    steps, calls = idle_in(PAUSES_US, behind=True)
    found = between_steps(steps, calls)
    assert found["free_us"].to_pylist() == pytest.approx([100.0] * 24, abs=0.01)
    assert preparing(found, 6) == pytest.approx(IDLE_US + np.roll(PAUSES_US, 1, axis=1), abs=0.01)


def test_free_time_between_the_calls_of_a_step_stays_there() -> None:
    steps, calls = idle_in(PAUSES_US, behind=False)
    assert_same(between_steps(steps, calls), steps)


def test_work_behind_the_last_call_of_a_step_is_no_idle_time() -> None:
    steps, calls = idle_in(PAUSES_US, behind=True)
    works = with_columns(
        steps,
        computing_us=pa.array(numbers(steps["computing_us"]) + PAUSES_US.ravel()),
        free_us=pa.array(np.full(24, 100.0)),
    )
    assert_same(between_steps(works, calls), works)


def test_a_step_whose_last_record_is_lost_does_not_tell_where_a_pause_lies() -> None:
    steps, calls = idle_in(PAUSES_US, behind=False)
    end_ns = calls["end_ns"].to_numpy().copy()
    end_ns[2 * 6 + 3] -= 15_000_000
    n_calls = np.where(np.arange(24) == 2 * 6 + 3, 7, 8)
    lost = with_columns(calls, end_ns=pa.array(end_ns), n_calls=pa.array(n_calls))
    assert_same(between_steps(steps, lost), steps)


@pytest.mark.parametrize("lacking", [slice(0, 1), slice(1, 4), slice(0, 4)])
def test_ranks_whose_files_have_no_preparing_time_idle_as_long_as_calls_tell(lacking: slice) -> None:
    """Files of an older profiler: without that column a rank would seem never to idle before its step."""
    late_us = np.full((4, 6), 3_000.0)
    late_us[2] = 9_000.0
    steps, calls = recorded(-late_us, np.full((4, 6), 5e4))
    told = preparing(steps, 6).copy()
    told[lacking] = np.nan
    place = STEPS.get_field_index("preparing_us")
    steps = steps.set_column(place, "preparing_us", pa.array(told.ravel(), from_pandas=True))
    found = preparing(between_steps(steps, calls), 6)
    assert found[:, 1:] == pytest.approx((IDLE_US + late_us)[:, 1:], abs=0.01)
    assert np.isfinite(found).all()


def test_where_no_calls_tell_it_a_rank_without_preparing_time_is_as_others() -> None:
    steps, _ = recorded(np.full((4, 1), 2e4), np.full((4, 1), 5e4))
    place = STEPS.get_field_index("preparing_us")
    for told in ([7.0, None, None, None], [7.0, 7.0, None, 7.0]):
        known = between_steps(
            steps.set_column(place, "preparing_us", pa.array(told)), STEP_CALLS.empty_table()
        )
        assert preparing(known, 1).ravel().tolist() == [7.0] * 4
    unknown = steps.set_column(place, "preparing_us", pa.nulls(4, pa.float64()))
    assert between_steps(unknown, STEP_CALLS.empty_table()) is unknown
