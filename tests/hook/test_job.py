from __future__ import annotations

from pathlib import Path

import pytest

from cluster_hook.job import fill_pattern, is_own_job, job_from_text, job_to_text, parse_request
from cluster_run.errors import InputError, UsageError
from tests.hook.jobs import a_job


def test_paths_in_the_comment_are_relative_to_the_work_directory() -> None:
    request = parse_request(a_job(comment="profile_dir=prof,profile_results=out/%j"))
    assert request is not None
    assert request.profile_dir == "/work-dir/prof"
    assert request.results == Path("/work-dir/out/12")


def test_other_peoples_words_in_the_comment_are_passed_over() -> None:
    request = parse_request(a_job(comment="project x; profile_dir=/p profile_via=ssh, ticket=4"))
    assert request is not None
    assert (request.profile_dir, request.via) == ("/p", "ssh")


@pytest.mark.parametrize("comment", ["", "hello", "profile_dir=", "rank_table=x"])
def test_a_comment_without_profile_dir_asks_for_nothing(comment: str) -> None:
    assert parse_request(a_job(comment=comment)) is None


@pytest.mark.parametrize(
    "comment",
    [
        "profile_dir=a,profile_dir=b",
        "profile_dir=a,profile_via=ftp",
        "profile_dir=%q",
        "profile_dir=50%",
        "profile_dir=a%%N",
    ],
)
def test_a_comment_that_cannot_be_meant_is_refused_with_the_job_and_the_words(comment: str) -> None:
    with pytest.raises(UsageError, match="job 12"):
        parse_request(a_job(comment=comment))


def test_sbatch_patterns_are_filled_and_the_node_is_left_for_each_host() -> None:
    job = a_job(array_job="7", array_task="3", name="a/b", comment="profile_dir=/d/%A_%a/%j/%x/%u/%N")
    request = parse_request(job)
    assert request is not None
    assert request.profile_dir == "/d/7_3/12/a_b/ada/%N"
    assert request.is_per_node


def test_the_node_pattern_has_no_meaning_where_there_is_one_path() -> None:
    with pytest.raises(UsageError, match="pattern"):
        fill_pattern("out/%N", a_job())


def test_our_own_jobs_are_known_by_their_names() -> None:
    assert is_own_job("cluster-hook-12")
    assert is_own_job("cluster-collect")
    assert not is_own_job("train-cluster-hook")


@pytest.mark.parametrize("nodes", [None, (), ("n1", "n2")])
def test_a_job_travels_as_text_unchanged(nodes: tuple[str, ...] | None) -> None:
    job = a_job(nodes=nodes, comment="a 'quoted'\n\"comment\" \udcff")
    assert job_from_text(job_to_text(job)) == job


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "cluster-hook-job/2"}', '{"schema": "cluster-hook-job/1"}']
)
def test_a_text_that_is_no_job_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        job_from_text(text)


@pytest.mark.parametrize(
    ("pattern", "is_own"), [("p/%j", True), ("p/%A_%a", True), ("p/%A", False), ("p/%a", False)]
)
def test_a_task_of_an_array_has_a_directory_of_its_own_where_its_name_says_so(
    pattern: str, is_own: bool
) -> None:
    request = parse_request(a_job(array_job="7", array_task="3", comment=f"profile_dir={pattern}"))
    assert request is not None
    assert request.is_own is is_own
