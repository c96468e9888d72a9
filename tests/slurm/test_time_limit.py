"""Last of the directory, because Slurm lets a job run a minute at least."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.slurm.jobs import Pair, SimulatedJob, expect_findings
from tests.slurm.lab import SlurmLab


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_the_findings_of_a_job_that_ran_out_of_time_are_there(
    lab: SlurmLab, simulated: SimulatedJob, followed: Mapping[str, Pair]
) -> None:
    assert lab.wait_for(followed["TIMEOUT"].job) == "TIMEOUT"
    expect_findings(lab, simulated, followed["TIMEOUT"], "TIMEOUT")
