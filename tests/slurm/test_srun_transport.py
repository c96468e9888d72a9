"""Collecting by steps of Slurm, without SSH: on nodes of jobs that ended, busy ones, and our own job's."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cluster_collect.cli import main as cluster_collect
from cluster_reduce.form import SUFFIX
from cluster_run.manifest import HostOutcome, read_manifest
from tests.slurm.jobs import SimulatedJob, slow_ranks, submit, write_script
from tests.slurm.lab import SlurmLab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]
_OPTIONS = ("--set", "transport=srun", "--columns-as-root", "--attempts=1")


def files_below(top: Path) -> dict[str, bytes]:
    return {path.relative_to(top).as_posix(): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def collect(
    lab: SlurmLab, output: Path, hosts: str, root: Path, *options: str
) -> subprocess.CompletedProcess[str]:
    where = ("--hosts", hosts, "--profiler-root", str(root), "--output", str(output))
    return lab.run(*where, *_OPTIONS, *options, main=cluster_collect, cwd=output.parent, check=False)


def hosts_of(run: Path) -> tuple[HostOutcome, ...]:
    return read_manifest(run / "manifest.json").hosts


def is_idle(lab: SlurmLab) -> bool:
    return lab.run("squeue", "-h", "-n", "cluster-collect").stdout == ""


def test_a_node_is_read_in_a_small_job_that_ends_with_it(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    root = simulated.profiler_root
    whole = collect(lab, tmp_path / "whole", "node3", root, "--what", "full")
    assert whole.returncode == 0, whole.stdout + whole.stderr
    (outcome,) = hosts_of(tmp_path / "whole")
    assert (outcome.state, outcome.reason) == ("complete", "")
    assert outcome.clock_uncertainty_ms is not None, "the clock is asked while the shell waits"
    assert files_below(tmp_path / "whole" / "cluster_profiler" / "1" / "profiler") == files_below(root)
    reduced = collect(lab, tmp_path / "columns", "node3", root, "--what", "columns")
    assert reduced.returncode == 0, reduced.stdout + reduced.stderr
    (outcome,) = hosts_of(tmp_path / "columns")
    assert (outcome.state, outcome.raw_because) == ("complete", "")
    assert len(list((tmp_path / "columns").rglob(f"communication.json{SUFFIX}"))) == 4
    lab.wait_until(lambda: is_idle(lab), "a job of the collector is left")


def test_a_collector_that_is_killed_leaves_no_job_behind(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    root = simulated.profiler_root
    where = ("--hosts=node3", f"--profiler-root={root}", "--output=run", "--host-bandwidth=2k")
    with subprocess.Popen(
        [sys.executable, "-m", "cluster_collect", *where, *_OPTIONS, "--what=full"],
        cwd=tmp_path, env=dict(lab.environment), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as collector:  # fmt: skip
        lab.wait_until(lambda: not is_idle(lab), "its job does not appear")
        time.sleep(1.0)
        collector.kill()
    lab.wait_until(lambda: is_idle(lab), "its job is still there")


def test_a_node_that_slurm_does_not_know_and_one_that_it_does_not_give_are_failures_of_their_own(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    root = simulated.profiler_root
    lab.run("scontrol", "update", "nodename=node2", "state=drain", "reason=busy")
    try:
        ended = collect(lab, tmp_path / "run", "node[2,4,9]", root, "--connect-deadline=2", "--json")
    finally:
        lab.run("scontrol", "update", "nodename=node2", "state=resume")
    assert ended.returncode == 3, ended.stdout + ended.stderr
    busy, fine, unknown = json.loads(ended.stdout)["hosts"]
    failures = (busy["failure"], fine["state"], unknown["failure"])
    assert failures == ("unreachable", "complete", "remote-failure")
    assert "no place on it within 2 s" in busy["reason"]
    assert "Invalid node name" in unknown["reason"]
    assert busy["command"] == "", "ssh is not how it is reached"
    lab.wait_until(lambda: is_idle(lab), "a job of the collector is left")


def test_inside_a_job_its_own_nodes_are_read_by_steps_beside_it(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    root = simulated.profiler_root
    collector = f"{sys.executable} -m cluster_collect --hosts $SLURM_JOB_NODELIST --profiler-root {root}"
    script = tmp_path / "job.sbatch"
    script.write_text(
        "#!/bin/sh\n#SBATCH --nodes=1\n#SBATCH --exclusive\n"
        f"{collector} --output run --set transport=srun --connect-deadline=5 > said 2>&1\n"
    )
    job = lab.sbatch(script.name, cwd=tmp_path)
    assert lab.wait_for(job) == "COMPLETED", (tmp_path / "said").read_text()
    assert {one.state for one in hosts_of(tmp_path / "run")} == {"complete"}


def test_a_job_that_says_srun_is_followed_without_ssh(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    comment = f"profile_dir={tmp_path}/disk-of-%N,profile_via=srun"
    target = f"{tmp_path}/disk-of-$SLURMD_NODENAME"
    script = write_script(tmp_path, simulated, comment=comment, target=target)
    pair = submit(lab, script, hook=("--collect-arg=--columns-as-root",))
    assert lab.wait_for(pair.post_job) == "COMPLETED", pair.log
    run = tmp_path / f"cluster-run-{pair.job}"
    assert slow_ranks(run / "cluster_analysis_output" / "findings.json") == [simulated.slow_rank]
    assert len(list(run.rglob(f"communication.json{SUFFIX}"))) == 8
