"""500 jobs on 400 hosts at random, by a generator that shares nothing with the judging."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_fleet.judging.evidence import courses, variances
from cluster_fleet.judging.judge import EFFECTS, judge
from tests.fleet.simulated import MONTH_DAYS, SimulatedFleet, samples_of, simulate

#: Units are looked at after so many jobs, and at the end.
EVERY = 50


def first_named(fleet: SimulatedFleet, metric: str) -> dict[int, int]:
    """After which job each device was named at first, by the jobs until then alone."""
    effect, names = EFFECTS[metric], {}
    for end in [*range(EVERY, len(fleet.days), EVERY), len(fleet.days)]:
        samples = samples_of(fleet.values[:end], fleet.errors[:end])
        course = courses(samples, variances(samples), effect, 0)
        for unit in np.flatnonzero((course.onset >= 0) | course.intermittent).tolist():
            names.setdefault(unit, end - 1)
    return names


def own_jobs(fleet: SimulatedFleet, unit: int) -> np.ndarray:
    """Jobs of a device from the onset of its fault on, in which it was slow."""
    there = np.isfinite(fleet.values[:, unit]) & (fleet.days >= fleet.begin_day[unit])
    usual = np.nanmin(fleet.truth[:, unit])
    return np.flatnonzero(there & (fleet.truth[:, unit] > usual + 0.02))


@pytest.mark.slow
@pytest.mark.parametrize(("metric", "scale"), [("compute", 1.0), ("link", 8.0)])
def test_nine_of_ten_slow_devices_are_named_within_ten_jobs_and_hardly_anyone_else(
    metric: str, scale: float
) -> None:
    fleet = simulate(11, scale=scale)
    names = first_named(fleet, metric)
    jobs_of = {unit: own_jobs(fleet, unit) for unit, kind in fleet.faults.items() if kind != "intermittent"}
    due = {unit: jobs for unit, jobs in jobs_of.items() if len(jobs) >= 10}
    assert len(due) > 20
    # Looked at after every 50th job of the fleet only: the next look counts.
    found = [names.get(unit, len(fleet.days)) <= jobs[9] + EVERY for unit, jobs in due.items()]
    assert np.mean(found) >= 0.9
    host_months = len(set(fleet.host.tolist())) * np.ptp(fleet.days) / MONTH_DAYS
    assert sum(unit not in fleet.faults for unit in names) <= host_months / 1000


@pytest.mark.slow
def test_intervals_hold_the_truth_in_95_of_100_devices() -> None:
    fleet = simulate(21)
    judged, *_ = judge(samples_of(fleet.values, fleet.errors), EFFECTS["compute"], fleet.host)
    inside = []
    # Runs show how much slower a device is than its peers, not than an ideal one.
    peers = np.median(fleet.truth[0])
    for unit in range(fleet.values.shape[1]):
        jobs = np.flatnonzero(np.isfinite(fleet.values[:, unit]))
        if len(jobs) and fleet.faults.get(unit) != "intermittent":
            truth = fleet.truth[jobs[-1], unit] - peers
            inside.append(judged.low[unit] <= truth <= judged.high[unit])
    assert 0.94 <= np.mean(inside) <= 0.96


@pytest.mark.slow
def test_what_a_device_is_follows_what_it_was() -> None:
    fleet = simulate(31)
    judged, *_ = judge(samples_of(fleet.values, fleet.errors), EFFECTS["compute"], fleet.host)
    seen = {unit: judged.state(unit) for unit in fleet.faults if len(own_jobs(fleet, unit)) >= 10}
    expected = {"born": "slow", "turned": "slow", "intermittent": "intermittent", "repaired": "repaired"}
    right = [seen[unit] == expected[fleet.faults[unit]] for unit in seen]
    assert np.mean(right) >= 0.9
    for unit, state in seen.items():
        if state == expected[fleet.faults[unit]] == "slow":
            there = np.isfinite(fleet.values[:, unit])
            n_before = int((there & (fleet.days < fleet.begin_day[unit])).sum())
            if n_before != 1:  # of one job nobody can tell
                assert judged.is_born_slow(unit) == (n_before == 0)
            onset = fleet.days[judged.course.onset[unit]]
            # The first job in which it was slow, or one of the next.
            jobs = own_jobs(fleet, unit)
            assert fleet.days[jobs[0]] - 15 <= onset <= fleet.days[jobs[4]]


def test_a_slow_host_is_named_and_its_devices_are_not() -> None:
    fleet = simulate(41, n_jobs=200, n_hosts=60, faulty=False)
    own = fleet.host == 7
    fleet.values[:, own] += 0.06
    devices, hosts, which = judge(samples_of(fleet.values, fleet.errors), EFFECTS["compute"], fleet.host)
    assert which[hosts.named].tolist() == [7]
    assert not set(devices.named.tolist()) & set(np.flatnonzero(own).tolist())
    assert hosts.level[hosts.named[0]] == pytest.approx(0.06, abs=0.01)


def test_one_run_names_nobody_however_slow_a_device_was_in_it() -> None:
    values = np.random.default_rng(1).normal(0, 0.005, (30, 200))
    values[-1, 3] = 2.0
    judged, *_ = judge(samples_of(values), EFFECTS["compute"])
    assert len(judged.named) == 0


def test_the_same_runs_in_other_columns_give_the_same_answer() -> None:
    fleet = simulate(51, n_jobs=120, n_hosts=40)
    order = np.random.default_rng(2).permutation(fleet.values.shape[1])
    one, *_ = judge(samples_of(fleet.values, fleet.errors), EFFECTS["compute"])
    other, *_ = judge(samples_of(fleet.values[:, order], fleet.errors[:, order]), EFFECTS["compute"])
    np.testing.assert_allclose(one.level[order], other.level, rtol=1e-9)
    np.testing.assert_array_equal(one.course.onset[order], other.course.onset)


def test_units_that_are_in_no_run_and_empty_fleets_are_unknown() -> None:
    values = np.full((3, 2), np.nan)
    values[:, 0] = 0.0
    judged, *_ = judge(samples_of(values), EFFECTS["compute"])
    assert [judged.state(0), judged.state(1)] == ["healthy", "unknown"]
    empty, *_ = judge(samples_of(np.empty((0, 0))), EFFECTS["compute"])
    assert len(empty.named) == 0


@pytest.mark.parametrize("share", [0.3, 0.5, 0.6])
def test_a_device_that_is_slow_in_a_part_of_its_jobs_is_named(share: float) -> None:
    chance = np.random.default_rng(2)
    values = chance.normal(0, 0.006, (120, 200))
    values[:, :20] += np.where(chance.random((120, 20)) < share, 0.09, 0)
    judged, _, _ = judge(samples_of(values), EFFECTS["compute"])
    assert set(judged.named.tolist()) >= set(range(19))
    assert set(judged.named.tolist()) <= set(range(20))


def test_a_device_that_was_slow_twice_is_repaired_in_the_end() -> None:
    values = np.random.default_rng(1).normal(0, 0.006, (130, 200))
    for begin in (20, 70):
        values[begin : begin + 30, 0] += 0.08
    judged, _, _ = judge(samples_of(values), EFFECTS["compute"])
    assert (judged.state(0), judged.named.tolist()) == ("repaired", [])
