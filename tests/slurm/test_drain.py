"""Administrators: the epilog and the drain, on a real Slurm of emulated nodes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.hook.http_server import mailbox
from tests.slurm.jobs import Pair, SimulatedJob, slow_ranks, write_script
from tests.slurm.lab import SlurmLab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]


def submit_alone(lab: SlurmLab, script: Path, *sbatch: str) -> str:
    """Submit a job without a post-job; return its number."""
    return lab.sbatch(*sbatch, script.name, cwd=script.parent)


def wait_for_request(lab: SlurmLab, job: str) -> None:
    lab.wait_for(job)
    lab.wait_for_file(lab.spool / "pending" / f"{job}.job")


def test_a_job_that_asks_by_its_comment_is_analysed_once_and_the_chat_tool_and_prometheus_hear_of_it(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    job = submit_alone(lab, write_script(tmp_path, simulated))
    wait_for_request(lab, job)
    metrics = tmp_path / "textfile"
    metrics.mkdir()
    with mailbox() as box:
        secret = tmp_path / "webhook"
        secret.write_text(box.url)
        telling = (f"--webhook-file={secret}", "--webhook-format=slack", f"--prometheus-dir={metrics}")
        first = lab.drain(*telling)
        ((_, body),) = box.received
    assert f"{job} done: job {job} train (COMPLETED): degraded:" in first
    assert f"Rank {simulated.slow_rank} " in json.loads(body)["text"]
    text = (metrics / f"cluster_analysis_{job}.prom").read_text()
    assert f'cluster_analysis_verdict{{job_id="{job}",verdict="degraded"}} 1' in text
    findings = tmp_path / "prof" / "cluster_analysis_output" / "findings.json"
    assert slow_ranks(findings) == [simulated.slow_rank]
    written = findings.stat()
    assert lab.drain() == ""
    assert (findings.stat().st_mtime_ns, findings.stat().st_ino) == (written.st_mtime_ns, written.st_ino)


@pytest.mark.parametrize(("end", "state"), [("exit 3", "FAILED"), ("sleep 300", "CANCELLED")])
def test_a_job_that_ends_badly_is_analysed_by_the_drain(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path, end: str, state: str
) -> None:
    job = submit_alone(lab, write_script(tmp_path, simulated, end=end))
    lab.wait_for_file(tmp_path / f"written-{job}")
    if state == "CANCELLED":
        lab.run("scancel", job)
    wait_for_request(lab, job)
    assert f"{job} done: job {job} train ({state}): degraded:" in lab.drain()


def test_a_drain_that_is_killed_in_the_middle_of_an_analysis_loses_no_request(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    job = submit_alone(lab, write_script(tmp_path, simulated))
    wait_for_request(lab, job)
    first = subprocess.Popen(
        [sys.executable, "-m", "cluster_hook", "drain", f"--spool={lab.spool}"],
        env=dict(lab.environment), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    lab.wait_for_file(lab.spool / "active" / f"{job}.job")
    first.kill()
    first.wait()
    end_s = time.monotonic() + 120
    said = ""
    while f"{job} done" not in said:
        assert time.monotonic() < end_s, "the request was lost"
        said = lab.drain("--retry-after=0.1")
    assert slow_ranks(tmp_path / "prof" / "cluster_analysis_output" / "findings.json") == [
        simulated.slow_rank
    ]


def test_a_job_that_has_a_post_job_and_the_post_job_itself_are_left_to_each_other(
    lab: SlurmLab, followed: Mapping[str, Pair]
) -> None:
    pair = followed["COMPLETED"]
    lab.wait_for(pair.post_job)
    lab.run("scontrol", "ping")
    dropped = {path.name.partition("-")[0] for path in lab.spool.rglob("*.job")}
    finished = {path.name.partition("-")[0] for path in lab.spool.rglob("*.json")}
    assert not {pair.job, pair.post_job} & (dropped | finished)


def test_an_epilog_that_cannot_write_costs_the_job_and_the_nodes_nothing(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    pending = lab.spool / "pending"
    pending.rename(lab.spool / "hidden")
    try:
        assert lab.wait_for(submit_alone(lab, write_script(tmp_path, simulated))) == "COMPLETED"
        time.sleep(0.5)
        states = set(lab.run("sinfo", "-h", "-N", "-o", "%T").stdout.split())
    finally:
        (lab.spool / "hidden").rename(pending)
    assert not {state for state in states if state.startswith(("drain", "down"))}
