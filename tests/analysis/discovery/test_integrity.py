"""Files that are not what was collected."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from cluster_analysis import archives
from cluster_analysis.discovery.discover import discover
from cluster_analysis.discovery.walk import is_packed_capture
from cluster_run import layout
from cluster_run.errors import InputError
from cluster_words.problems import advice
from tests.analysis.discovery.test_discover import write_manifest
from tests.analysis.one_rank import read_rank
from tests.analysis.runs import write_small_run
from tests.analysis.said import reason
from tests.analysis.sources.builders import OUTPUT, write_capture


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """One capture in a run directory with a manifest."""
    directory = write_capture(tmp_path / "cluster_profiler/1/profiler", 0)
    files = [
        {
            "path": path.relative_to(tmp_path).as_posix(),
            "source": "",
            "size_bytes": path.stat().st_size,
            "mtime_ns": path.stat().st_mtime_ns,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "state": "stored",
        }
        for path in (directory / OUTPUT).iterdir()
    ]
    write_manifest(tmp_path, {"files": files})
    return directory


def problems(capture: Path) -> list[tuple[int | None, str, str]]:
    root = capture.parents[3]
    return [(one.rank, one.file, reason(one)) for one in discover(root).problems]


def test_a_file_that_is_shorter_than_when_it_was_collected_is_told(capture: Path) -> None:
    path = capture / OUTPUT / "communication.json"
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-1])
    assert problems(capture) == [
        (0, "communication.json", f"{size - 1} bytes, but {size} when it was collected")
    ]


def test_a_digit_that_changed_after_collecting_is_told(capture: Path) -> None:
    path = capture / OUTPUT / "step_trace_time.csv"
    path.write_text(path.read_text().replace("8873.75", "8878.75"))
    assert problems(capture) == [
        (0, "step_trace_time.csv", "it is not what was collected: its SHA-256 differs")
    ]


def test_a_run_whose_collecting_was_cut_off_is_to_be_collected_further(capture: Path) -> None:
    run = capture.parents[3]
    (run / layout.MANIFEST_NAME).unlink()
    for path in (capture / OUTPUT).iterdir():
        path.unlink()
    (run / layout.JOURNAL_NAME).write_text("")
    write_capture(run / "cluster_profiler/2/profiler", 1)
    not_ended, nothing = discover(run).problems
    assert reason(not_ended).startswith("it is not there, as collecting did not end")
    assert advice(not_ended).en.startswith("call cluster-collect again with the same --output")
    assert reason(nothing) == "nothing that can be analysed is in it"
    assert advice(nothing).en.startswith("collect it again")
    # Of a run that holds nothing yet, the same is said instead.
    shutil.rmtree(run / "cluster_profiler/2")
    with pytest.raises(InputError) as told:
        discover(run)
    assert "collecting did not end" in told.value.advice


def test_a_copied_run_has_other_times_and_is_what_was_collected(capture: Path) -> None:
    for path in (capture / OUTPUT).iterdir():
        os.utime(path)
    assert problems(capture) == []


def test_files_that_were_added_later_are_nobodys_problem(capture: Path) -> None:
    (capture / OUTPUT / "op_statistic.csv").write_text("OP Type,Count,Total Time(us)\n")
    assert problems(capture) == []


def test_a_file_that_was_collected_and_is_there_no_more_is_told(capture: Path) -> None:
    (capture / OUTPUT / "communication_matrix.json").unlink()
    assert problems(capture) == [
        (0, "communication_matrix.json", "it was collected, and is not there any more")
    ]


def test_a_deleted_database_is_told_where_the_other_one_is_still_there(tmp_path: Path, capture: Path) -> None:
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (host,) = manifest["hosts"]
    lost = {**host["files"][0], "path": f"{(capture / OUTPUT).relative_to(tmp_path).as_posix()}/analysis.db"}
    host["files"].append(lost)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert (0, "analysis.db", "it was collected, and is not there any more") in problems(capture)


# What lies where captures should is told by its name, with what to do.
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("cluster_analysis.db", "what msprof-analyze made"),
        ("cluster_step_trace_time.csv", "what msprof-analyze made"),
        ("report1.nsys-rep", "NVIDIA Nsight"),
        ("host.123.pt.trace.json.gz", "PyTorch's own profiler"),
        ("node1_12_20250101000000_ascend_pt.tar.gz", "archive"),
        ("node7.zip", "archive"),
        ("cluster_analysis_output/cluster_step_trace_time.csv", "what msprof-analyze made"),
        ("msmonitor_1234_20260101120000123_0.db", "what msMonitor recorded"),
        ("communication.json", "a file of a capture, and lies in none"),
        ("trace_view.json.gz", "a file of a capture, and lies in none"),
        ("step_trace_time_rank3.csv", "a file of a capture, and lies in none"),
    ],
)
def test_a_folder_with_another_tools_files_says_whose_they_are(name: str, what: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(InputError, match=what):
        discover(tmp_path)


# People pack what they copy: what hides a rank, a host or a file is told, whatever its name, with what to do.
@pytest.mark.parametrize("folder", ["{capture}", "{capture}/ASCEND_PROFILER_OUTPUT", "{capture}/.."])
@pytest.mark.parametrize("form", [*archives.FORMS, ".7z", ".rar", ".tar.xz"])
def test_an_archive_in_place_of_a_rank_is_to_be_unpacked(tmp_path: Path, folder: str, form: str) -> None:
    of_job = {"distributed_args": {"world_size": 2}}
    capture, _ = (write_capture(tmp_path / f"node{rank}", rank, metadata=of_job) for rank in range(2))
    packed = Path(folder.format(capture=capture)).resolve()
    shutil.rmtree(packed)
    archive = packed.with_name(packed.name + form)
    archive.write_bytes(b"x")
    told = [one for one in discover(tmp_path).problems if one.kind == "archive"]
    assert [(archive.match(one.file), one.advice) for one in told] == [(True, "unpack")]


@pytest.mark.parametrize("end", [".gz", ".zip"])
@pytest.mark.parametrize(
    "name",
    [
        "communication.json",
        "communication_matrix.json",
        "step_trace_time.csv",
        "op_statistic.csv",
        "kernel_details.csv",
    ],
)
def test_a_packed_file_is_told_once_and_is_not_called_missing(tmp_path: Path, name: str, end: str) -> None:
    path = write_capture(tmp_path, 0) / OUTPUT / name
    path.unlink(missing_ok=True)
    path.with_name(name + end).write_bytes(b"x")
    told = read_rank(discover(tmp_path).sources[0]).problems
    assert [(one.kind, one.file, one.advice) for one in told] == [("archive", name + end, "unpack")]


def test_packed_databases_are_told(tmp_path: Path) -> None:
    capture = write_capture(tmp_path, 0)
    for path in (capture / OUTPUT).iterdir():
        path.unlink()
    (capture / OUTPUT / "ascend_pytorch_profiler_0.db.gz").write_bytes(b"x")
    (told,) = read_rank(discover(tmp_path).sources[0]).problems
    assert (told.kind, told.file) == ("archive", "ascend_pytorch_profiler_0.db.gz")


def test_a_timeline_that_is_packed_is_noted_as_one_that_is_too_large_is(
    tmp_path: Path,
) -> None:
    """It is no problem: most runs are collected without theirs."""
    timelines = [write_capture(tmp_path, rank) / OUTPUT / "trace_view.json" for rank in (0, 1)]
    timelines[0].with_name("trace_view.json.gz").write_bytes(b"x")
    timelines[1].write_text("[]")
    with timelines[1].open("r+b") as file:
        file.truncate(256_000_001)
    for source in discover(tmp_path).sources:
        tables = read_rank(source)
        assert (tables.problems, [one.kind for one in tables.notes]) == ((), ["timeline_not_read"])


def test_archives_beside_what_was_unpacked_of_them_are_no_problem(tmp_path: Path) -> None:
    capture = write_capture(tmp_path, 0)
    for path in (*tmp_path.rglob("*"), capture / OUTPUT / "trace_view.json", tmp_path / "scripts"):
        path.with_name(path.name + ".zip").write_bytes(b"x")
    found = discover(tmp_path)
    assert not found.problems
    assert not read_rank(found.sources[0]).problems


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


def test_a_packed_capture_is_told_in_each_form_that_can_be_unpacked() -> None:
    assert all(is_packed_capture(f"node1_12_20250101000000_ascend_pt{form}") for form in archives.FORMS)
