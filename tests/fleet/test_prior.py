"""What the fleet knows of a device counts when a run is judged: less evidence where it is slow as ever."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from cluster_analysis.judge.detection import detect
from cluster_fleet.identity import Known
from cluster_fleet.prior import probably_slow
from cluster_fleet.records import RunRecord, Series
from cluster_fleet.status import status_of
from cluster_fleet.store import Fleet
from tests.analysis.totals import STEP_US, evidence_of_computing, on_hosts

N_HEALTHY, N_PAST, N_STEPS, PER_HOST = 64, 20, 5, 8
#: How much slower the devices are that are slow; they come after the healthy ones.
SLOW = (0.03, 0.035, 0.04, 0.045, 0.05)


@pytest.fixture(scope="module")
def levels() -> np.ndarray:
    """How slow each device is: luck of silicon, and the faults."""
    return np.r_[np.random.default_rng(1).normal(0, 0.003, N_HEALTHY), SLOW]


@pytest.fixture(scope="module")
def p_slow(levels: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, float]:
    """What a fleet of earlier jobs knows of each device, by the way that cluster-analyse asks it."""
    chance = np.random.default_rng(2)
    keys = [f"vdie:{number}" for number in range(len(levels))]
    hosts = [f"host:{number % (N_HEALTHY // PER_HOST)}" for number in range(len(levels))]
    units = [Known(one, one, one) for one in dict.fromkeys(hosts)]
    units += [Known(key, f"device of {key}", key, host) for key, host in zip(keys, hosts, strict=True)]
    with Fleet(tmp_path_factory.mktemp("prior") / "fleet.db") as fleet:
        for number in range(N_PAST):
            values = levels + chance.normal(0, 0.005, len(levels))
            series = [Series("compute", keys, values, np.full(len(levels), np.nan))]
            fleet.add(RunRecord(str(number), "r", 1e9 + number, 1.0, 400.0, "healthy", {}, units, series))
        stories = status_of(fleet, lambda unit: unit.host >= 0).stories
    told = {one.key: probably_slow(one) for one in stories if one.metric == "compute"}
    return {at: p for at, key in enumerate(keys) if (p := told.get(key)) is not None}


def alarms(levels: np.ndarray, devices: list[int], p_slow: Mapping[int, float], seed: int) -> set[int]:
    """Positions of `devices` that a job of them names."""
    chance = np.random.default_rng(seed)
    own = levels[devices][:, None] + chance.normal(0, 0.005, (len(devices), N_STEPS))
    where = on_hosts(len(devices), PER_HOST)
    prior = {rank: p_slow[one] for rank, one in enumerate(devices) if one in p_slow}
    found = detect(evidence_of_computing(0.6 * STEP_US * np.exp(own), where), where, prior=prior)
    return {int(rank) for one in found.findings if one.is_alarm for rank in one.ranks}


@pytest.mark.slow
def test_a_device_known_to_be_slow_is_named_by_one_run_that_would_not_name_it_alone(
    levels: np.ndarray, p_slow: Mapping[int, float]
) -> None:
    healthy = list(range(N_HEALTHY - 1))
    n_alone, n_with, n_cases, n_false = 0, 0, 0, [0, 0]
    for at in range(len(SLOW)):
        for seed in range(2):
            devices = [*healthy, N_HEALTHY + at]
            alone, known = (alarms(levels, devices, one, 10 * at + seed) for one in ({}, p_slow))
            n_cases += 1
            n_alone, n_with = n_alone + (len(healthy) in alone), n_with + (len(healthy) in known)
            n_false = [n_false[0] + len(alone - {len(healthy)}), n_false[1] + len(known - {len(healthy)})]
    assert n_with >= 0.9 * n_cases
    assert n_with >= n_alone + n_cases // 4
    assert n_false[1] <= n_false[0]


@pytest.mark.slow
def test_a_device_known_to_be_healthy_needs_more_evidence_and_an_unknown_one_as_much_as_ever(
    levels: np.ndarray, p_slow: Mapping[int, float]
) -> None:
    healthy = {at: p for at, p in p_slow.items() if at < N_HEALTHY}
    assert len(healthy) > 0.9 * N_HEALTHY
    assert max(healthy.values()) < 0.01
    assert min(p for at, p in p_slow.items() if at >= N_HEALTHY) > 0.5
    turned = levels.copy()
    names = {}
    for name, prior in (("unknown", {}), ("healthy", healthy)):
        names[name] = []
        for share in (0.03, 0.05, 0.07, 0.09, 0.12):
            turned[0] = share
            names[name].append(0 in alarms(turned, list(range(64)), prior, 3))
    assert sum(names["healthy"]) < sum(names["unknown"])
    assert names["healthy"][-1]
