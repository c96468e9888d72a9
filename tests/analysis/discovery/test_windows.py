"""Windows that the same processes wrote are judged together, as more steps of one job."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cluster_analysis.api import analyse
from cluster_analysis.cli import main
from cluster_analysis.discovery.discover import discover, part_names
from cluster_analysis.sources.together.windows import read_windows
from cluster_analysis.tables.model import Selection
from cluster_run.ids import Step
from cluster_simulate.cli import main as simulate
from tests.analysis.said import notes_of
from tests.analysis.sources.builders import Op, step_csv, write_capture, write_info

N_STEPS = 3
ROW = (400.0, 100.0, 0.0, 100.0, 50.0, 550.0, 0.0, 100.0)


def window(root: Path, hour: int, steps: tuple[str, ...], *, pid: int = 1000, groups: object = None) -> None:
    """A window of two ranks, each of a process of its own."""
    for rank in range(2):
        write_capture(
            root,
            rank,
            f"node1_{pid + rank}_20250101{hour}00000{rank:02d}_ascend_pt",
            ops={f"step{step}": (Op("hcom_allReduce__210_0_1@17148521525495523210"),) for step in steps},
            steps=step_csv(dict.fromkeys(steps, ROW)),
            metadata=groups,
        )


def steps_of(root: Path, part: str | None = None) -> list[set[int]]:
    """The steps of each rank, as they are read."""
    found = []
    for source in discover(root, part).sources:
        assert source.windows
        found.append(set(read_windows(source, Selection()).steps["step"].to_pylist()))
    return found


def test_windows_of_the_same_processes_are_steps_of_one_job(tmp_path: Path) -> None:
    window(tmp_path, 12, ("3", "4"))
    window(tmp_path, 13, ("13", "14"))
    assert part_names(tmp_path) == ("windows",)
    assert steps_of(tmp_path) == [{3, 4, 13, 14}] * 2
    assert "2 windows of the same processes are judged together" in notes_of(discover(tmp_path))[0]
    assert not discover(tmp_path, "2025010112").sources[0].windows, "one alone can be asked for"


def test_numbers_of_steps_that_are_there_twice_count_on(tmp_path: Path) -> None:
    for hour, steps in ((12, ("0", "1")), (13, ("0", "1")), (14, ("1", "2"))):
        window(tmp_path, hour, steps)
    assert steps_of(tmp_path) == [{0, 1, 2, 3, 4, 5}] * 2
    source = discover(tmp_path).sources[0]
    some = read_windows(source, Selection(steps=frozenset({Step(1), Step(2)})))
    for name in ("steps", "collectives"):
        assert set(getattr(some, name)["step"].to_pylist()) == {1, 2}, name


def test_windows_that_are_not_alike_are_judged_each_by_itself(tmp_path: Path) -> None:
    others = {
        "other processes": {"pid": 2000},
        "other groups": {
            "groups": {"parallel_group_info": {"a": {"group_name": "tp", "global_ranks": [0, 1]}}}
        },
        "no steps": {"steps": ("",)},
    }
    for name, other in [*others.items(), ("another level", {})]:
        root = tmp_path / name
        window(root, 12, ("3", "4"), groups={})
        window(root, 13, **{"steps": ("13", "14"), "groups": {}, **other})
        if name == "another level":
            for capture in root.glob("*_2025010113*"):
                write_info(capture, int(capture.name.split("_")[1]) - 1000, level="Level2")
        assert len(part_names(root)) == 2, name
        assert not any(source.windows for source in discover(root).sources), name


def test_roles_that_one_process_plays_by_turns_are_not_mixed(tmp_path: Path) -> None:
    for step, hour in ((10, 12), (20, 14)):
        for role, later in (("actor_update", 0), ("ref_log_prob", 1)):
            window(tmp_path / f"{step}/{role}", hour + later, ("0", "1"))
    assert set(part_names(tmp_path)) == {"actor_update", "ref_log_prob"}
    for role in ("actor_update", "ref_log_prob"):
        (first, _) = discover(tmp_path, role).sources
        assert [Path(one.files["step_trace"]).parents[2].name for _, one in first.windows] == [role] * 2


@pytest.fixture(scope="module")
def two_windows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job of 8 ranks captured twice an hour apart; rank 3 computes slowly in both."""
    root = tmp_path_factory.mktemp("windows")
    for seed, hour in ((1, 12), (2, 13)):
        run = root / f"run-{seed}"
        sizes = ["--tp", "2", "--pp", "1", "--dp", "4", "--steps", str(N_STEPS), "--seed", str(seed)]
        assert simulate(["-q", *sizes, "--scenario", "slow_rank:1.3@3", str(run)]) == 0
        for capture in run.rglob("*_ascend_pt"):
            process, _, stamp = capture.name.removesuffix("_ascend_pt").rpartition("_")
            shutil.move(capture, root / "prof" / f"{process}_{stamp[:8]}{hour}{stamp[10:]}_ascend_pt")
    return root / "prof"


def test_what_both_windows_show_is_one_finding_over_all_their_steps(two_windows: Path) -> None:
    run = analyse(two_windows, scheduler="threads")
    assert len(run.document.run.steps) == 2 * N_STEPS
    (finding,) = (one for one in run.document.findings if one.severity != "info")
    assert (finding.kind, finding.ranks) == ("slow_rank", (3,))
    each = [analyse(two_windows, capture=name, scheduler="threads") for name in ("2025112712", "2025112713")]
    costs = [one.cost_ms_per_step for run in each for one in run.document.findings if one.severity != "info"]
    assert finding.cost_ms_per_step == pytest.approx(sum(costs) / 2, rel=0.05)


def test_all_parts_and_files_for_insight_work_with_windows_together(
    two_windows: Path, tmp_path: Path
) -> None:
    output = ["--output", str(tmp_path / "out"), "-q", "--scheduler", "threads"]
    assert main([str(two_windows), *output, "--all-parts", "--insight", "--fail-on", "never"]) == 0
    rows = (tmp_path / "out/cluster_step_trace_time.csv").read_text().splitlines()[1:]
    assert {row.split(",")[0] for row in rows} == {str(step) for step in range(10, 10 + 2 * N_STEPS)}
    for name in ("cluster_communication.json", "cluster_communication_matrix.json"):
        assert json.loads((tmp_path / "out" / name).read_text()), name
