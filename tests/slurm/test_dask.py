"""Dask on Slurm's nodes gives the findings of one process, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster_analysis.cli import main as analyse
from tests.slurm.jobs import SimulatedJob, submit, write_script
from tests.slurm.lab import SlurmLab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]


def findings_in(work: Path) -> str:
    """The findings of a job that ran in `work`, without its paths and command."""
    document = json.loads((work / "prof" / "cluster_analysis_output" / "findings.json").read_text())
    del document["run"]["path"], document["run"]["command"], document["run"]["mapping"]
    return json.dumps(document)


@pytest.fixture(scope="module")
def findings_of_one_process(
    simulated: SimulatedJob, lab: SlurmLab, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The job's captures in one directory, as the training job leaves them, analysed in one process."""
    work = tmp_path_factory.mktemp("one-process")
    script = write_script(work, simulated)
    job = lab.sbatch("--comment=none", script.name, cwd=work)
    assert lab.wait_for(job) == "COMPLETED"
    lab.run("prof", "--scheduler=threads", "--workers=1", "-q", main=analyse, cwd=work)
    return findings_in(work)


def test_workers_that_srun_started_on_the_post_jobs_nodes(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path, findings_of_one_process: str
) -> None:
    hook = ("--scheduler=srun", "--post-nodes=2")
    pair = submit(lab, write_script(tmp_path, simulated), hook=hook)
    assert lab.wait_for(pair.post_job) == "COMPLETED", pair.log
    assert "on this node alone" not in pair.log
    assert findings_in(tmp_path) == findings_of_one_process
    assert not list(tmp_path.glob(".cluster-hook-dask-*")), "no key is left behind"


def test_workers_that_dask_jobqueue_asked_for(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path, findings_of_one_process: str
) -> None:
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed here: pip install '.[slurm]'")
    environment = {
        "DASK_JOBQUEUE__SLURM__MEMORY": "1GiB",
        "DASK_JOBQUEUE__SLURM__LOG_DIRECTORY": str(tmp_path),
    }
    pair = submit(
        lab, write_script(tmp_path, simulated), hook=("--scheduler=slurm",), environment=environment
    )
    assert lab.wait_for(pair.post_job) == "COMPLETED", pair.log
    assert findings_in(tmp_path) == findings_of_one_process


def test_a_node_alone_does_the_work_when_srun_cannot_start_dask(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path, findings_of_one_process: str
) -> None:
    pair = submit(
        lab, write_script(tmp_path, simulated), hook=("--scheduler=srun", "--dask-interface=none-such")
    )
    assert lab.wait_for(pair.post_job) == "COMPLETED", pair.log
    assert "analysing on this node alone" in pair.log
    assert findings_in(tmp_path) == findings_of_one_process
