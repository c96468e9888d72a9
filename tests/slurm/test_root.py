"""Root calls `slurm-post` by hand, as docs/alerts.md says, for users who would have root read for them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import ran
from tests.hook.public_python import NOBODY, needs_root
from tests.slurm.conftest import REPOSITORY, why_not_here
from tests.slurm.jobs import simulate
from tests.slurm.lab import SlurmLab, start_lab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200), needs_root]

_SECRET = "root:s3cret"


@pytest.fixture(scope="module")
def site(public: Path) -> Iterator[SlurmLab]:
    """A Slurm whose jobs may be anybody's."""
    if why_not_here():
        pytest.skip(why_not_here())
    (public / "slurm").mkdir()
    cluster = start_lab(public / "slurm", REPOSITORY / "deploy" / "slurm" / "epilog_slurmctld.sh", 1)
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def work(public: Path, site: SlurmLab) -> Path:
    """A work directory of the user."""
    work = public / f"work-{len(list(public.iterdir()))}"
    work.mkdir()
    os.chown(work, NOBODY, NOBODY)
    return work


def submit_as_user(site: SlurmLab, work: Path, script: str, comment: str, name: str = "train") -> str:
    named = (f"--comment={comment}", f"--job-name={name}", f"--chdir={work}", "--output=job.out")
    ended = ran(
        ["sbatch", "--parsable", *named],
        input=f"#!/bin/sh\n{script}\n",
        user=NOBODY,
        group=NOBODY,
        extra_groups=(),
        env={**site.environment, "HOME": str(work), "USER": "nobody"},
        cwd=work,
        check=True,
    )
    job = ended.stdout.strip()
    site.wait_for(job)
    return job


def post_as_root(site: SlurmLab, python: Path, job: str) -> subprocess.CompletedProcess[str]:
    return site.hook("slurm-post", f"--slurm-job={job}", python=python, cwd=Path("/"), check=False)


@pytest.fixture(scope="module")
def profiled(public: Path) -> str:
    """A line of a job's script that leaves a profile in which a rank is slow."""
    simulated = simulate(public / "simulated").run
    return f"cp -r {simulated} prof"


def test_root_follows_a_users_job_as_that_user(
    site: SlurmLab, python: Path, work: Path, profiled: str
) -> None:
    job = submit_as_user(site, work, profiled, "profile_dir=prof")
    ended = post_as_root(site, python, job)
    assert f"job {job} train (COMPLETED): degraded: Rank " in ended.stdout, ended.stderr
    results = work / "prof" / "cluster_analysis_output"
    assert {path.stat().st_uid for path in (results, *results.rglob("*"))} == {NOBODY}


def test_a_link_in_a_profile_shows_nobody_what_only_root_may_read(
    site: SlurmLab, python: Path, work: Path, profiled: str, tmp_path: Path
) -> None:
    secret = tmp_path / "only-for-root"
    secret.write_text(_SECRET)
    secret.chmod(0o600)
    files = "$(find prof -name communication.json -o -name step_trace_time.csv)"
    linked = f"for f in {files}; do ln -sf {secret} $f; done"
    job = submit_as_user(site, work, f"{profiled}\n{linked}", "profile_dir=prof")
    ended = post_as_root(site, python, job)
    assert ended.returncode != 0
    assert _SECRET not in ended.stdout + ended.stderr
    assert not [
        path
        for path in work.rglob("*")
        if path.is_file() and not path.is_symlink() and _SECRET.encode() in path.read_bytes()
    ]


def test_root_makes_no_directory_where_a_users_comment_says(
    site: SlurmLab, python: Path, work: Path, profiled: str, tmp_path: Path
) -> None:
    target = tmp_path / "of-root"
    job = submit_as_user(site, work, profiled, f"profile_dir=prof,profile_results={target}")
    ended = post_as_root(site, python, job)
    assert ended.returncode == 1
    assert "Permission denied" in ended.stdout
    assert not target.exists()


@pytest.mark.parametrize("break_", [" ", "\n"])
def test_a_jobs_name_makes_nobody_root(
    site: SlurmLab, python: Path, work: Path, profiled: str, tmp_path: Path, break_: str
) -> None:
    name = (
        f"x{break_}UserId=root(0) JobState=COMPLETED NodeList=node1 WorkDir={tmp_path} Comment=profile_dir=."
    )
    job = submit_as_user(site, work, profiled, "profile_dir=prof", name)
    ended = post_as_root(site, python, job)
    assert ended.returncode == 1
    assert list(tmp_path.iterdir()) == []
    assert f"job {job}" in ended.stdout + ended.stderr


def test_a_users_job_of_the_spool_is_told_how_it_ended_and_whose_it_was(
    site: SlurmLab, python: Path, work: Path, profiled: str
) -> None:
    job = submit_as_user(site, work, f"{profiled}\nexit 3", "profile_dir=prof", "na = me")
    request = site.spool / "pending" / f"{job}.job"
    site.wait_for_file(request)
    content = request.read_bytes()
    lines = site.drain("--json", python=python, cwd=Path("/"), check=False).splitlines()
    said = {one["key"]: one for one in map(json.loads, lines)}[f"{job}"]
    assert said["state"] == "done", (said, content)
    assert said["outcome"]["job"] == {"id": job, "name": "na = me", "state": "FAILED"}
    assert said["outcome"]["verdict"]["verdict"] == "degraded"


def test_a_name_that_cannot_be_told_from_slurms_words_ends_as_a_named_failure(
    site: SlurmLab, python: Path, work: Path
) -> None:
    job = submit_as_user(site, work, "true", "profile_dir=prof", "x\nJobId=1 UserId=root(0)")
    site.wait_for_file(site.spool / "pending" / f"{job}.job")
    site.drain(python=python, cwd=Path("/"), check=False)
    assert f"job {job}" in (site.spool / "failed" / f"{job}.json").read_text()
