"""Captures changed alike in all ranks, or on a whole host: options of the profiler, not damage to a file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cluster_analysis.cli import main as analyse
from cluster_simulate.api import JobSpec, parse_scenario, simulate, write_run

SPEC = JobSpec(tp=2, pp=1, dp=4, microbatches=2, steps=4, segments=1, ranks_per_host=2)
STEP_TIMES = "step_trace_time.csv"


def _written(run: Path, *scenarios: str) -> Path:
    write_run(simulate(SPEC, tuple(map(parse_scenario, scenarios)), 1), run, "text", "pt")
    (run / "manifest.json").unlink()
    return run


def _judged(run: Path) -> dict[str, Any]:
    out = run.with_name("out")
    assert analyse([str(run), "--output", str(out), "--no-report", "--quiet", "--scheduler", "threads"]) in {
        0,
        3,
    }
    found: dict[str, Any] = json.loads((out / "findings.json").read_text())
    return found


@pytest.mark.parametrize(
    ("scenario", "host", "name"),
    [
        ("slow_host:1.1@2", "2", "slow_host-2"),
        ("slow_rank:1.3@5", "3", "slow_rank-5"),
    ],
)
def test_who_is_slow_is_named_where_the_communication_of_its_host_was_not_recorded(
    tmp_path: Path, scenario: str, host: str, name: str
) -> None:
    run = _written(tmp_path / "run", scenario)
    for path in (run / "cluster_profiler" / host).rglob("communication*.json"):
        path.unlink()
    found = _judged(run)
    alarms = {one["id"]: one for one in found["findings"] if one["severity"] != "info"}
    assert found["verdict"] == "degraded"
    assert list(alarms) == [name]
    # The replay does not hold its calls: the cost is a bound.
    assert alarms[name]["cost_ms_per_step"] is None
    assert alarms[name]["cost_high_ms"] > 10


def _moved(path: Path, before: str, by: int) -> None:
    """Number the steps of a file anew: each number behind what `before` matches."""
    whole = re.compile(rf"({before})(\d+)", re.MULTILINE)
    path.write_text(whole.sub(lambda found: f"{found[1]}{int(found[2]) + by}", path.read_text()))


def test_a_job_whose_hosts_number_their_steps_apart_is_not_healthy(tmp_path: Path) -> None:
    run = _written(tmp_path / "run", "slow_host:1.06@2")
    for host in (run / "cluster_profiler").iterdir():
        for path in host.rglob("communication*.json"):
            _moved(path, '"step', 100 * int(host.name))
        for path in host.rglob(STEP_TIMES):
            _moved(path, r"^\d+,", 100 * int(host.name))
    found = _judged(run)
    assert found["verdict"] == "unknown"
    assert any("no step was recorded by all ranks" in note for note in found["notes"])


def test_waiting_for_a_rank_that_numbers_its_steps_otherwise_is_no_lost_packet(tmp_path: Path) -> None:
    run = _written(tmp_path / "run")
    capture = next(run.rglob("profiler_info_5.json")).parent / "ASCEND_PROFILER_OUTPUT"
    for path in capture.glob("communication*.json"):
        _moved(path, '"step', 1)
    _moved(capture / STEP_TIMES, r"^\d+,", 1)
    found = _judged(run)
    assert not [one for one in found["findings"] if one["severity"] != "info"]
    assert found["verdict"] == "unknown"
    assert any("rank 5 left collectives at other times" in note for note in found["notes"])


def test_ranks_that_were_profiled_at_level_0_are_named_together(tmp_path: Path) -> None:
    run = _written(tmp_path / "run")
    for rank in (1, 3, 4):
        info = next(run.rglob(f"profiler_info_{rank}.json"))
        info.write_text(info.read_text().replace("Level1", "Level0"))
        for path in info.parent.rglob("communication*.json"):
            path.unlink()
    (note,) = (one for one in _judged(run)["notes"] if "Level0" in one)
    assert note.startswith("ranks 1,3-4 were profiled at Level0")
