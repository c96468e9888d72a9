"""The epilog as an administrator installs it: on a Slurm that runs and was not told of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.conftest import REPOSITORY, why_not_here
from tests.slurm.lab import SlurmLab, start_lab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]


@pytest.fixture
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmLab]:
    """A Slurm of its own, which nobody has told of the epilog yet."""
    if why_not_here():
        pytest.skip(why_not_here())
    root = tmp_path_factory.mktemp("site")
    cluster = start_lab(root, REPOSITORY / "deploy" / "slurm" / "epilog_slurmctld.sh", 1, has_epilog=False)
    try:
        yield cluster
    finally:
        cluster.stop()


def check(lab: SlurmLab, *options: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "cluster_hook", "check", f"--spool={lab.spool}", *options)
    return lab.run(*command, check=False)


def run_job(lab: SlurmLab) -> Path:
    """Run a job that asks for the hook; return where its request belongs."""
    job = lab.run(
        "sbatch", "--parsable", "--comment=profile_dir=p", "--output=/dev/null", "--wrap", "true"
    ).stdout.strip()
    assert lab.wait_for(job) == "COMPLETED"
    return lab.spool / "pending" / f"{job}-0.job"


def test_the_epilog_runs_when_check_says_so_and_not_before(running: SlurmLab) -> None:
    said = check(running)
    assert said.returncode == 1
    assert "problem: slurm.conf names no EpilogSlurmctld" in said.stdout

    slurm_conf = running.root / "slurm.conf"
    slurm_conf.write_text(slurm_conf.read_text() + f"EpilogSlurmctld={running.root}/epilog.sh\n")
    running.run("scontrol", "reconfigure")
    request = run_job(running)
    said = check(running)
    if "ok: the epilog runs" in said.stdout:  # a Slurm where this is enough
        running.wait_for_file(request)
    else:
        assert "restart slurmctld" in said.stdout
        assert "the epilog did not run" in check(running, "--probe").stdout
        assert not request.exists()

    running.restart_controller()
    assert "unknown: no job has ended since slurmctld started" in check(running).stdout
    said = check(running, "--probe")
    assert "ok: the epilog ran for job" in said.stdout
    running.wait_for_file(run_job(running))
    assert "ok: the epilog runs: last" in check(running).stdout


def test_check_says_whether_a_drain_works(running: SlurmLab) -> None:
    assert "problem: no drain has ever run" in check(running).stdout
    running.run(sys.executable, "-m", "cluster_hook", "drain", f"--spool={running.spool}")
    assert "ok: the drain runs: last" in check(running).stdout
    (running.spool / "pending").chmod(0o777)
    assert "can be written by others" in check(running).stdout
