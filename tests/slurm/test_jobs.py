"""Users: a job, its post-job, and its findings, on a real Slurm of emulated nodes."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_collect.selection.suspects import read_suspects
from cluster_hook.job import ReportedJob, job_to_text
from demo.sshd import SshLab
from tests.needed import needs_sshd
from tests.slurm.jobs import Pair, SimulatedJob, expect_findings, slow_ranks, submit, write_script
from tests.slurm.lab import SlurmLab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "CANCELLED"])
def test_the_findings_of_a_job_are_there_however_it_ended(
    lab: SlurmLab, simulated: SimulatedJob, followed: Mapping[str, Pair], state: str
) -> None:
    assert lab.wait_for(followed[state].job) == state
    expect_findings(lab, simulated, followed[state], state)


def test_a_directory_for_each_node_and_a_rank_table_are_read_where_they_are(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    table = (simulated.run / "hccl.json").read_text()
    (tmp_path / "hccl.json").write_text(table.replace("10.20.0.1", "node3").replace("10.20.0.2", "node4"))
    comment = "profile_dir=prof/%N,rank_table=hccl.json,profile_results=out/%j"
    script = write_script(tmp_path, simulated, comment=comment, target="prof/$SLURMD_NODENAME")
    pair = submit(lab, script, "--nodelist=node[3-4]")
    assert lab.wait_for(pair.post_job) == "COMPLETED", pair.log
    findings = tmp_path / "out" / pair.job / "findings.json"
    assert slow_ranks(findings) == [simulated.slow_rank]
    assert json.loads(findings.read_text())["run"]["hosts"] == 2
    captures = (tmp_path / f"cluster-run-{pair.job}" / "cluster_profiler").glob("*/profiler")
    assert all(capture.is_symlink() for capture in captures)


def test_a_node_that_left_nothing_is_named_and_the_others_are_analysed(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    end = "rm -rf prof/$SLURMD_NODENAME"
    comment = "profile_dir=prof/%N"  # the batch step runs on the first node
    script = write_script(tmp_path, simulated, comment=comment, target="prof/$SLURMD_NODENAME", end=end)
    pair = submit(lab, script)
    assert lab.wait_for(pair.post_job) == "FAILED"
    assert "ExitCode=3:0" in lab.run("scontrol", "-o", "show", "job", pair.post_job).stdout
    assert "2 problems" in pair.log.splitlines()[-1]
    assert "host 1: not collected: there is no directory" in pair.log


@needs_sshd
def test_data_on_the_nodes_own_disks_are_collected_over_ssh(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    with SshLab(tmp_path / "ssh") as ssh:
        lines = []
        for number in range(1, 5):
            server = ssh.start(f"127.0.0.{number + 10}")
            lines += [f"Host node{number}", f"  HostName {server.address}", f"  Port {server.port}"]
        lines += ["Host *", f"  IdentityFile {ssh.identity_file}", f"  UserKnownHostsFile {ssh.known_hosts}"]
        (tmp_path / "ssh_config").write_text("\n".join(lines) + "\n")
        defaults = tmp_path / "site.yaml"
        defaults.write_text(f"version: 1\ndefaults:\n  ssh_config: {tmp_path}/ssh_config\n")
        comment = f"profile_dir={tmp_path}/disk-of-%N,profile_via=ssh"
        target = f"{tmp_path}/disk-of-$SLURMD_NODENAME"
        script = write_script(tmp_path, simulated, comment=comment, target=target)
        # The tests may be those of root, and readers do not run as root unasked.
        hook = (f"--host-defaults={defaults}", "--collect-arg=--columns-as-root", "--keep-raw=suspects")
        pair = submit(lab, script, hook=hook)
        assert lab.wait_for(pair.post_job) == "COMPLETED", pair.log
    run = tmp_path / f"cluster-run-{pair.job}"
    assert slow_ranks(run / "cluster_analysis_output" / "findings.json") == [simulated.slow_rank]
    captures = list((run / "cluster_profiler").glob("[12]/profiler/*_ascend_pt"))
    assert len(captures) == 8
    suspects = read_suspects(run / "cluster_analysis_output" / "findings.json")
    assert simulated.slow_rank in suspects.named
    for capture in captures:
        (rank,) = (int(path.stem.rpartition("_")[2]) for path in capture.glob("profiler_info_*.json"))
        is_whole = (capture / "ASCEND_PROFILER_OUTPUT" / "communication.json").exists()
        assert is_whole == (rank in suspects.ranks), "columns of all, raw files of suspects and their peers"


def test_a_job_that_never_started_is_no_failure_of_its_post_job(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    pair = submit(lab, write_script(tmp_path, simulated), "--begin=now+1hour")
    lab.run("scancel", pair.job)
    assert lab.wait_for(pair.post_job) == "COMPLETED"
    assert "it never started" in pair.log


def test_a_job_without_a_profile_is_a_named_failure_of_its_post_job_alone(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    pair = submit(
        lab, write_script(tmp_path, simulated, comment="other=1"), hook=("--profile-dir", "nowhere")
    )
    assert lab.wait_for(pair.job) == "COMPLETED"
    assert lab.wait_for(pair.post_job) == "FAILED"
    assert f"there is no directory {tmp_path}/nowhere" in pair.log


def test_the_jobs_own_comment_stays_beside_a_directory_that_is_named(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    script = write_script(tmp_path, simulated, comment="other=1")
    pair = submit(lab, script, "--comment=project=x", hook=("--profile-dir", "prof"))
    expect_findings(lab, simulated, pair, "COMPLETED")
    assert lab.job_fields(pair.job)["Comment"] == "project=x,profile_by=post-job"


def test_every_task_of_a_job_array_gets_its_findings(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    script = write_script(
        tmp_path, simulated, comment="profile_dir=prof-%a", target="prof-$SLURM_ARRAY_TASK_ID"
    )
    pair = submit(lab, script, "--array=1-2")
    assert lab.wait_for(pair.post_job) == "COMPLETED", pair.log
    for task in (1, 2):
        findings = tmp_path / f"prof-{task}" / "cluster_analysis_output" / "findings.json"
        assert slow_ranks(findings) == [simulated.slow_rank]
        assert f"job {pair.job}_{task} train" in pair.log


def test_a_job_that_names_no_profile_runs_and_the_user_is_told_what_is_missing(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    script = write_script(tmp_path, simulated, comment="other=1")
    ended = lab.hook("slurm-submit", "--parsable", script.name, cwd=tmp_path, check=False)
    assert ended.returncode == 3
    job = ended.stdout.strip()
    assert f"after its end: cluster-hook slurm-post --slurm-job {job} --profile-dir DIR\n" in ended.stderr
    assert lab.wait_for(job) == "COMPLETED"


def test_what_sbatch_refuses_is_said_in_its_words_and_nothing_is_submitted(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    script = write_script(tmp_path, simulated)
    ended = lab.hook("slurm-submit", script.name, "--partition=none-such", cwd=tmp_path, check=False)
    assert ended.returncode == 1
    assert "invalid partition" in ended.stderr
    assert ended.stdout == ""


def test_a_job_that_slurm_does_not_know_is_named(lab: SlurmLab) -> None:
    ended = lab.hook("slurm-post", "--slurm-job=99999", check=False)
    assert ended.returncode == 1
    assert "99999" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_job_that_slurm_has_forgotten_is_followed_with_what_was_known_at_its_submission(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path: Path
) -> None:
    shutil.copytree(simulated.run / "cluster_profiler", tmp_path / "prof")
    known = ReportedJob("99998", "train", "ada", "PENDING", (), tmp_path, "profile_dir=prof")
    known = replace(known, uid=os.geteuid(), began_s=1.0)
    ended = lab.hook("slurm-post", "--slurm-job=99998", f"--known-job={job_to_text(known)}")
    assert ended.stdout.splitlines()[-1].startswith("job 99998 train: degraded:")


def test_nothing_of_this_leaves_a_node_drained(lab: SlurmLab, followed: Mapping[str, Pair]) -> None:
    lab.wait_for(followed["FAILED"].post_job)
    states = set(lab.run("sinfo", "-h", "-N", "-o", "%T").stdout.split())
    assert states <= {"idle", "mixed", "allocated", "completing"}


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
