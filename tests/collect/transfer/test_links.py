"""Symbolic links in the profiler root: none hides profiler data unnoticed, and none is followed unasked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cluster_run.manifest import HostOutcome
from tests.collect.conftest import Start
from tests.collect.helpers import FULL, OneHost, file_of, local_host, make_capture, tree

NAME = "worker_0_20240101000000_ascend_pt"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture(params=["tar", "sftp", "local"])
def one(request: pytest.FixtureRequest, start: Start, root: Path, tmp_path: Path) -> OneHost:
    """A host that is read in each of the ways there are."""
    if request.param == "local":
        return local_host(root, tmp_path / "run")
    return start({"ForceCommand": "internal-sftp"} if request.param == "sftp" else {})


def following(one: OneHost, *directories: Path) -> OneHost:
    return one.having(follow_links=tuple(map(str, directories)))


def left_out(one: OneHost, state: str = "partial") -> HostOutcome:
    outcome = one.collect()
    assert (outcome.state, outcome.failure) == (state, "left-out")
    return outcome


def test_a_capture_behind_a_link_is_named_and_followed_when_asked(one: OneHost, tmp_path: Path) -> None:
    make_capture(tmp_path / "data2")
    make_capture(one.root, 1)
    (one.root / NAME).symlink_to(tmp_path / "data2" / NAME)
    outcome = left_out(one)
    assert f"{NAME}: a symbolic link to {tmp_path}/data2/{NAME}, which holds profiler data" in outcome.reason
    assert "follow_links" in outcome.advice
    assert file_of(outcome, NAME).state == "failed"
    left_out(following(one, tmp_path / "elsewhere"))
    assert following(one, tmp_path / "data2").collect().reason == ""
    assert one.landed() == {**tree(tmp_path / "data2"), **tree(one.root)}


def test_a_folder_of_captures_behind_a_link_is_named(one: OneHost, tmp_path: Path) -> None:
    make_capture(tmp_path / "data2" / "job-101")
    make_capture(one.root, 1)
    (tmp_path / "data2" / "empty").mkdir()
    for name in ("job-101", "empty"):
        (one.root / name).symlink_to(tmp_path / "data2" / name)
    assert [file.source for file in left_out(one).files if file.state == "failed"] == ["job-101"]


def test_a_capture_whose_disk_is_not_there_is_named(one: OneHost, tmp_path: Path) -> None:
    (one.root / NAME).symlink_to(tmp_path / NAME)
    outcome = left_out(one, "failed")
    assert f"leads to {tmp_path / NAME}, which is not there" in outcome.reason
    assert "follow_links" not in outcome.advice  # it would help nothing


def test_links_that_lead_in_a_circle_are_named_and_may_be_passed_over(one: OneHost) -> None:
    capture = make_capture(one.root)
    for name, target in (("this", "that"), ("that", "this")):
        (capture / name).symlink_to(target)
    outcome = left_out(one)
    assert "a symbolic link that leads nowhere" in outcome.reason
    assert "--exclude" in outcome.advice
    assert one.collect(replace(FULL, exclude=("this", "that"))).reason == ""


def test_a_link_to_what_is_taken_anyhow_costs_and_adds_nothing(one: OneHost, tmp_path: Path) -> None:
    capture = make_capture(one.root / "job-101")
    (one.root / "latest").symlink_to("job-101")
    (capture / "loop").symlink_to(".")
    for host in (one, following(one, tmp_path)):
        host.collect_all()


def test_a_link_to_a_file_of_a_capture_is_named(one: OneHost, tmp_path: Path) -> None:
    capture = make_capture(one.root)
    (tmp_path / "secret").write_text("not for us")
    (capture / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv").symlink_to(tmp_path / "secret")
    left_out(one)
    assert "not for us" not in str(one.landed())
