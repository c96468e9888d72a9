"""Which captures below a directory are a job's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cluster_hook.follow.captures import NoProfileError, captures_of, survey_captures
from cluster_hook.job import ReportedJob, parse_request
from tests.hook.jobs import a_job

_EARLIER_S, _BEGAN_S, _DURING_S, _ENDED_S, _LATER_S = 1_000.0, 2_000.0, 2_500.5, 3_000.0, 4_000.0


@pytest.fixture
def job(tmp_path: Path) -> ReportedJob:
    return a_job(work_dir=tmp_path, began_s=_BEGAN_S, ended_s=_ENDED_S)


def a_capture(prof: Path, rank: int, *times_s: float) -> Path:
    """Write a capture whose files were written at these times."""
    capture = prof / f"node_{rank}_20261122_ascend_pt"
    (capture / "ASCEND_PROFILER_OUTPUT").mkdir(parents=True)
    for number, at_s in enumerate(times_s):
        path = capture / ("ASCEND_PROFILER_OUTPUT" if number else ".") / f"file{number}.json"
        path.touch()
        os.utime(path, (at_s, at_s))
    return capture


def seen(root: Path) -> set[str]:
    return {path.name for path in root.iterdir()}


def test_a_directory_with_the_jobs_captures_alone_is_read_where_it_is(
    job: ReportedJob, tmp_path: Path
) -> None:
    a_capture(tmp_path / "prof", 0, _DURING_S)
    assert captures_of(job, tmp_path / "prof", tmp_path / "mirror") == tmp_path / "prof"
    assert not (tmp_path / "mirror").exists()


@pytest.mark.parametrize(
    ("at_s", "why"),
    [
        ((_EARLIER_S,), "before the job did"),
        ((_LATER_S,), "after the job ended"),
        ((_EARLIER_S, _DURING_S), ""),  # an older one that was parsed while the job ran
    ],
)
def test_captures_of_another_job_alone_are_no_profile(
    job: ReportedJob, tmp_path: Path, at_s: tuple[float, ...], why: str
) -> None:
    a_capture(tmp_path / "prof", 0, *at_s)
    with pytest.raises(NoProfileError, match=f"this job wrote no profile.*{why}"):
        captures_of(job, tmp_path / "prof", tmp_path / "mirror")


def test_captures_of_other_jobs_are_left_out_and_everything_else_is_linked(
    job: ReportedJob, tmp_path: Path
) -> None:
    prof = tmp_path / "prof"
    own = a_capture(prof / "a", 1, _DURING_S)
    a_capture(prof / "a", 2, _EARLIER_S)
    a_capture(prof / "b", 3, _LATER_S)
    (prof / "hccl.json").touch()
    for _ in range(2):  # a second attempt finds the links of the first
        mirror = captures_of(job, prof, tmp_path / "mirror")
        assert seen(mirror) == {"a", "b", "hccl.json"}
        assert seen(mirror / "a") == {own.name}
        assert seen(mirror / "b") == set()
    assert (mirror / "a" / own.name).resolve() == own


def test_a_capture_that_was_parsed_after_the_jobs_end_is_the_jobs(job: ReportedJob, tmp_path: Path) -> None:
    a_capture(tmp_path / "prof", 0, _DURING_S, _LATER_S)
    assert captures_of(job, tmp_path / "prof", tmp_path / "mirror") == tmp_path / "prof"


def test_flat_files_are_told_apart_one_by_one(job: ReportedJob, tmp_path: Path) -> None:
    prof = tmp_path / "prof"
    prof.mkdir()
    for rank, at_s in ((0, _DURING_S), (1, _EARLIER_S)):
        path = prof / f"step_trace_raw_{rank}_detail_time.csv"
        path.touch()
        os.utime(path, (at_s, at_s))
    mirror = captures_of(job, prof, tmp_path / "mirror")
    assert seen(mirror) == {"step_trace_raw_0_detail_time.csv"}


def test_the_second_in_which_a_job_ended_is_the_jobs(job: ReportedJob, tmp_path: Path) -> None:
    a_capture(tmp_path / "prof", 0, _ENDED_S + 0.9)
    assert captures_of(job, tmp_path / "prof", tmp_path / "mirror") == tmp_path / "prof"


def test_when_nobody_knows_when_the_job_ran_no_capture_is_said_to_be_its_own(tmp_path: Path) -> None:
    a_capture(tmp_path / "prof", 0, _EARLIER_S)
    with pytest.raises(NoProfileError, match="it is not known any more"):
        captures_of(a_job(work_dir=tmp_path), tmp_path / "prof", tmp_path / "mirror")


def test_a_capture_of_the_second_in_which_the_next_job_starts_is_the_next_ones(
    job: ReportedJob, tmp_path: Path
) -> None:
    a_capture(tmp_path / "prof", 0, _DURING_S)
    following = a_capture(tmp_path / "prof", 1, 3000.5)
    survey = survey_captures(job, tmp_path / "prof")
    assert (len(survey.own), list(survey.others)) == (1, [following])


def test_ranks_that_begin_a_capture_around_the_jobs_last_second_are_all_its_own(
    job: ReportedJob, tmp_path: Path
) -> None:
    for rank, at_s in enumerate((2998.0, 2999.9, 3000.1, 3000.9)):
        a_capture(tmp_path / "prof", rank, at_s)
    assert len(survey_captures(job, tmp_path / "prof").own) == 4


def test_a_job_all_of_whose_captures_are_of_its_last_second_has_them(
    job: ReportedJob, tmp_path: Path
) -> None:
    a_capture(tmp_path / "prof", 0, 3000.5)
    assert len(survey_captures(job, tmp_path / "prof").own) == 1


@pytest.mark.parametrize(
    ("directory", "is_own"), [("prof/%j", True), ("prof-%A", True), ("prof", False), ("prof/%x", False)]
)
def test_a_directory_with_the_jobs_number_in_its_name_is_its_own(directory: str, is_own: bool) -> None:
    request = parse_request(a_job(comment=f"profile_dir={directory}"))
    assert request is not None
    assert request.is_own == is_own


def test_the_tasks_of_an_array_share_a_directory_with_the_arrays_number() -> None:
    request = parse_request(a_job(comment="profile_dir=prof/%A", array_job="9", array_task="1"))
    assert request is not None
    assert not request.is_own
