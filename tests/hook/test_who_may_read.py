"""Nobody reads results who may not read the profile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cluster_hook.follow.pipeline import FollowOptions, follow
from cluster_hook.isolation import no_wider_than
from cluster_hook.job import ProfileRequest
from tests.hook.jobs import a_job


def modes_below(directory: Path) -> set[str]:
    """Return the modes of all that is in a directory, and of itself, as octal numbers."""
    return {f"{path.stat().st_mode & 0o777:o}" for path in (directory, *directory.rglob("*"))}


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "expected"), [(0o700, {"700", "600"}), (0o755, {"755", "644"})])
def test_results_are_no_wider_than_the_profile(
    tmp_path: Path, simulated: Path, mode: int, expected: set[str]
) -> None:
    tmp_path.chmod(0o755)
    prof = tmp_path / "prof"
    prof.mkdir()
    for path in simulated.iterdir():
        (prof / path.name).symlink_to(path)
    prof.chmod(mode)
    results = tmp_path / "results"
    request = ProfileRequest(str(prof), results, "shared", None, is_own=True)
    outcome = follow(a_job(work_dir=tmp_path), request, FollowOptions(deadline_s=170, shows_report=False))
    assert outcome.state == "analysed", outcome.reason
    if os.stat("/tmp").st_mode & 0o001 and all(one.stat().st_mode & 0o001 for one in prof.parents):
        assert modes_below(results) == expected
    else:  # pytest's own directory is for one user only
        assert modes_below(results) == {"700", "600"} if mode == 0o700 else {"750", "640"}


def test_what_is_behind_a_closed_directory_is_closed_to_others_elsewhere_too(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "prof").mkdir(parents=True)
    home.chmod(0o750)
    with no_wider_than(home / "prof", tmp_path / "elsewhere"):
        (tmp_path / "elsewhere").mkdir()
    assert (tmp_path / "elsewhere").stat().st_mode & 0o007 == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory another group")
def test_the_rights_of_the_profiles_group_are_given_to_no_other_group(tmp_path: Path) -> None:
    prof = tmp_path / "prof"
    prof.mkdir()
    os.chown(prof, 0, 12345)
    prof.chmod(0o2750)
    with no_wider_than(prof, tmp_path / "elsewhere"):
        (tmp_path / "elsewhere").mkdir()
    with no_wider_than(prof, prof / "out"):
        (prof / "out").mkdir()
    assert (tmp_path / "elsewhere").stat().st_mode & 0o070 == 0
    assert ((prof / "out").stat().st_mode & 0o070, (prof / "out").stat().st_gid) == (0o050, 12345)


def test_a_profile_that_is_not_seen_from_here_leaves_the_results_to_its_user(tmp_path: Path) -> None:
    with no_wider_than(tmp_path / "gone", tmp_path):
        (tmp_path / "out").mkdir()
    assert (tmp_path / "out").stat().st_mode & 0o077 == 0
