"""What a sweep fetches whole after the verdict: the raw files of suspects, beside the results."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import pytest

from cluster_hook.kubernetes import raw_files
from cluster_hook.kubernetes.node_exchange import NodeRequest, write_ended, write_request
from cluster_run.ids import HostId
from cluster_run.layout import host_directory
from tests.hook.kubernetes.sweep_nodes import NODES, Nodes, ran_until, rank_table, touch_all


def raw_of(nodes: Nodes) -> Path:
    return (nodes.site.options.results / nodes.site.said("train", "results")).parent / "raw"


def suspects(nodes: Nodes, **changes: Any) -> list[tuple[str, str]]:
    """Sweep, with whole files of the suspects asked for."""
    return nodes.sweep(follow=dataclasses.replace(nodes.site.options.follow, keep_raw="suspects"), **changes)


@pytest.mark.slow
def test_after_the_verdict_the_suspects_come_whole_beside_the_results(nodes: Nodes, simulated: Path) -> None:
    nodes.site.cluster.add("/api/v1", "configmaps", "rings-config-train", data=rank_table(simulated))
    nodes.add_job(simulated, status=ran_until(time.time() - 120))
    for node in NODES:
        touch_all(nodes.disk(node), time.time() - 600)
    suspects(nodes)
    for node in NODES:
        nodes.collect(node)
    assert suspects(nodes) == [("jobs/train", "done")], "the verdict waits for no raw file"
    assert not raw_of(nodes).exists()
    for node in NODES:
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
    for node in NODES:
        nodes.collect(node)
    suspects(nodes)
    assert suspects(nodes) == [], "its collectors have not answered yet"
    told: list[Any] = []
    nodes.collect("node-a")
    for _, text in raw_files.bring_raw(nodes.exchange, nodes.site.options.results, time.time() + 60, 1.0):
        told.append(text)
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
    ((_, text),) = raw_files.bring_raw(exchange, results, time.time(), 0.0)
    assert "is no directory of results" in text
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
