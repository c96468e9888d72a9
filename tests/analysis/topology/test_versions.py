"""Starts of operators are compared between ranks only where one version recorded all of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster_analysis.api import Run, analyse
from cluster_analysis.numeric.arrays import BoolArray
from cluster_analysis.tables.model import RankMetadata
from cluster_analysis.topology.build import unlike_versions
from cluster_analysis.trace.pairing import ends
from cluster_analysis.trace.pairing.coincidences import Sample, Votes
from cluster_run.ids import Rank
from tests.analysis.runs import simulated

LATER_US = 400.0


def recorded_by_another_version(run: Path) -> None:
    """Let half of the ranks be of another version, whose operators start later and end when they did."""
    for path in run.rglob("profiler_info_*.json"):
        document = json.loads(path.read_text())
        is_other = int(path.stem.rpartition("_")[2]) % 2
        document["cann_version"] = "9.1.0" if is_other else "8.3.RC1"
        path.write_text(json.dumps(document))
        communication = path.parent / "ASCEND_PROFILER_OUTPUT/communication.json"
        if is_other and communication.exists():
            steps = json.loads(communication.read_text())
            levels = [level for step in steps.values() for level in step.values()]
            for times in [one["Communication Time Info"] for level in levels for one in level.values()]:
                if "Start Timestamp(us)" in times:  # sums have none
                    times["Start Timestamp(us)"] += LATER_US
                    times["Elapse Time(ms)"] = max(0.0, times["Elapse Time(ms)"] - LATER_US / 1e3)
            communication.write_text(json.dumps(steps))


def told(run: Run) -> tuple[list[tuple[str, tuple[int, ...]]], set[str]]:
    findings = [(one.kind, one.ranks) for one in run.document.findings if one.severity != "info"]
    return findings, {one.kind for one in run.document.notes}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "db"])
def test_a_job_of_two_versions_keeps_its_finding_and_says_that_starts_are_not_compared(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    made = ends.votes_of

    def noting(sample: Sample, allowed: BoolArray) -> Votes:
        seen.append(sample.starts_agree)
        return made(sample, allowed)

    monkeypatch.setattr(ends, "votes_of", noting)
    run = simulated(tmp_path / "run", "slow_rank:1.3@3", form=form, tp=2, pp=2, dp=2, steps=3)
    findings, notes = told(analyse(run, scheduler="threads"))
    assert (findings, "unlike_versions" in notes) == ([("slow_rank", (3,))], False)
    recorded_by_another_version(run)
    findings, notes = told(analyse(run, scheduler="threads"))
    assert (findings, "unlike_versions" in notes) == ([("slow_rank", (3,))], True)
    assert (seen[0], seen[-1]) == (True, False)


def test_ranks_that_name_no_version_forbid_nothing() -> None:
    metadata = {Rank(0): RankMetadata(versions={"cann_version": "9.1.0"}), Rank(1): RankMetadata()}
    assert unlike_versions(metadata) == ()
    metadata[Rank(1)] = RankMetadata(versions={"cann_version": "8.3.RC1"})
    (note,) = unlike_versions(metadata)
    assert dict(note.values) == {"versions": ("8.3.RC1", "9.1.0")}
