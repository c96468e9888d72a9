"""Captures that are missing, double, mixed or at odd places: what is there is read, the rest is told."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster_analysis.discovery.discover import discover
from tests.analysis.one_rank import metadata_of, read_rank
from tests.analysis.said import notes_of, reason
from tests.analysis.sources.builders import (
    LINKS,
    OPS,
    OUTPUT,
    STEP_ROW,
    source_of,
    step_csv,
    write_analysis_db,
    write_capture,
    write_info,
)
from tests.analysis.sources.four_ranks import (
    BAD,
    RANKS,
    output_of,
    own_links,
    problems_of,
    read_all,
    the_problem,
)


def test_06_a_rank_without_both_json_files_is_told_once(job: dict[int, Path]) -> None:
    output_of(job, "communication.json").unlink()
    output_of(job, "communication_matrix.json").unlink()
    rank, file, reason = the_problem(job)
    assert (rank, file) == (BAD, "communication.json")
    assert "no communication data" in reason


@pytest.mark.parametrize(
    ("level", "advised"),
    [("Level1", "collect_or_parse"), ("Level2", "collect_or_parse"), ("", "profile_at_level1")],
)
def test_communication_that_was_recorded_is_collected_and_not_profiled_again(
    job: dict[int, Path], level: str, advised: str
) -> None:
    write_info(job[BAD], BAD, level=level)
    output_of(job, "communication.json").unlink()
    _, tables = read_all(job[0].parent)
    assert [problem.advice for problem in tables[BAD].problems] == [advised]


def test_where_the_matrix_alone_is_not_there_the_rank_has_communication_and_no_links(
    job: dict[int, Path],
) -> None:
    output_of(job, "communication_matrix.json").unlink()
    assert the_problem(job) == (
        BAD,
        "communication_matrix.json",
        "it is not there, so links cannot be told apart",
    )


def test_07_a_rank_that_was_not_parsed_is_told_with_its_rank(job: dict[int, Path]) -> None:
    for path in (job[BAD] / OUTPUT).iterdir():
        path.unlink()
    (job[BAD] / OUTPUT).rmdir()
    rank, file, reason = the_problem(job)
    assert (rank, file) == (BAD, "*_1002_20250109123456002_ascend_pt")
    assert "not parsed" in reason


def test_08_a_rank_without_profiler_info_is_told_and_never_rank_0(job: dict[int, Path]) -> None:
    (job[BAD] / f"profiler_info_{BAD}.json").unlink()
    capture, tables = read_all(job[0].parent)
    assert sorted(tables) == sorted(set(range(RANKS)) - {BAD})
    unknown, missing = problems_of(capture, tables)
    assert unknown[:2] == (None, "*_1002_20250109123456002_ascend_pt")
    assert "its rank is not known" in unknown[2]
    assert missing[2] == f"no profiler data of 1 of {RANKS} ranks: {BAD}"


def test_13_of_two_captures_without_a_time_in_their_names_the_later_ended_is_used_and_told(
    job: dict[int, Path],
) -> None:
    root = job[0].parent
    for name, ended in (("old_ascend_pt", 100), ("new_ascend_pt", 200)):
        capture = write_capture(
            root,
            BAD,
            name,
            steps=step_csv({str(ended): STEP_ROW}),
            ops={f"step{ended}": OPS},
            links={f"step{ended}": LINKS},
        )
        write_info(capture, BAD, ended_ns=ended)
    for path in sorted(job[BAD].rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    job[BAD].rmdir()
    found, tables = read_all(root)
    ((rank, _, reason),) = problems_of(found, tables)
    assert rank == BAD
    assert reason == "2 captures of this rank; new_ascend_pt is used, old_ascend_pt is not"
    assert tables[BAD].steps["step"].to_pylist() == [200]


@pytest.mark.parametrize("whole", ["", "backup"])
def test_of_two_copies_of_a_capture_the_fullest_is_used_and_told_by_its_folder(
    job: dict[int, Path], whole: str
) -> None:
    """As where copying was interrupted; with all ranks it is the copy of the run that is left aside."""
    root = job[0].parent
    copy = root / "backup" / job[BAD].name
    shutil.copytree(job[BAD], copy)
    broken = job[BAD] if whole else copy
    (broken / OUTPUT / "communication.json").write_text("{")
    found, _ = read_all(root)
    ((rank, _, reason),) = problems_of(found, {})
    name = copy.name.replace("node1", "*")
    names = [f"backup/{name}", name]
    used, other = names if whole else names[::-1]
    assert (rank, reason) == (BAD, f"2 captures of this rank; {used} is used, {other} is not")


def test_of_two_copies_of_a_run_the_fullest_is_used(job: dict[int, Path]) -> None:
    root = job[0].parent
    for name in ("before", "zz_behind"):
        shutil.copytree(root, root.parent / "copies" / name)
        (root.parent / "copies" / name / job[BAD].name / OUTPUT / "communication.json").write_text("{")
    shutil.copytree(root, root.parent / "copies" / "whole")
    found, tables = read_all(root.parent / "copies")
    assert problems_of(found, tables) == []
    assert len(tables) == RANKS


def test_13b_of_two_captures_with_times_the_newest_is_used_and_the_other_noted(job: dict[int, Path]) -> None:
    write_capture(job[0].parent, BAD, "node1_7_20240101000000000_ascend_pt", steps=step_csv({"1": STEP_ROW}))
    capture, tables = read_all(job[0].parent)
    assert problems_of(capture, tables) == []
    assert tables[BAD].steps["step"].to_pylist() == [50]
    assert len(tables) == RANKS
    assert "2 jobs, or windows of one job, found" in notes_of(capture)[0]


def a_rank(job: dict[int, Path], tmp_path: Path) -> Path:
    elsewhere = job[BAD].rename(tmp_path / job[BAD].name)
    job[BAD].symlink_to(elsewhere)
    return job[0].parent


def the_path(job: dict[int, Path], tmp_path: Path) -> Path:
    (tmp_path / "link").symlink_to(job[0].parent)
    return tmp_path / "link"


def the_host_twice(job: dict[int, Path], tmp_path: Path) -> Path:
    (tmp_path / "hosts").mkdir()
    for name in ("host1", "again"):
        (tmp_path / "hosts" / name).symlink_to(job[0].parent)
    return tmp_path / "hosts"


@pytest.mark.parametrize("link", [a_rank, the_path, the_host_twice])
def test_14_what_is_a_link_is_read_once(
    job: dict[int, Path], tmp_path: Path, link: Callable[[dict[int, Path], Path], Path]
) -> None:
    capture, tables = read_all(link(job, tmp_path))
    assert (problems_of(capture, tables), sorted(tables)) == ([], [0, 1, 2, 3])


def test_15_a_rank_in_database_form_is_read_with_the_text_ranks(job: dict[int, Path]) -> None:
    for path in (job[BAD] / OUTPUT).iterdir():
        path.unlink()
    write_analysis_db(output_of(job, "analysis.db"), {"step50": OPS}, own_links(BAD), {"50": STEP_ROW})
    capture, tables = read_all(job[0].parent)
    assert problems_of(capture, tables) == []
    assert [source.kind for source in capture.sources] == [
        "ascend_pt/text",
        "ascend_pt/text",
        "ascend_pt/db",
        "ascend_pt/text",
    ]
    assert tables[BAD].collectives.num_rows == tables[0].collectives.num_rows


def test_16_captures_of_two_frameworks_are_two_jobs_and_the_larger_is_read(job: dict[int, Path]) -> None:
    write_capture(job[0].parent, 9, suffix="ascend_ms")
    capture, tables = read_all(job[0].parent)
    ((_, file, reason),) = problems_of(capture, tables)
    assert sorted(tables) == [0, 1, 2, 3]
    assert file == "*_ascend_ms"
    assert reason == (
        "captures of two frameworks: 4 ranks of ascend_pt are analysed, 1 rank of ascend_ms is another job"
    )


def test_18_ranks_far_down_are_found(tmp_path: Path) -> None:
    write_capture(tmp_path / "a/b/c/d/e/f/g/h/i/j/k", 0)
    assert [source.rank for source in discover(tmp_path).sources] == [0]


def test_26_a_level_0_capture_has_steps_and_says_why_it_has_no_communication(job: dict[int, Path]) -> None:
    output_of(job, "communication.json").unlink()
    output_of(job, "communication_matrix.json").unlink()
    write_info(job[BAD], BAD, level="Level0")
    capture, tables = read_all(job[0].parent)
    assert problems_of(capture, tables) == []
    assert tables[BAD].steps.num_rows == 1
    assert "Level0" in notes_of(tables[BAD])[0]


def test_27_a_capture_whose_directory_has_another_name_is_found(tmp_path: Path) -> None:
    write_capture(tmp_path, 0, "test_rank_0")
    assert [source.rank for source in discover(tmp_path).sources] == [0]


# A file that is cut off, empty or no data costs what is bad in it, and is named with its rank.
OPERATORS, MATRIX, STEPS = "communication.json", "communication_matrix.json", "step_trace_time.csv"
DAMAGED: dict[str, tuple[str, Callable[[bytes], bytes], str]] = {
    "01 truncated operators": (OPERATORS, lambda it: it[:300], "truncated at byte 300"),
    "02 a truncated matrix": (MATRIX, lambda it: it[:300], "truncated at byte 300"),
    "01 NUL behind it": (OPERATORS, lambda it: it[:300] + bytes(9), "filled with NUL from byte 300 of 309"),
    "03 no bytes of operators": (OPERATORS, lambda it: b"", r"empty \(0 bytes\)"),
    "04 no bytes of steps": (STEPS, lambda it: b"", r"empty \(0 bytes\)"),
    "05 a header only": (STEPS, lambda it: it.splitlines(True)[0], "it has a header and no step"),
    "09 no UTF-8": (STEPS, lambda it: it.decode().encode("utf-16"), ".*UTF-8.*"),
    "a number that is a text": (
        OPERATORS, lambda it: it.replace(b": 0.25", b': "much"', 1), ".*'step50', which begins at byte 11.*",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "damage", "why"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_costs_that_file_of_that_rank_and_is_told(
    job: dict[int, Path], name: str, damage: Callable[[bytes], bytes], why: str
) -> None:
    path = output_of(job, name)
    path.write_bytes(damage(path.read_bytes()))
    rank, file, reason = the_problem(job)
    assert (rank, file) == (BAD, name)
    assert re.fullmatch(why, reason), reason


@pytest.mark.parametrize("name", ["communication.json", "communication_matrix.json"])
@pytest.mark.parametrize("padding", [b"", b"\0" * 50], ids=["cut", "NUL"])
def test_01_02_a_json_that_is_cut_off_keeps_its_whole_steps_and_names_the_first_lost_one(
    tmp_path: Path, name: str, padding: bytes
) -> None:
    steps = ("step50", "step51", "step52")
    links = {step: own_links(0)["step50"] for step in steps}
    capture = write_capture(tmp_path, 0, ops=dict.fromkeys(steps, OPS), links=links)
    path = capture / OUTPUT / name
    whole = read_rank(source_of(capture))
    content = path.read_bytes()
    cut = content.index(b'"step52"') + 100
    path.write_bytes(content[:cut] + padding)
    tables = read_rank(source_of(capture))
    (problem,) = tables.problems
    why = f"filled with NUL from byte {cut} of {cut + 50}" if padding else f"truncated at byte {cut}"
    assert (problem.file, reason(problem)) == (name, f"{why}; it says nothing of step52 and what followed")
    for table, was_cut in (("collectives", "matrix" not in name), ("links", "matrix" in name)):
        expected = [row for row in getattr(whole, table).to_pylist() if not was_cut or row["step"] != 52]
        assert getattr(tables, table).to_pylist() == expected


@pytest.mark.slow
def test_19_a_huge_sparse_file_is_refused_by_its_content_not_read_as_empty(job: dict[int, Path]) -> None:
    path = output_of(job, "communication.json")
    length = path.stat().st_size
    with path.open("r+b") as stream:
        stream.truncate(40_000_000)
    assert the_problem(job) == (BAD, path.name, f"filled with NUL from byte {length} of 40000000")


def test_arguments_of_a_job_that_are_no_numbers_cost_nothing(job: dict[int, Path]) -> None:
    arguments = {"world_size": RANKS, "clip_grad": math.inf, "losses": [math.nan, -math.inf]}
    group = {"group_name": "tp", "group_rank": BAD, "global_ranks": list(range(RANKS))}
    document = {"distributed_args": arguments, "parallel_group_info": {"10.0.0.1%eth0_60000_0_17": group}}
    (job[BAD] / "profiler_metadata.json").write_text(json.dumps(document))
    capture, tables = read_all(job[0].parent)
    assert not problems_of(capture, tables)
    assert metadata_of(tables[BAD]).world_size == RANKS
    assert [one.global_ranks for one in metadata_of(tables[BAD]).groups] == [tuple(range(RANKS))]
