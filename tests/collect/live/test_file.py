"""A running job is captured by the file of PROF_CONFIG_PATH: the real profiler, real SSH, hosts apart."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

from cluster_collect.live.collected import Hosts, Taken, taken
from cluster_collect.live.options import LiveOptions
from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import CollectOptions
from tests.collect.live.hosts import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
LIVE = LiveOptions(n_steps=3)


def captured(cluster: Cluster, run: Path, live: LiveOptions = LIVE, said: list[str] | None = None) -> Taken:
    hosts = Hosts(cluster.specs(), CollectOptions(min_free_bytes=0))
    say = (said if said is not None else []).append
    return asyncio.run(taken(hosts, live, run, ProgressListener(), say))


def test_the_same_steps_of_two_hosts_come_and_the_file_is_as_it_was(cluster: Cluster, tmp_path: Path) -> None:
    cluster.add(2)
    cluster.job().start()
    before = [(host.configuration / "profiler_config.json").stat() for host in cluster.hosts]
    contents = [(host.configuration / "profiler_config.json").read_bytes() for host in cluster.hosts]
    said: list[str] = []
    result = captured(cluster, tmp_path / "run", said=said)
    assert result.captured.lost == {}, said
    assert len(result.captured.steps) == 3
    files = list((tmp_path / "run").rglob("step_trace_time.csv"))
    assert len(files) == 4
    steps = {tuple(line.split(",")[1] for line in path.read_text().splitlines()[1:]) for path in files}
    assert steps == {tuple(str(step) for step in result.captured.steps)}
    after = [(host.configuration / "profiler_config.json").stat() for host in cluster.hosts]
    assert [(host.configuration / "profiler_config.json").read_bytes() for host in cluster.hosts] == contents
    assert [one.st_mtime for one in after] == [one.st_mtime for one in before]
    assert json.loads(contents[0])["start_step"] == 0


def test_a_clock_of_ours_that_is_set_while_hosts_say_their_steps_costs_no_capture(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.add(2)
    cluster.job().start()
    path, real = cluster.hosts[0].configuration / "profiler_config.json", time.time
    before, was_set = path.read_bytes(), False

    def an_hour_ahead_from_the_probe_on() -> float:
        nonlocal was_set
        was_set = was_set or path.read_bytes() != before
        return real() + 3600 * was_set

    monkeypatch.setattr("time.time", an_hour_ahead_from_the_probe_on)
    assert captured(cluster, tmp_path / "run").captured.lost == {}
