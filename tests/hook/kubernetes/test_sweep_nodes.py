"""Data on the nodes' own disks: the sweep asks, a collector on each node brings, one run is analysed."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cluster_hook.kubernetes import raw_files
from cluster_hook.kubernetes.node_exchange import NodeRequest, read_ended, write_ended, write_request
from cluster_hook.kubernetes.trainingjob import PREFIX
from cluster_run.errors import ExitCode
from cluster_run.ids import HostId
from cluster_run.layout import host_directory
from tests.hook.kubernetes.sweep_site import ENDED, RUNNING, VOLCANO, Site

_NODES = {"node-a": "10.0.0.1", "node-b": "10.0.0.2"}
_NO_TIME: dict[str, Any] = {"conditions": [{"type": "Complete", "status": "True"}]}


class Nodes:
    """A site whose nodes have disks of their own; each runs its collector when told."""

    def __init__(self, site: Site, root: Path) -> None:
        self.site, self.root, self.exchange = site, root, root / "exchange"
        self.exchange.mkdir(parents=True)

    def add_job(self, simulated: Path, *, status: dict[str, Any] | None = None, **changes: Any) -> None:
        """Add a job whose pods ran on two nodes, and what they wrote there."""
        changes.setdefault("annotations", {PREFIX + "node-dir": "jobs/train"})
        self.site.add_job("train", status=_NO_TIME if status is None else status, **changes)
        ((key, job),) = [pair for pair in self.site.cluster.objects.items() if pair[0][3] == "train"]
        # The site's jobs say where on the volume they wrote.
        job["metadata"]["annotations"].pop(PREFIX + "profile-dir")
        for number, (node, address) in enumerate(_NODES.items(), start=1):
            self.add_pod(f"train-{number}", node, address, job["metadata"]["uid"])
            shutil.copytree(
                simulated / "cluster_profiler" / str(number) / "profiler", self.disk(node) / "jobs" / "train"
            )
        assert key[2] == "jobs"

    def add_pod(self, name: str, node: str, address: str, owner: str) -> None:
        self.site.cluster.add(
            "/api/v1", "pods", name,
            metadata={"ownerReferences": [{"uid": owner}]},
            spec={"nodeName": node}, status={"hostIP": address},
        )  # fmt: skip

    def disk(self, node: str) -> Path:
        return self.root / node

    def command(self, node: str, *options: str) -> list[str]:
        where = [f"--node={node}", f"--profiles={self.disk(node)}", f"--exchange={self.exchange}"]
        return [sys.executable, "-m", "cluster_hook", "node-collect", *where, *options]

    def collect(self, node: str) -> str:
        ended = subprocess.run(
            self.command(node, "--once"), capture_output=True, text=True, timeout=50, check=True
        )
        return ended.stdout

    def sweep(self, **changes: Any) -> list[tuple[str, str]]:
        return self.site.sweep(node_exchange=self.exchange, **changes)

    def asked(self) -> Path:
        (asked,) = self.exchange.iterdir()
        return asked

    def result(self, name: str) -> dict[str, Any]:
        results = self.site.options.results / self.site.said("train", "results")
        document: dict[str, Any] = json.loads((results / name).read_text())
        return document


@pytest.fixture
def nodes(site: Site, tmp_path: Path) -> Nodes:
    return Nodes(site, tmp_path / "nodes")


def rank_table(simulated: Path) -> dict[str, str]:
    """Return the job's rank table with the addresses of its nodes."""
    table = json.loads((simulated / "hccl.json").read_text())
    for server, address in zip(table["server_list"], _NODES.values(), strict=True):
        server["server_id"] = address
    return {"hccl.json": json.dumps(table)}


def ran_until(end_s: float) -> dict[str, Any]:
    """Return the status of a job that ran for an hour."""
    begin, end = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s)) for at_s in (end_s - 3600, end_s))
    return {**_NO_TIME, "startTime": begin, "completionTime": end}


def touch_all(top: Path, at_s: float) -> None:
    for path in top.rglob("*"):
        os.utime(path, (at_s, at_s))


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
    for node in _NODES:
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
    job["status"] = _NO_TIME if kind is None else {"state": {"phase": "Completed"}}
    assert nodes.sweep() == [("jobs/train", "later")]
    assert json.loads((nodes.asked() / "request.json").read_text())["nodes"] == _NODES


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
    write_request(asked, NodeRequest(_NODES, directory, None, time.time() if asked_s is None else asked_s))
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
    damaged = nodes.exchange / "damaged"
    damaged.mkdir()
    (damaged / "request.json").write_text('{"nodes": {"../../x": ""}, "directory": "", "began_s": null}')
    asked = ask(nodes, "jobs")
    nodes.disk("node-c").mkdir()
    assert nodes.collect("node-c") == ""
    nodes.collect("node-a")
    assert read_ended(asked / "node-a") is not None
    assert not (asked / "node-c").exists()


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
        assert process.wait(30) == ExitCode.INTERRUPTED
    finally:
        process.kill()
        process.communicate()
    assert read_ended(nodes.asked() / "node-a") == ""


def raw_of(nodes: Nodes) -> Path:
    return (nodes.site.options.results / nodes.site.said("train", "results")).parent / "raw"


def suspects(nodes: Nodes, **changes: Any) -> list[tuple[str, str]]:
    """Sweep, with whole files of the suspects asked for."""
    return nodes.sweep(follow=dataclasses.replace(nodes.site.options.follow, keep_raw="suspects"), **changes)


@pytest.mark.slow
def test_after_the_verdict_the_suspects_come_whole_beside_the_results(nodes: Nodes, simulated: Path) -> None:
    nodes.site.cluster.add("/api/v1", "configmaps", "rings-config-train", data=rank_table(simulated))
    nodes.add_job(simulated, status=ran_until(time.time() - 120))
    for node in _NODES:
        touch_all(nodes.disk(node), time.time() - 600)
    suspects(nodes)
    for node in _NODES:
        nodes.collect(node)
    assert suspects(nodes) == [("jobs/train", "done")], "the verdict waits for no raw file"
    assert not raw_of(nodes).exists()
    for node in _NODES:
        nodes.collect(node)
    (told,) = suspects(nodes)
    assert (told[1], list(nodes.exchange.iterdir())) == ("fetched", [])
    named = nodes.result("findings.json")["findings"][0]
    (capture,) = [
        path for path in (raw_of(nodes) / "cluster_profiler" / "2").rglob("*_ascend_pt")
        if (path / f"profiler_info_{named['ranks'][0]}.json").exists()
    ]  # fmt: skip
    on_disk = next(nodes.disk("node-b").rglob(capture.name))
    assert {one.relative_to(capture) for one in capture.rglob("*")} == {
        one.relative_to(on_disk) for one in on_disk.rglob("*")
    }
    assert not list(raw_of(nodes).rglob("*.columns"))
    assert "node-b" not in "".join(map(str, raw_of(nodes).rglob("*")))
    assert suspects(nodes) == [], "nothing is fetched twice"


@pytest.mark.slow
def test_a_node_that_is_silent_then_costs_its_raw_files_only(nodes: Nodes, simulated: Path) -> None:
    nodes.add_job(simulated)
    suspects(nodes)
    for node in _NODES:
        nodes.collect(node)
    suspects(nodes)
    assert suspects(nodes) == [], "its collectors have not answered yet"
    told: list[Any] = []
    nodes.collect("node-a")
    for one in raw_files.bring_raw(nodes.exchange, nodes.site.options.results, time.time() + 60, 1.0):
        told.append(one.text)
    assert "host 2: its collector did not answer" in told[0]
    assert nodes.site.said("train", "state") == "done"


@pytest.mark.parametrize("where", ["../out", "/etc", "link"])
def test_raw_files_land_nowhere_but_beside_results(tmp_path: Path, where: str) -> None:
    exchange, results = tmp_path / "exchange", tmp_path / "results"
    (results / "jobs").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (results / "link").symlink_to(tmp_path / "out")
    asked = exchange / "train.raw"
    request = NodeRequest({"node-a": ""}, "jobs/train", None, 0.0, suspects_for=where)
    write_request(asked, request)
    host_directory(asked / "node-a", HostId("1")).mkdir(parents=True)
    (brought,) = raw_files.bring_raw(exchange, results, time.time(), 0.0)
    assert "is no directory of results" in brought.text
    assert list((tmp_path / "out").iterdir()) == []
    assert list(exchange.iterdir()) == []


def test_a_link_that_a_node_brings_is_not_followed(tmp_path: Path) -> None:
    exchange, results = tmp_path / "exchange", tmp_path / "results"
    (results / "job").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    asked = exchange / "train.raw"
    write_request(asked, NodeRequest({"node-a": ""}, "jobs/train", None, 0.0, suspects_for="job"))
    part = host_directory(asked / "node-a", HostId("1"))
    part.mkdir(parents=True)
    (part / "token").symlink_to(tmp_path / "secret")
    write_ended(asked / "node-a", "")
    list(raw_files.bring_raw(exchange, results, time.time(), 900.0))
    (copied,) = (results / "job" / "raw").rglob("token")
    assert copied.is_symlink()
