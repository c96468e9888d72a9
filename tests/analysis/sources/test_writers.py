"""What the sources of the profilers can write, held against the capture as it was."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster_analysis.api import Run, analyse
from tests.analysis.runs import captures, simulated

FOUR_RANKS = {"tp": 2, "pp": 1, "dp": 2, "steps": 3, "microbatches": 2}
COMMUNICATION = "communication.json"
START = re.compile(r'(?<="Start Timestamp\(us\)": )[0-9.]+')


def said_of(run: Path) -> Run:
    return analyse(run, scheduler="threads")


def call_operators(run: Path, change: Callable[[str], str]) -> None:
    for path in run.rglob(COMMUNICATION):
        document = json.loads(path.read_text())
        for levels in document.values():
            for name, operators in levels.items():
                levels[name] = {change(key): one for key, one in operators.items()}
        path.write_text(json.dumps(document))


@pytest.mark.parametrize("group", ["", "@", "@N/A"])
def test_operators_that_name_no_group_are_matched_over_no_ranks_and_told(tmp_path: Path, group: str) -> None:
    run = simulated(tmp_path / "run", **FOUR_RANKS)
    call_operators(run, lambda key: re.sub("@.*", group, key))
    result = said_of(run)
    assert result.verdict == "unknown"
    (note,) = (one for one in result.document.notes if one.kind == "no_groups_named")
    assert dict(note.values) == {"ranks": (0, 1, 2, 3)}
    assert set(result.collectives["n_ranks"]) == {1}


def test_links_that_stand_under_an_operator_are_of_no_group(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", **FOUR_RANKS)
    call_operators(run, lambda key: key.partition("@")[0])
    for path in run.rglob("communication_matrix.json"):
        path.write_text(re.sub(r'@([0-9]+)"', r'@hcom_allReduce__\1_0_1"', path.read_text()))
    result = said_of(run)
    assert result.document.problems == ()
    assert "no_communication_matrix" in {one.kind for one in result.document.notes}


def test_what_passed_between_two_windows_is_no_part_of_a_step(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", **FOUR_RANKS)
    alone = said_of(run)
    for capture in captures(run):
        again = capture.with_name(
            re.sub(r"_(\d{17})_", lambda stamp: f"_{int(stamp[1]) + 60_000}_", capture.name)
        )
        shutil.copytree(capture, again)
        path = again / "ASCEND_PROFILER_OUTPUT" / COMMUNICATION
        path.write_text(START.sub(lambda start: f"{float(start[0]) + 6e7:.3f}", path.read_text()))
    both = said_of(run)
    assert len(both.document.run.steps) == 2 * len(alone.document.run.steps)
    assert both.document.run.step_ms == pytest.approx(alone.document.run.step_ms, rel=0.01)
    assert both.verdict == alone.verdict


def test_a_step_may_have_a_number_of_more_than_32_bits(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", **FOUR_RANKS)
    before = said_of(run)
    added = 1 << 32
    for path in run.rglob("communication*.json"):
        path.write_text(
            re.sub(r'"step(\d+)"', lambda step: f'"step{int(step[1]) + added}"', path.read_text())
        )
    for path in run.rglob("step_trace_time.csv"):
        rows = [line.split(",") for line in path.read_text().splitlines()]
        at = rows[0].index("Step")
        for row in rows[1:]:
            row[at] = str(int(row[at]) + added)
        path.write_text("".join(",".join(row) + "\n" for row in rows))
    after = said_of(run)
    assert after.document.run.steps == tuple(step + added for step in before.document.run.steps)
    assert (after.verdict, after.document.run.step_ms) == (before.verdict, before.document.run.step_ms)
