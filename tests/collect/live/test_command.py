"""`cluster-collect --live` as people call it: findings of a running job, its suspects closer, and Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cluster_collect.arguments import parse_arguments
from cluster_collect.live.options import LiveOptions
from cluster_collect.live.outcome import LOST
from tests.collect.live.hosts import ROOT, Cluster
from tests.commands import ended, ran, wait_until


def command(cluster: Cluster, *arguments: str) -> list[str]:
    """Write an inventory of the cluster; return the command line with it."""
    lab = cluster.lab
    no_settings = cluster.directory / "ssh_config"
    no_settings.touch()
    document = {
        "version": 1,
        "defaults": {
            "user": lab.user,
            "identity_file": str(lab.identity_file),
            "known_hosts": str(lab.known_hosts),
            "ssh_config": str(no_settings),
        },
        "hosts": [
            {
                "address": host.server.address,
                "port": host.server.port,
                "server_id": f"node{host.number}",
                "profiler_root": str(host.directory / "prof"),
                "transport": ("asyncssh", "paramiko")[host.number % 2],
            }
            for host in cluster.hosts
        ],
    }
    inventory = cluster.directory / "hosts.yaml"
    inventory.write_text(yaml.safe_dump(document))
    return [sys.executable, "-m", "cluster_collect", "--inventory", str(inventory), *arguments]


@pytest.mark.slow
@pytest.mark.timeout(480)  # three analyses, on a machine that may have much else to do
def test_one_command_names_the_slow_rank_of_a_running_job_and_looks_closer_at_it(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.add(2)
    cluster.job(n_ranks=4, step_s=0.1, environment=cluster.leaves("slow_rank:1.5@5")).start()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = tmp_path / "run"
    words = command(cluster, "--live", "3", "--zoom", "--output", str(run))
    done = ran(words, cwd=tmp_path, env=environment, timeout=420)
    assert done.returncode == 0, done.stderr
    assert "rank 5" in done.stdout
    assert re.search(r"capturing steps \d+–\d+ on 2 of 2 hosts", done.stderr)
    zoomed = {path.name for path in (tmp_path / "run-suspects").rglob("profiler_info_*.json")}
    assert "profiler_info_5.json" in zoomed
    assert 1 < len(zoomed) < 8, "peers to compare with, and not everybody"
    assert len(list(run.rglob("profiler_info_*.json"))) == 8


@pytest.mark.slow
@pytest.mark.timeout(400)  # steps of a job that runs, on a machine that may have much else to do
def test_ctrl_c_leaves_the_job_as_it_was(cluster: Cluster, tmp_path: Path) -> None:
    cluster.add(2)
    cluster.job(step_s=0.1).start()
    paths = [host.configuration / "profiler_config.json" for host in cluster.hosts]
    before = [path.read_bytes() for path in paths]
    process = subprocess.Popen(
        command(cluster, "--live", "3", "--output", str(tmp_path / "never")),
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    wait_until(lambda: all(json.loads(path.read_text())["start_step"] > 0 for path in paths), process)
    process.send_signal(signal.SIGINT)
    assert ended(process)[1].count("interrupted by SIGINT") == 1
    assert process.returncode == 130
    assert [path.read_bytes() for path in paths] == before


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--zoom"], "--zoom goes with --live N"),
        (["--live", "500"], "more than 50 steps"),
        (["--live", "3", "--require", "most"], "--require is 'all', or 'quorum N'"),
        (["--live", "3", "--live-dir", "/a=b"], "without = quotes or backslashes"),
        (["--live", "3", "--live-dir", "a/b"], "an absolute path"),
        (["--live", "3", "--step-pattern", "step"], "one group"),
        (["--live", "3", "--every", "30"], "write it like 30m or 2h"),
        (["--live", "3", "--check"], "--dry-run sends nothing either"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_asked(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        parse_arguments(["--hosts", "a", *arguments])
    assert stop.value.code == 2
    assert why in " ".join(capsys.readouterr().err.split())


def live_of(words: list[str]) -> LiveOptions:
    live = parse_arguments(words).live
    assert live is not None
    return live


def test_what_deploy_runs_is_a_watch() -> None:
    unit = (ROOT / "deploy/systemd/cluster-live.service").read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    program, *words = shlex.split(line.replace("$CLUSTER_LIVE_OPTIONS", "--require quorum 120"))
    assert program.endswith("/cluster-collect")
    assert (live_of(words).every_s, live_of(words).keep, live_of(words).quorum) == (1800.0, 48, 120)
    manifest = yaml.safe_load((ROOT / "deploy/kubernetes/live/watch.yaml").read_text())
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["cluster-collect"]
    assert live_of(container["args"]).every_s == 1800.0


def test_the_page_says_first_what_was_not_tried_and_lists_every_word_for_a_lost_host() -> None:
    text = (ROOT / "docs" / "live.md").read_text()
    assert text.split("\n\n")[1].startswith("**Not tried on real hardware.**")
    for word, meaning in LOST.items():
        assert f"| `{word}` | {meaning} |" in text
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / "docs" / target).exists(), target
