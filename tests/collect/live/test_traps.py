"""Traps of the protocol, each with the real profiler: nothing of another job is captured, nothing is left."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_collect.live.collected import Hosts, taken
from cluster_collect.live.command import previewed
from cluster_collect.live.outcome import NotCapturedError
from cluster_collect.live.prepare import found, held
from cluster_collect.live.sessions import opened_sessions
from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import CollectOptions
from tests.collect.live.hosts import Cluster, LiveHost
from tests.collect.live.test_file import LIVE, captured
from tests.commands import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def elsewhere(host: LiveHost) -> Path:
    """Another directory of configuration."""
    made = host.directory / "cfg-other"
    made.mkdir()
    return made


def captures(host: LiveHost) -> list[Path]:
    """All that was ever captured on a host, by whatever job."""
    return list(host.directory.rglob("*_ascend_pt"))


def ask(host: LiveHost, at_s: float | None = None, **changes: object) -> None:
    """Change the configuration as somebody else would, with a file time of one's own."""
    path = host.configuration / "profiler_config.json"
    document = {**json.loads(path.read_text()), "prof_dir": str(host.directory / "theirs"), **changes}
    (path.parent / ".theirs").write_text(json.dumps(document))
    if at_s is not None:
        os.utime(path.parent / ".theirs", (at_s, at_s))
    (path.parent / ".theirs").rename(path)


def processes(host: LiveHost, name: str) -> list[int]:
    """The processes of a host with that name, as this machine counts them."""
    space = os.readlink(f"/proc/{host.inner}/ns/pid")
    there = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/ns/pid") == space:
                there += [int(pid)] * (Path(f"/proc/{pid}/comm").read_text().strip() == name)
        except OSError:
            continue
    return there


def monitor(host: LiveHost) -> int:
    """The process that reads the configuration of a host; it gives itself its name after the ranks began."""
    return wait_until(lambda: processes(host, "DynMonitorProc"))[0]


def wait_until_taken(host: LiveHost, start: int) -> None:
    """Wait until every rank of a host has taken a configuration that asks for this start."""
    for log in (host.configuration / "log").glob("dp_*.log"):
        wait_until(lambda log=log: f"Start step will be set to {start}." in log.read_text())


def test_two_jobs_that_started_in_one_hour_share_memory_and_neither_is_captured(
    cluster: Cluster, host: LiveHost, tmp_path: Path
) -> None:
    first = cluster.job("41").start()
    cluster.job("42", configurations={0: elsewhere(host)}).start()
    for live in (LIVE, replace(LIVE, job="41"), replace(LIVE, job=str(host.configuration))):
        with pytest.raises(NotCapturedError, match="share one memory file"):
            captured(cluster, tmp_path / "run", live)
    first.end()
    assert captures(host) == []


def test_the_monitor_of_a_killed_job_is_named_and_the_next_job_is_not_captured(
    cluster: Cluster, host: LiveHost, tmp_path: Path
) -> None:
    first = cluster.job("41").start()
    monitor(host)
    for pid in {*processes(host, Path(sys.executable).resolve().name), *processes(host, "python")}:
        if Path(f"/proc/{pid}/environ").read_bytes().find(b"RANK=") >= 0:
            os.kill(pid, signal.SIGKILL)
    for process in first.processes.values():
        process.wait(60)
    assert processes(host, "DynMonitorProc"), "the monitor outlives its job: that is the trap"
    cluster.job("42", configurations={0: elsewhere(host)}).start()
    with pytest.raises(NotCapturedError, match="monitor of a job that was killed"):
        captured(cluster, tmp_path / "run", replace(LIVE, job="42"))
    assert captures(host) == []


def test_what_somebody_else_asked_for_is_neither_lost_nor_taken_for_ours(
    cluster: Cluster, host: LiveHost, tmp_path: Path
) -> None:
    cluster.job().start()
    time.sleep(2)  # a rank takes nothing of the second in which it began
    ask(host, start_step=100_000)
    wait_until_taken(host, 100_000)
    with pytest.raises(NotCapturedError, match="asks for a capture at step 100000"):
        captured(cluster, tmp_path / "run")
    assert json.loads((host.configuration / "profiler_config.json").read_text())["start_step"] == 100_000
    # What was asked for long ago and dropped is in nobody's way.
    time.sleep(2)
    ask(host, start_step=0)
    wait_until_taken(host, 0)
    assert captured(cluster, tmp_path / "again").captured.lost == {}
    assert all("theirs" not in str(path) for path in captures(host))


def test_a_configuration_from_the_future_is_refused_as_ranks_would_take_nothing(
    cluster: Cluster, host: LiveHost, tmp_path: Path
) -> None:
    cluster.job().start()
    ask(host, at_s=time.time() + 500, start_step=0)
    with pytest.raises(NotCapturedError, match="ahead of this host's clock"):
        captured(cluster, tmp_path / "run")
    assert captures(host) == []


def test_a_rank_that_does_not_take_what_its_neighbours_take_is_asked_until_it_does(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.add(1)
    cluster.job(environment={"BEGAN_LATER_S": json.dumps({"0": 8})}).start()
    assert captured(cluster, tmp_path / "run").captured.lost == {}


def test_a_second_capture_of_the_same_job_waits_for_the_first(cluster: Cluster) -> None:
    cluster.add(1)
    cluster.job().start()
    specs = {spec.host: spec for spec in cluster.specs()}
    options = CollectOptions()

    async def both() -> None:
        async with opened_sessions(cluster.specs(), options, None) as one:
            await held(await found(one, specs, LIVE))
            async with opened_sessions(cluster.specs(), options, None) as other:
                with pytest.raises(NotCapturedError, match="held by the capture live-"):
                    await held(await found(other, specs, LIVE))
        async with opened_sessions(cluster.specs(), options, None) as later:
            await held(await found(later, specs, LIVE))

    asyncio.run(both())


def test_one_who_is_interrupted_leaves_nothing_pending_in_the_job(cluster: Cluster, tmp_path: Path) -> None:
    cluster.add(2)
    cluster.job(step_s=0.2).start()
    paths = [host.configuration / "profiler_config.json" for host in cluster.hosts]
    before = [path.read_bytes() for path in paths]

    async def interrupted() -> None:
        hosts = Hosts(cluster.specs(), CollectOptions(min_free_bytes=0))
        work = asyncio.ensure_future(taken(hosts, LIVE, tmp_path / "run", ProgressListener(), lambda _: None))
        while not all(json.loads(path.read_text())["start_step"] > 0 for path in paths):
            await asyncio.sleep(0.05)
            assert not work.done()
        await asyncio.sleep(1.2)  # the job has it by now
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(interrupted())
    assert [path.read_bytes() for path in paths] == before
    time.sleep(4)
    assert [path for host in cluster.hosts for path in captures(host) if "probe" not in str(path)] == []


def test_a_host_that_does_not_hear_is_named_and_as_all_are_required_nothing_is_captured(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.add(2)
    cluster.job(n_ranks=1).start()
    os.kill(monitor(cluster.hosts[1]), signal.SIGSTOP)
    with pytest.raises(NotCapturedError, match="node1: rank 1 did not say its step"):
        captured(cluster, tmp_path / "all")
    assert [path for host in cluster.hosts for path in captures(host) if "probe" not in str(path)] == []


def test_a_host_that_counts_from_0_again_is_a_stray(cluster: Cluster, tmp_path: Path) -> None:
    cluster.add(3)
    cluster.job(n_ranks=1, first_steps={0: 5000, 2: 5000}).start()
    time.sleep(2)
    result = captured(cluster, tmp_path / "run", replace(LIVE, quorum=2)).captured
    assert {host: why.word for host, why in result.lost.items()} == {"2": "stray"}
    assert captures(cluster.hosts[1]) == []


def test_hosts_that_share_a_directory_of_configuration_are_asked_by_one_of_them(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.add(2)
    shared = tmp_path / "shared"
    shared.mkdir()
    cluster.job(n_ranks=1, configurations={0: shared, 1: shared}).start()
    result = captured(cluster, tmp_path / "run").captured
    assert result.lost == {}
    assert len(list((tmp_path / "run").rglob("step_trace_time.csv"))) == 2


def test_a_job_in_a_container_is_captured_there_and_of_two_containers_one_is_named(
    cluster: Cluster, host: LiveHost, tmp_path: Path
) -> None:
    inside = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /dev/shm && exec "$@"', "sh")
    cluster.job("41", n_ranks=1, inside=inside).start()
    alone = captured(cluster, tmp_path / "one").captured
    assert alone.lost == {}
    assert next(iter(alone.directories.values())).startswith("/proc/")
    cluster.job("42", n_ranks=1, inside=inside, configurations={0: elsewhere(host)}).start()
    with pytest.raises(NotCapturedError, match="several jobs wait for captures here"):
        captured(cluster, tmp_path / "both")
    before = set(captures(host))
    assert captured(cluster, tmp_path / "named", replace(LIVE, job="42")).captured.lost == {}
    (new,) = set(captures(host)) - before
    assert (new / "profiler_info_0.json").exists()


def test_a_dry_run_sends_nothing_and_tells_the_time(cluster: Cluster, host: LiveHost) -> None:
    cluster.job().start()
    time.sleep(1.5)
    before = (host.configuration / "profiler_config.json").stat()
    text = asyncio.run(previewed(Hosts(cluster.specs(), CollectOptions()), LIVE))
    assert "2 ranks on 1 of 1 hosts" in text
    assert "nothing was sent" in text
    assert (host.configuration / "profiler_config.json").stat() == before
