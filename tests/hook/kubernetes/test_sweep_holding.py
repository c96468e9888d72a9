"""Jobs that are deleted soon, data that cannot be read yet, and where people find the report."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import pytest

from cluster_hook.kubernetes.readable import why_unreadable
from cluster_hook.kubernetes.trainingjob import FINALIZER
from tests.commands import HANGS_S
from tests.hook.kubernetes.sweep_site import BATCH, ENDED, RUNNING, Site
from tests.hook.public_python import NOBODY, public_directory


def job_of(site: Site) -> dict[str, Any]:
    return site.cluster.objects[BATCH, "training", "jobs", "train"]


def finalizers(site: Site) -> list[str]:
    return list(job_of(site)["metadata"].get("finalizers", []))


@pytest.mark.parametrize(("ttl_s", "held"), [(0, True), (60, True), (86400, False), (None, False)])
def test_a_job_that_is_deleted_soon_after_its_end_is_held_while_it_runs(
    site: Site, ttl_s: int | None, held: bool
) -> None:
    spec = {} if ttl_s is None else {"ttlSecondsAfterFinished": ttl_s}
    site.add_job("train", status=RUNNING, spec=spec)
    job_of(site)["metadata"]["finalizers"] = ["example.org/other"]
    site.sweep()
    assert finalizers(site) == ["example.org/other", *([FINALIZER] if held else [])]


def test_a_job_is_let_go_when_its_sweeps_are_over(site: Site) -> None:
    site.add_job("train")
    job_of(site)["metadata"]["finalizers"] = [FINALIZER, "example.org/other"]
    assert site.sweep(n_attempts=2) == [("jobs/train", "retried")]
    assert FINALIZER in finalizers(site)
    assert site.sweep(n_attempts=2) == [("jobs/train", "failed")]
    assert finalizers(site) == ["example.org/other"]


def test_a_job_that_was_deleted_while_it_ran_is_let_go_at_once(site: Site) -> None:
    site.add_job("train", status=RUNNING)
    job_of(site)["metadata"] |= {"finalizers": [FINALIZER], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    site.sweep()
    assert finalizers(site) == []


@pytest.mark.slow
def test_a_job_that_was_deleted_after_its_end_is_analysed_and_then_let_go(
    site: Site, simulated: Path
) -> None:
    site.add_data(simulated, "train")
    site.add_job("train")
    job_of(site)["metadata"] |= {"finalizers": [FINALIZER], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert site.sweep(results_url="https://reports.example/") == [("jobs/train", "done")]
    assert finalizers(site) == []
    report = site.said("train", "report")
    assert report == f"https://reports.example/{site.said('train', 'results')}/report.html"


@pytest.mark.slow
def test_captures_of_another_job_on_the_volume_are_not_this_jobs(site: Site, simulated: Path) -> None:
    site.add_data(simulated, "train")  # written in 2023
    site.add_job("train", status={**ENDED, "startTime": "2025-12-31T00:00:00Z"})
    assert site.sweep(n_attempts=1) == [("jobs/train", "failed")]
    assert "this job wrote no profile" in site.said("train", "summary")


def as_nobody(top: Path, said: Any) -> None:
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    said.put(why_unreadable(top))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can look as another user")
@pytest.mark.parametrize(("mode", "closed"), [(0o750, True), (0o700, True), (0o755, False)])
def test_what_root_wrote_for_itself_is_told_with_what_to_do(mode: int, closed: bool) -> None:
    with public_directory() as public:
        capture = public / "job" / "x_ascend_pt"
        capture.mkdir(parents=True)
        (capture / "profiler_info_0.json").touch()
        capture.chmod(mode)
        fork = multiprocessing.get_context("fork")
        said = fork.Queue()
        child = fork.Process(target=as_nobody, args=(public / "job", said))
        child.start()
        why = said.get(timeout=HANGS_S)
        child.join(HANGS_S)
    if closed:
        assert "job/x_ascend_pt first (user 0, group 0, mode 07" in why
        assert "umask 022" in why
        assert "chmod -R a+rX" in why
    else:
        assert why == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_a_job_with_unreadable_data_is_told_once_and_analysed_when_they_can_be_read(
    site: Site, simulated: Path
) -> None:
    data = site.add_data(simulated, "train")
    data.chmod(0)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 120))
    site.add_job("train", status={**ENDED, "completionTime": now})
    assert site.sweep() == [("jobs/train", "unreadable")]
    assert "chmod -R a+rX" in site.said("train", "summary")
    assert json.loads(site.said("train", "attempts") or "0") == 0
    data.chmod(0o755)
    assert site.sweep() == [("jobs/train", "done")]
