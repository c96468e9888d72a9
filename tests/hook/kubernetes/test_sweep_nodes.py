"""Data on the nodes' own disks: the sweep asks, a collector on each node brings, one run is analysed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from cluster_hook.cli import main
from cluster_hook.kubernetes.node_exchange import NodeRequest, read_ended, write_request
from cluster_hook.kubernetes.trainingjob import PREFIX
from cluster_run.errors import ExitCode
from tests.commands import HANGS_S
from tests.hook.kubernetes.sweep_nodes import NO_TIME, NODES, Nodes, ran_until, rank_table, touch_all
from tests.hook.kubernetes.sweep_site import ENDED, RUNNING, VOLCANO


@pytest.mark.slow
def test_what_lies_on_two_nodes_is_collected_there_analysed_as_one_run_and_cleaned_up(
    nodes: Nodes, simulated: Path
) -> None:
    nodes.site.cluster.add("/api/v1", "configmaps", "rings-config-train", data=rank_table(simulated))
    nodes.add_job(simulated, status=ran_until(time.time() - 120))
    earlier = nodes.disk("node-a") / "jobs" / "train" / "earlier_ascend_pt"
    shutil.copytree(next((nodes.disk("node-a") / "jobs" / "train").glob("*_ascend_pt")), earlier)
    touch_all(nodes.disk("node-a"), time.time() - 600)
    touch_all(nodes.disk("node-b"), time.time() - 600)
    touch_all(earlier, 1_700_000_000)
    assert nodes.sweep() == [("jobs/train", "later")]
    nodes.collect("node-a")
    assert not list(nodes.exchange.rglob("earlier_ascend_pt")), "it began before the job did"
    assert nodes.sweep() == [("jobs/train", "later")], "the other node has not answered yet"
    nodes.collect("node-b")
    assert nodes.sweep() == [("jobs/train", "done")]
    findings = nodes.result("findings.json")
    assert (findings["run"]["ranks"], findings["run"]["hosts"], findings["problems"]) == (8, 2, [])
    assert (findings["findings"][0]["ranks"], findings["findings"][0]["hosts"]) == ([7], ["2"])
    assert nodes.result("cluster-hook.json")["exit_code"] == ExitCode.DONE
    assert list(nodes.exchange.iterdir()) == []
    assert len(list(nodes.disk("node-b").rglob("*_ascend_pt"))) == 4, "the nodes' own data stay"


@pytest.mark.slow
def test_a_node_whose_collector_is_silent_is_named_and_costs_its_ranks_only(
    nodes: Nodes, simulated: Path
) -> None:
    nodes.site.cluster.add("/api/v1", "configmaps", "rings-config-train", data=rank_table(simulated))
    nodes.add_job(simulated)
    nodes.sweep()
    nodes.collect("node-b")
    assert nodes.sweep() == [("jobs/train", "later")]
    assert nodes.sweep(node_patience_s=0.0) == [("jobs/train", "done")]
    findings = nodes.result("findings.json")
    assert (findings["run"]["ranks"], findings["run"]["expected_ranks"]) == (4, 8)
    told = [one["reason"] for one in findings["problems"] if one.get("host") == "1"]
    assert any("collector did not answer" in reason for reason in told)
    assert nodes.result("cluster-hook.json")["exit_code"] == ExitCode.INCOMPLETE
    assert "node-a" not in json.dumps(findings)
    assert list(nodes.exchange.iterdir()) == []


@pytest.mark.slow
def test_what_a_node_could_give_only_in_part_is_told_on_the_job(nodes: Nodes, simulated: Path) -> None:
    nodes.add_job(simulated)
    behind = next((nodes.disk("node-b") / "jobs" / "train").glob("*_ascend_pt"))
    elsewhere = behind.rename(nodes.root / behind.name)
    behind.symlink_to(elsewhere)
    nodes.sweep()
    for node in NODES:
        nodes.collect(node)
    assert nodes.sweep() == [("jobs/train", "done")]
    assert "host 2: " in nodes.site.said("train", "summary")
    assert "link" in nodes.site.said("train", "summary")
    assert nodes.result("findings.json")["run"]["ranks"] == 7
    assert nodes.result("cluster-hook.json")["exit_code"] == ExitCode.INCOMPLETE


@pytest.mark.slow
def test_a_node_that_cannot_give_what_is_asked_says_why_and_nobody_waits_for_it(
    nodes: Nodes, simulated: Path
) -> None:
    nodes.add_job(simulated)
    shutil.rmtree(nodes.disk("node-a") / "jobs")
    nodes.sweep()
    assert "there is no directory jobs/train on the node" in nodes.collect("node-a")
    nodes.collect("node-b")
    assert nodes.sweep() == [("jobs/train", "done")]
    problems = nodes.result("findings.json")["problems"]
    assert any("there is no directory jobs/train" in one["reason"] for one in problems)
    assert nodes.result("cluster-hook.json")["exit_code"] == ExitCode.INCOMPLETE


@pytest.mark.slow
def test_a_job_whose_nodes_all_failed_is_given_up_after_its_attempts_and_cleaned_up(
    nodes: Nodes, simulated: Path
) -> None:
    nodes.add_job(simulated)
    assert nodes.sweep(node_patience_s=0.0) == [("jobs/train", "later")]
    assert nodes.sweep(node_patience_s=0.0, n_attempts=2) == [("jobs/train", "retried")]
    assert nodes.asked().is_dir(), "the next attempt has what is there"
    assert nodes.sweep(node_patience_s=0.0, n_attempts=2) == [("jobs/train", "failed")]
    assert "no profiler data" in nodes.site.said("train", "summary")
    assert list(nodes.exchange.iterdir()) == []


@pytest.mark.parametrize("kind", [None, (VOLCANO, "jobs")])
def test_nodes_are_remembered_from_pods_that_are_gone_when_the_job_has_ended(
    nodes: Nodes, simulated: Path, kind: tuple[str, str] | None
) -> None:
    running = RUNNING if kind is None else {"state": {"phase": "Running"}}
    nodes.add_job(simulated, status=running, **({"kind": kind} if kind else {}))
    nodes.add_pod("foreign", "node-c", "10.0.0.3", "another-job")
    assert nodes.sweep() == []
    objects = nodes.site.cluster.objects
    for key in [key for key in objects if key[2] == "pods"]:
        del objects[key]
    (job,) = [one for key, one in objects.items() if key[2] == "jobs"]
    job["status"] = NO_TIME if kind is None else {"state": {"phase": "Completed"}}
    assert nodes.sweep() == [("jobs/train", "later")]
    assert json.loads((nodes.asked() / "request.json").read_text())["nodes"] == NODES


def test_a_sweep_without_the_right_to_list_pods_says_which_role_it_lacks(
    nodes: Nodes, simulated: Path
) -> None:
    nodes.add_job(simulated)
    nodes.site.cluster.forbidden = {("/api/v1", "pods")}
    assert nodes.sweep(n_attempts=1) == [("jobs/train", "failed")]
    assert "deploy/kubernetes/nodes-sweep" in nodes.site.said("train", "summary")


@pytest.mark.parametrize(
    ("annotations", "has_collectors", "told"),
    [
        ({"node-dir": "jobs/train"}, False, "has no collectors on the nodes"),
        ({"node-dir": "jobs/train", "profile-dir": "x"}, True, "say one of them"),
    ],
)
def test_what_cannot_be_meant_is_told_on_the_job(
    nodes: Nodes, annotations: dict[str, str], has_collectors: bool, told: str
) -> None:
    said = {PREFIX + key: value for key, value in annotations.items()}
    nodes.site.cluster.add(
        "/apis/batch/v1", "jobs", "train", status=ENDED,
        metadata={"labels": {"cluster-hook/enabled": "true"}, "annotations": said},
    )  # fmt: skip
    swept = nodes.sweep(n_attempts=1) if has_collectors else nodes.site.sweep(n_attempts=1)
    assert swept == [("jobs/train", "failed")]
    assert told in nodes.site.said("train", "summary")


def ask(nodes: Nodes, directory: str, asked_s: float | None = None) -> Path:
    """Ask both nodes as a sweep does; return the request's directory."""
    asked = nodes.exchange / "training-train-00000000"
    write_request(asked, NodeRequest(NODES, directory, None, time.time() if asked_s is None else asked_s))
    return asked


@pytest.mark.parametrize("directory", ["/etc", "../node-b", "out", "jobs/../../x"])
def test_a_job_cannot_have_files_collected_from_outside_of_the_nodes_directory(
    nodes: Nodes, directory: str
) -> None:
    nodes.disk("node-a").mkdir()
    nodes.disk("node-b").mkdir()
    (nodes.disk("node-a") / "out").symlink_to("/etc")
    asked = ask(nodes, directory)
    assert "leads out of" in nodes.collect("node-a")
    assert sorted(path.name for path in (asked / "node-a").iterdir()) == ["ended.json"]


def test_a_node_that_is_not_asked_collects_nothing_and_a_damaged_request_stops_nobody(nodes: Nodes) -> None:
    (nodes.disk("node-a") / "jobs").mkdir(parents=True)
    said = ('{"nodes": {"../../x": ""}, "directory": "", "began_s": null}', "[" * 100_000)
    for number, text in enumerate(said):
        (nodes.exchange / f"damaged{number}").mkdir()
        (nodes.exchange / f"damaged{number}" / "request.json").write_text(text)
    asked = ask(nodes, "jobs")
    nodes.disk("node-c").mkdir()
    assert nodes.collect("node-c") == ""
    nodes.collect("node-a")
    assert read_ended(asked / "node-a") is not None
    assert not (asked / "node-c").exists()


def test_a_collector_whose_exchange_is_not_mounted_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--node=node-a", f"--profiles={tmp_path}", f"--exchange={tmp_path}/none", "--once")
    assert main(["node-collect", *given]) == 1
    assert f"{tmp_path}/none" in capsys.readouterr().err


def test_what_was_asked_for_a_job_that_was_deleted_is_removed_after_a_day(nodes: Nodes) -> None:
    old = ask(nodes, "jobs", time.time() - 90_000)
    left = nodes.exchange / "left-by-a-late-collector"
    left.mkdir()
    os.utime(left, (1_700_000_000, 1_700_000_000))
    nodes.sweep()
    assert (old.exists(), left.exists()) == (False, False)
    new = ask(nodes, "jobs")
    nodes.sweep()
    assert new.exists()


@pytest.mark.slow
def test_a_collector_that_runs_takes_a_new_request_and_ends_when_kubernetes_says_so(
    nodes: Nodes, simulated: Path
) -> None:
    nodes.add_job(simulated)
    process = subprocess.Popen(
        nodes.command("node-a", "--every=0.1", "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        nodes.sweep()
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        assert (told["schema"], told["node"]) == ("cluster-hook-node-collected/1", "node-a")
        assert told["reason"] == ""
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANGS_S) == ExitCode.INTERRUPTED
    finally:
        process.kill()
        process.communicate()
    assert read_ended(nodes.asked() / "node-a") == ""
