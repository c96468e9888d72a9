"""Hosts whose steps and numbers agree and whose collectives do not are named, with how far they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_collect.live.collectives import elsewhere
from cluster_run.ids import HostId, ServerId
from cluster_run.manifest import HostOutcome
from cluster_simulate.api import Healthy, JobSpec, simulate, write_run
from tests.collect.live.hosts import Cluster
from tests.collect.live.test_file import LIVE, captured

STEP_S = 0.3
SPEC = {"tp": 2, "pp": 1, "dp": 6, "ranks_per_host": 4, "forward_ms": 20.0}


@pytest.fixture(scope="module", name="run")
def _run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("simulated") / "run"
    spec = JobSpec(**SPEC, steps=3, healthy=Healthy(clock_sigma_ms=0.0))  # type: ignore[arg-type]
    write_run(simulate(spec, [], seed=1), run, form="text", framework="pt")
    return run


def move(run: Path, rank: int, late_s: float) -> None:
    """Have the times of a rank's collectives be later."""
    (info,) = run.rglob(f"profiler_info_{rank}.json")
    path = info.parent / "ASCEND_PROFILER_OUTPUT" / "communication.json"
    text = re.sub(
        r'("Start Timestamp\(us\)": )([\d.]+)',
        lambda found: f"{found[1]}{float(found[2]) + late_s * 1e6!r}",
        path.read_text(),
    )
    path.write_text(text)


def hosts(offsets_s: Mapping[str, float] = {}) -> list[HostOutcome]:
    return [
        HostOutcome(
            HostId(host),
            ServerId(host),
            "complete",
            clock_offset_ms=1000 * offsets_s.get(host, 0.0),
            clock_uncertainty_ms=5.0,
        )
        for host in ("1", "2", "3")
    ]


def test_a_host_whose_collectives_are_later_than_its_clock_is_of_another_iteration(run: Path) -> None:
    assert elsewhere(run, hosts(), STEP_S) == ({}, ())
    for rank in range(4, 8):
        move(run, rank, 2 * STEP_S)
    lost, notes = elsewhere(run, hosts(), STEP_S)
    assert notes == ()
    assert {host: why.word for host, why in lost.items()} == {"2": "other_iterations"}
    assert "0.60 s after" in lost[HostId("2")].reason
    assert "2 steps" in lost[HostId("2")].reason
    # A clock that is ahead by as much explains it.
    assert elsewhere(run, hosts({"2": 2 * STEP_S}), STEP_S) == ({}, ())
    for rank in range(4, 8):
        move(run, rank, -2 * STEP_S)


def test_where_there_are_no_collectives_it_is_said_that_nothing_could_be_told(tmp_path: Path) -> None:
    lost, (note,) = elsewhere(tmp_path, hosts(), STEP_S)
    assert lost == {}
    assert "no collectives" in note


@pytest.mark.slow
@pytest.mark.timeout(400)  # steps of a job that runs, on a machine that may have much else to do
def test_a_host_that_began_late_and_names_its_steps_as_asked_is_lost_and_not_compared(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.add(3)
    late = {1: {"LATE_STEPS": "3"}}
    cluster.job(environment=cluster.leaves(dp=3, ranks_per_host=2), of_hosts=late).start()
    result = captured(cluster, tmp_path / "run", replace(LIVE, quorum=2))
    assert {host: why.word for host, why in result.captured.lost.items()} == {"2": "other_iterations"}
    assert result.ranks == "0-1,4-5"
    assert [str(host) for host in result.captured.hosts] == ["1", "3"]
