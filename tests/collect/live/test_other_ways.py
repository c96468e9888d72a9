"""MindSpore's file and vLLM's endpoints, by stand-ins made after what is known: their own code is not run."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_collect.live.outcome import NotCapturedError
from demo.sshd import free_port
from tests.collect.live.hosts import HERE, Cluster, LiveHost, wait_until_started
from tests.collect.live.test_file import LIVE, captured
from tests.commands import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
PATTERN = r"step: (\d+)"


def start_mindspore(cluster: Cluster, host: LiveHost, n_ranks: int = 2, step_s: float = 0.25) -> Path:
    job = host.directory / "job"
    job.mkdir()
    for rank in range(n_ranks):
        environment = {
            "PATH": os.environ["PATH"],
            "RANK_ID": str(rank),
            "RANK_SIZE": str(n_ranks),
            "MS_SCHED_HOST": "127.0.0.2",
            "MS_SCHED_PORT": "8118",
        }
        arguments = map(str, (HERE / "standin_mindspore.py", host.configuration, job, step_s))
        command = [sys.executable, *arguments]
        cluster.processes.append(host.enter(command, environment, job / f"rank{rank}.log"))
    wait_until_started(job, n_ranks)
    return job


def test_mindspores_range_holds_both_ends_and_the_file_asks_for_nothing_afterwards(
    cluster: Cluster, host: LiveHost, tmp_path: Path
) -> None:
    job = start_mindspore(cluster, host)
    live = replace(LIVE, step_log=str(job / "train.log"), step_pattern=PATTERN, job=str(host.configuration))
    with pytest.raises(NotCapturedError, match="--step-log"):
        captured(cluster, tmp_path / "no", replace(live, step_log=""))
    with pytest.raises(NotCapturedError, match="do not say where their file is"):
        captured(cluster, tmp_path / "no", replace(live, job=""))
    result = captured(cluster, tmp_path / "run", live).captured
    assert result.lost == {}
    assert result.notes == ()
    left = json.loads((host.configuration / "profiler_config.json").read_text())
    assert (left["start_step"], left["stop_step"]) == (-1, -1), "the next job would begin to capture"
    assert len(list((tmp_path / "run").rglob("step_trace_time.csv"))) == 2


def test_a_range_that_was_left_over_in_mindspores_file_stops_us_until_it_is_past(
    cluster: Cluster, host: LiveHost, tmp_path: Path
) -> None:
    left = {"start_step": 900_000, "stop_step": 900_001, "prof_path": str(host.directory / "theirs")}
    (host.configuration / "profiler_config.json").write_text(json.dumps(left))
    job = start_mindspore(cluster, host)
    live = replace(LIVE, step_log=str(job / "train.log"), step_pattern=PATTERN, job=str(host.configuration))
    with pytest.raises(NotCapturedError, match="asks for steps 900000"):
        captured(cluster, tmp_path / "run", live)
    assert not (host.directory / "theirs").exists()


def test_servers_of_vllm_are_told_at_once_and_one_without_a_profiler_is_named(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.add(2)
    for host in cluster.hosts:
        profiles = host.directory / "profiles"
        profiles.mkdir()
        (profiles / "old_1_20250101000000000_ascend_pt").mkdir()
        os.utime(profiles / "old_1_20250101000000000_ascend_pt", (1e9, 1e9))
        port = free_port("127.0.0.1")
        settings = {"profiler": "torch", "torch_profiler_dir": str(profiles)} if host.number == 0 else {}
        command = [sys.executable, str(host.directory / "vllm"), "serve", "--port", str(port)]
        command += ["--profiler-config", json.dumps(settings)] if settings else []
        # `vllm serve` is a script of that name.
        (host.directory / "vllm").write_text((HERE / "standin_vllm.py").read_text())
        environment = {"PATH": os.environ["PATH"], "VLLM_TORCH_PROFILER_DIR": str(profiles)}
        cluster.processes.append(host.enter(command, environment, host.directory / "vllm.log"))
        wait_until((host.directory / "serves").exists, cluster.processes[-1])
    result = captured(cluster, tmp_path / "run", replace(LIVE, quorum=1)).captured
    assert {host: why.word for host, why in result.lost.items()} == {"2": "refused"}
    assert "--profiler-config" in result.lost[next(iter(result.lost))].reason
    files = list((tmp_path / "run").rglob("step_trace_time.csv"))
    assert len(files) == 1
    assert "old_1" not in str(files)
