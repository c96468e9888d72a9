"""Jobs that run one after the other and write to one directory."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from tests.slurm.jobs import SimulatedJob, expect_findings, submit, write_script
from tests.slurm.lab import SlurmLab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

_FAILS_EARLY = "#!/bin/sh\n#SBATCH --comment=profile_dir=prof --nodes=2 --job-name=train\nexit 1\n"


def test_a_job_that_fails_before_it_wrote_a_profile_is_not_told_the_previous_jobs_findings(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    first = submit(lab, write_script(tmp_path, simulated))
    assert lab.wait_for(first.post_job) == "COMPLETED", first.log
    script = tmp_path / "fails.sbatch"
    script.write_text(_FAILS_EARLY)
    second = submit(lab, script)
    assert lab.wait_for(second.job) == "FAILED"
    assert lab.wait_for(second.post_job) == "FAILED"
    said = second.log.splitlines()[-1]
    assert f"job {second.job} train (FAILED): not analysed: this job wrote no profile" in said
    assert "Rank" not in said


def test_captures_of_an_earlier_job_are_not_mixed_with_the_jobs_own(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    old = tmp_path / "prof" / "old"
    shutil.copytree(simulated.run / "cluster_profiler", old)
    for path in old.rglob("*"):
        os.utime(path, (time.time() - 1000,) * 2)
    pair = submit(lab, write_script(tmp_path, simulated))
    lab.wait_for(pair.post_job)
    expect_findings(lab, simulated, pair, "COMPLETED")
    linked = tmp_path / f"cluster-captures-{pair.job}"
    assert not list((linked / "old").rglob("*_ascend_pt"))
    assert len(list(linked.glob("*_ascend_pt"))) == 8
