"""Jobs that end more than once: requeued ones, and heterogeneous ones, each part of which ends."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.slurm.jobs import SimulatedJob, expect_findings, slow_ranks, submit, write_script
from tests.slurm.lab import SlurmLab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

# The first run writes no profile and waits to be requeued; the second one does what a training job does.
_FIRST_RUN = "\n[ -e first-run ] || { touch first-run; sleep 300; }\n"
_WAIT_FOR_THE_TEST = "touch second-run; while [ ! -e go-on ]; do sleep 0.1; done"

_PARTS = """\
#!/bin/sh
#SBATCH --job-name=train --nodes=1 --comment={comment}
#SBATCH hetjob
#SBATCH --nodes=1
srun --het-group=0,1 sh -c 'cp -r {captures}/$((SLURM_PROCID+1))/profiler prof/$SLURMD_NODENAME'
"""


def write_script_of_two_runs(work: Path, simulated: SimulatedJob, end: str) -> Path:
    script = write_script(work, simulated, end=end)
    text = script.read_text().replace("\nsrun", _FIRST_RUN + "srun", 1)
    assert _FIRST_RUN in text
    script.write_text(text)
    return script


def is_over(fields: Mapping[str, str]) -> bool:
    return fields["JobState"] == "PENDING" and fields["NodeList"] in ("", "(null)")


def requeue(lab: SlurmLab, work: Path, job: str) -> None:
    """Requeue a job in its first run, and spare us the two minutes that Slurm lets it wait."""
    lab.wait_for_file(work / "first-run")
    lab.run("scontrol", "requeue", job)
    # Not while its first run is still being ended on the node.
    lab.wait_until(lambda: is_over(lab.job_fields(job)))
    # Nor in the second in which it was: the nodes revoked the job's credentials up to this whole second,
    # and one issued within it is refused ("Killing non-startable batch JobId=…: Job credential revoked").
    lab.run("scontrol", "update", f"JobId={job}", "StartTime=now+1")


def test_a_requeued_job_is_analysed_by_the_drain_when_its_last_run_ended_and_only_then(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    script = write_script_of_two_runs(tmp_path, simulated, _WAIT_FOR_THE_TEST)
    job = lab.sbatch("--requeue", script.name, cwd=tmp_path)
    requeue(lab, tmp_path, job)
    lab.wait_for_file(tmp_path / "second-run")
    said = lab.drain()
    assert f"{job} waits: job {job} train (RUNNING): it has not ended" in said
    (tmp_path / "go-on").touch()
    assert lab.wait_for(job) == "COMPLETED"
    assert f"{job} done: job {job} train (COMPLETED): degraded:" in lab.drain()
    findings = tmp_path / "prof" / "cluster_analysis_output" / "findings.json"
    assert slow_ranks(findings) == [simulated.slow_rank]
    assert job not in lab.drain()


def test_the_post_job_of_a_requeued_job_waits_for_its_last_run(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    pair = submit(lab, write_script_of_two_runs(tmp_path, simulated, "true"), "--requeue")
    requeue(lab, tmp_path, pair.job)
    expect_findings(lab, simulated, pair, "COMPLETED")


def test_a_job_that_runs_is_not_analysed(lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path) -> None:
    script = write_script(tmp_path, simulated, end="sleep 300")
    job = lab.sbatch(script.name, cwd=tmp_path)
    lab.wait_for_file(tmp_path / f"written-{job}")
    ended = lab.hook("slurm-post", f"--slurm-job={job}", check=False)
    lab.run("scancel", job)
    assert ended.returncode == 1
    assert ended.stdout == f"job {job} train (RUNNING): it has not ended, so it is not analysed yet\n"


def write_heterogeneous_script(work: Path, simulated: SimulatedJob) -> Path:
    (work / "prof").mkdir()
    table = (simulated.run / "hccl.json").read_text()
    (work / "hccl.json").write_text(table.replace("10.20.0.1", "node1").replace("10.20.0.2", "node2"))
    script = work / "train.sbatch"
    captures = shlex.quote(str(simulated.run / "cluster_profiler"))
    comment = "profile_dir=prof/%N,rank_table=hccl.json"
    script.write_text(_PARTS.format(comment=comment, captures=captures))
    return script


def expect_findings_of_both_parts(work: Path, simulated: SimulatedJob, job: str) -> None:
    assert [path.name for path in work.glob("cluster-run-*")] == [f"cluster-run-{job}"]
    findings = work / f"cluster-run-{job}" / "cluster_analysis_output" / "findings.json"
    assert slow_ranks(findings) == [simulated.slow_rank]
    run = json.loads(findings.read_text())["run"]
    assert (run["ranks"], run["hosts"]) == (8, 2)


def test_a_heterogeneous_job_is_analysed_once_by_its_post_job(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    pair = submit(lab, write_heterogeneous_script(tmp_path, simulated))
    assert lab.wait_for(pair.post_job) == "COMPLETED", pair.log
    assert pair.log.count(f"job {pair.job} train (COMPLETED): degraded:") == 1
    expect_findings_of_both_parts(tmp_path, simulated, pair.job)


def test_a_heterogeneous_job_is_analysed_once_by_the_drain(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    script = write_heterogeneous_script(tmp_path, simulated)
    job = lab.sbatch(script.name, cwd=tmp_path)
    assert lab.wait_for(job) == "COMPLETED"
    lab.wait_for_file(lab.spool / "pending" / f"{job}.job")
    said = [
        line
        for line in lab.drain().splitlines()
        if f" {int(job)} " in line or line.startswith(f"{int(job) + 1} ")
    ]
    assert [line.partition(": degraded")[0] for line in said] == [f"{job} done: job {job} train (COMPLETED)"]
    expect_findings_of_both_parts(tmp_path, simulated, job)
