"""Symbolic links in the profiler root: none hides profiler data unnoticed, and none is followed unasked."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_collect.spec import HostSpec
from cluster_run.ids import HostId, ServerId
from demo.sshd import SshLab
from tests.collect.helpers import FULL, collected, file_of, host_tree, make_capture, only_host, spec_for, tree

NAME = "worker_0_20240101000000_ascend_pt"


@pytest.fixture(params=["tar", "sftp", "local"])
def spec(request: pytest.FixtureRequest, own_lab: SshLab, tmp_path: Path) -> HostSpec:
    """A host whose profiler root is `root`, read in each of the ways there are."""
    (tmp_path / "root").mkdir()
    if request.param == "local":
        return HostSpec(HostId("1"), ServerId("s"), local=str(tmp_path / "root"), transport="local")
    settings = {"ForceCommand": "internal-sftp"} if request.param == "sftp" else {}
    return spec_for(own_lab, own_lab.start("127.0.0.2", settings=settings), tmp_path / "root")


def following(spec: HostSpec, *directories: Path) -> HostSpec:
    return HostSpec(**{**vars(spec), "follow_links": tuple(map(str, directories))})


def test_a_capture_behind_a_link_is_named_and_followed_when_asked(spec: HostSpec, tmp_path: Path) -> None:
    make_capture(tmp_path / "data2")
    make_capture(tmp_path / "root", 1)
    (tmp_path / "root" / NAME).symlink_to(tmp_path / "data2" / NAME)
    outcome = only_host(collected(spec, tmp_path / "run", FULL))
    assert (outcome.state, outcome.failure) == ("partial", "left-out")
    assert f"{NAME}: a symbolic link to {tmp_path}/data2/{NAME}, which holds profiler data" in outcome.reason
    assert "follow_links" in outcome.advice
    assert file_of(outcome, NAME).state == "failed"

    outcome = only_host(collected(following(spec, tmp_path / "elsewhere"), tmp_path / "run", FULL))
    assert (outcome.state, outcome.failure) == ("partial", "left-out")

    outcome = only_host(collected(following(spec, tmp_path / "data2"), tmp_path / "run", FULL))
    assert outcome.state == "complete", outcome.reason
    assert host_tree(tmp_path / "run") == {**tree(tmp_path / "data2"), **tree(tmp_path / "root")}


def test_a_folder_of_captures_behind_a_link_is_named(spec: HostSpec, tmp_path: Path) -> None:
    make_capture(tmp_path / "data2" / "job-101")
    make_capture(tmp_path / "root", 1)
    (tmp_path / "data2" / "empty").mkdir()
    (tmp_path / "root" / "job-101").symlink_to(tmp_path / "data2" / "job-101")
    (tmp_path / "root" / "empty").symlink_to(tmp_path / "data2" / "empty")
    outcome = only_host(collected(spec, tmp_path / "run", FULL))
    assert (outcome.state, outcome.failure) == ("partial", "left-out")
    assert [file.source for file in outcome.files if file.state == "failed"] == ["job-101"]


def test_a_capture_whose_disk_is_not_there_is_named(spec: HostSpec, tmp_path: Path) -> None:
    (tmp_path / "root" / NAME).symlink_to(tmp_path / "unmounted" / NAME)
    outcome = only_host(collected(spec, tmp_path / "run", FULL))
    assert (outcome.state, outcome.failure) == ("failed", "left-out")
    assert "which is not there" in outcome.reason


def test_a_link_to_what_is_taken_anyhow_costs_and_adds_nothing(spec: HostSpec, tmp_path: Path) -> None:
    capture = make_capture(tmp_path / "root" / "job-101")
    (tmp_path / "root" / "latest").symlink_to("job-101")
    (capture / "loop").symlink_to(".")
    wanted = tree(tmp_path / "root")
    for one in (spec, following(spec, tmp_path)):
        outcome = only_host(collected(one, tmp_path / "run", FULL))
        assert outcome.state == "complete", outcome.reason
        assert host_tree(tmp_path / "run") == wanted


def test_a_link_to_a_file_of_a_capture_is_named(spec: HostSpec, tmp_path: Path) -> None:
    capture = make_capture(tmp_path / "root")
    (tmp_path / "secret").write_text("not for us")
    (capture / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv").symlink_to(tmp_path / "secret")
    outcome = only_host(collected(spec, tmp_path / "run", FULL))
    assert (outcome.state, outcome.failure) == ("partial", "left-out")
    assert "not for us" not in str(host_tree(tmp_path / "run"))
