"""What lies where captures should is told by its name, with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_analysis.discovery.discover import discover
from cluster_run.errors import InputError
from tests.analysis.runs import captures, write_small_run
from tests.analysis.said import reason


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("cluster_analysis.db", "what msprof-analyze made"),
        ("cluster_step_trace_time.csv", "what msprof-analyze made"),
        ("report1.nsys-rep", "NVIDIA Nsight"),
        ("host.123.pt.trace.json.gz", "PyTorch's own profiler"),
        ("node1_12_20250101000000_ascend_pt.tar.gz", "archive"),
    ],
)
def test_a_folder_with_another_tools_files_says_whose_they_are(name: str, what: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(InputError, match=what):
        discover(tmp_path)


def test_an_archive_in_place_of_a_rank_is_a_problem(tmp_path: Path) -> None:
    run = write_small_run(tmp_path / "run")
    packed = captures(run)[3]
    packed.rename(packed.with_name("away"))
    packed.with_name(packed.name + ".tar.gz").write_bytes(b"x")
    assert any("archive" in reason(one) for one in discover(run).problems)


def test_merged_output_beside_captures_is_no_problem(tmp_path: Path) -> None:
    run = write_small_run(tmp_path / "run")
    (run / "cluster_analysis.db").write_bytes(b"x")
    assert discover(run).problems == ()


def test_an_old_export_is_not_called_raw(tmp_path: Path) -> None:
    timeline = tmp_path / "PROF_000001_20230101000000000_ABC" / "device_0" / "timeline"
    timeline.mkdir(parents=True)
    (timeline / "task_time_0_2_1.json").write_text("[]")
    with pytest.raises(InputError, match="exported by a CANN of 2023"):
        discover(tmp_path)
