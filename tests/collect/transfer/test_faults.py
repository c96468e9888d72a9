"""Things that break: networks, hosts, disks, files that change, and our own process."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from cluster_collect.faults import DiskFullError
from cluster_collect.pool import collect
from cluster_collect.spec import HostSpec
from cluster_run.ids import HostId, ServerId
from cluster_run.manifest import read_manifest
from demo.sshd import SshLab, SshServer
from demo.tcp_proxy import Mischief, TcpProxy

from .helpers import (
    FULL,
    QUICK,
    Recorder,
    collected,
    file_of,
    host_tree,
    make_capture,
    only_host,
    spec_for,
    tree,
)

pytestmark = pytest.mark.slow  # many servers are started

PLAIN = replace(FULL, compression="none")
REPOSITORY = Path(__file__).parents[3]


def through(spec: HostSpec, proxy: TcpProxy, lab: SshLab, server: SshServer) -> HostSpec:
    lab.trust("127.0.0.1", proxy.port, server.host_key)
    return replace(spec, address="127.0.0.1", port=proxy.port)


def no_leftovers(run: Path) -> bool:
    return not [path for path in run.rglob("*") if ".part" in path.name]


def test_a_connection_cut_at_20_points_loses_nothing_and_fetches_nothing_twice(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    make_capture(tmp_path / "host", size_bytes=400_000, n_more=40)
    spec = spec_for(lab, server, tmp_path / "host")
    with TcpProxy(server.address, server.port) as proxy:
        collected(through(spec, proxy, lab, server), tmp_path / "whole", PLAIN)
        n_bytes = proxy.n_bytes
    assert n_bytes > 450_000
    for point in range(20):
        cut = Mischief(cut_after_bytes=n_bytes * point // 20)
        watch = Recorder()
        run = tmp_path / f"run{point}"
        with TcpProxy(server.address, server.port, mischief=(cut,)) as proxy:
            outcome = only_host(collected(through(spec, proxy, lab, server), run, PLAIN, watch))
            assert proxy.n_connections == 2, point
        assert outcome.state == "complete", (point, outcome.reason)
        assert host_tree(run) == tree(tmp_path / "host")
        assert len(watch.stored) == len(set(watch.stored)) == outcome.n_stored
        assert len(watch.retries) == 1
        assert no_leftovers(run)


def test_a_link_that_breaks_again_and_again_gets_on_as_long_as_files_arrive(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    make_capture(tmp_path / "host", size_bytes=100_000, n_more=400)
    cuts = tuple(Mischief(cut_after_bytes=150_000) for _ in range(5))
    options = replace(PLAIN, n_attempts=2)
    with TcpProxy(server.address, server.port, mischief=cuts) as proxy:
        spec = through(spec_for(lab, server, tmp_path / "host"), proxy, lab, server)
        outcome = only_host(collected(spec, tmp_path / "run", options))
    assert outcome.state == "complete", outcome.reason
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")


def test_a_host_that_never_gets_through_is_partial_with_the_files_that_came(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    make_capture(tmp_path / "host", size_bytes=2_000_000)
    cuts = tuple(Mischief(cut_after_bytes=300_000) for _ in range(20))
    with TcpProxy(server.address, server.port, mischief=cuts) as proxy:
        spec = through(spec_for(lab, server, tmp_path / "host"), proxy, lab, server)
        outcome = only_host(collected(spec, tmp_path / "run", PLAIN))
    assert outcome.state == "partial"
    assert "connection was lost" in outcome.reason
    assert {file.state for file in outcome.files} == {"stored", "failed"}
    watch = Recorder()
    second = only_host(collected(spec_for(lab, server, tmp_path / "host"), tmp_path / "run", PLAIN, watch))
    assert second.state == "complete", second.reason
    assert len(watch.stored) == len(outcome.files) - outcome.n_stored


def test_a_byte_flipped_on_the_wire_breaks_the_connection_and_never_a_file(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    make_capture(tmp_path / "host", size_bytes=600_000)
    with TcpProxy(server.address, server.port, mischief=(Mischief(flip_byte_at=300_000),)) as proxy:
        spec = through(spec_for(lab, server, tmp_path / "host"), proxy, lab, server)
        watch = Recorder()
        outcome = only_host(collected(spec, tmp_path / "run", PLAIN, watch))
    assert len(watch.retries) == 1
    assert outcome.state == "complete", outcome.reason
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")


def test_two_of_six_hosts_hang_and_four_are_collected_before_they_are_named(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    make_capture(tmp_path / "host", size_bytes=200_000)
    options = replace(PLAIN, n_attempts=1, login_deadline_s=5.0, progress_deadline_s=5.0, n_jobs=1)
    specs = [spec_for(lab, server, tmp_path / "host", number) for number in range(1, 7)]
    watch = Recorder()
    stop = Mischief(stop_after_bytes=100_000)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        TcpProxy(server.address, server.port, mischief=(stop,)) as proxy,
    ):
        specs[1] = replace(specs[1], address="127.0.0.1", port=silent.getsockname()[1])
        specs[3] = through(specs[3], proxy, lab, server)
        manifest = collected(specs, tmp_path / "run", options, watch)
    states = {host.host: host.state for host in manifest.hosts}
    assert [host for host, state in states.items() if state == "complete"] == ["1", "3", "5", "6"]
    assert {outcome.host for outcome in watch.finished[-2:]} == {"2", "4"}
    hung, stopped = manifest.hosts[1], manifest.hosts[3]
    assert hung.reason == "no answer for 5 s while logging in to 127.0.0.1"
    assert stopped.reason == "no answer for 5 s while waiting for its files"
    assert stopped.advice != ""


def test_an_unreachable_host_and_an_unknown_name_are_named_with_advice(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    make_capture(tmp_path / "host")
    good = spec_for(lab, server, tmp_path / "host", 1)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        refused = replace(good, host=HostId("2"), server_id=ServerId("b"), port=unused.getsockname()[1])
        unknown = replace(good, host=HostId("3"), server_id=ServerId("c"), address="no-such-host.invalid")
        watch = Recorder()
        hosts = collected([good, refused, unknown], tmp_path / "run", QUICK, watch).hosts
    assert [host.state for host in hosts] == ["complete", "failed", "failed"]
    assert "Connect call failed" in hosts[1].reason or "refused" in hosts[1].reason
    assert "does not resolve" in hosts[2].reason
    assert hosts[1].advice == "is the host up, and its SSH port right?"
    assert hosts[2].advice == "check the address"
    assert len(watch.retries) == QUICK.n_attempts - 1  # the refused one; a wrong name stays wrong


def test_a_server_that_drops_handshakes_at_random_still_gives_every_host(
    own_lab: SshLab, tmp_path: Path
) -> None:
    server = own_lab.start("127.0.0.4", settings={"MaxStartups": "3:60:20"})
    make_capture(tmp_path / "host")
    specs = [spec_for(own_lab, server, tmp_path / "host", number) for number in range(1, 31)]
    options = replace(QUICK, n_handshakes_per_gateway=15, n_attempts=12, backoff_most_s=1.0)
    watch = Recorder()
    manifest = collected(specs, tmp_path / "run", options, watch)
    assert [host.reason for host in manifest.hosts if host.state != "complete"] == []
    assert watch.retries != []


def test_five_handshakes_at_a_time_never_meet_the_servers_limit(own_lab: SshLab, tmp_path: Path) -> None:
    server = own_lab.start("127.0.0.4", settings={"MaxStartups": "7:100:7"})
    make_capture(tmp_path / "host")
    specs = [spec_for(own_lab, server, tmp_path / "host", number) for number in range(1, 16)]
    watch = Recorder()
    manifest = collected(specs, tmp_path / "run", QUICK, watch)
    assert {host.state for host in manifest.hosts} == {"complete"}
    assert watch.retries == []


class Meddler(Recorder):
    """Does something on the host between its listing and the transfer, once or each time."""

    def __init__(self, meddle: Callable[[], None]) -> None:
        super().__init__()
        self._meddle = meddle

    def plan_known(self, host: HostId, n_files: int, n_bytes: int) -> None:
        super().plan_known(host, n_files, n_bytes)
        self._meddle()


@pytest.mark.parametrize("method", ["tar", "local"])
@pytest.mark.parametrize("content", [b"longer than it was before" * 2000, b"short"])
def test_a_file_that_changes_after_the_listing_is_fetched_again(
    lab: SshLab, server: SshServer, tmp_path: Path, method: str, content: bytes
) -> None:
    capture = make_capture(tmp_path / "host")
    changing = capture / "ASCEND_PROFILER_OUTPUT" / "communication.json"
    watch = Meddler(lambda: changing.write_bytes(content) and None)
    spec = spec_for(lab, server, tmp_path / "host")
    if method == "local":
        spec = HostSpec(HostId("1"), ServerId("s"), local=str(tmp_path / "host"))
    outcome = only_host(collected(spec, tmp_path / "run", FULL, watch))
    assert outcome.state == "complete", outcome.reason
    assert file_of(outcome, "communication.json").size_bytes == len(content)
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Path]:
    """A file that somebody keeps appending to."""
    capture = make_capture(tmp_path / "host")
    path = capture / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
    path.write_bytes(b"x" * 1000)
    stopped = threading.Event()

    def append() -> None:
        while not stopped.wait(0.001):
            with path.open("ab") as stream:
                stream.write(b"more\n")

    thread = threading.Thread(target=append)
    thread.start()
    yield path
    stopped.set()
    thread.join()


def test_a_file_that_is_still_being_written_is_stored_and_called_unstable(
    lab: SshLab, server: SshServer, growing: Path, tmp_path: Path
) -> None:
    outcome = only_host(collected(spec_for(lab, server, tmp_path / "host"), tmp_path / "run", FULL))
    file = file_of(outcome, "kernel_details.csv")
    assert (outcome.state, file.state) == ("partial", "unstable")
    assert "1 file still being written" in outcome.reason
    assert os.stat(tmp_path / "run" / file.path).st_size == file.size_bytes
    assert {other.state for other in outcome.files if other is not file} == {"stored"}


def test_a_file_that_is_removed_after_the_listing_costs_only_itself(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    capture = make_capture(tmp_path / "host")
    doomed = capture / "profiler_metadata.json"
    watch = Meddler(doomed.unlink)
    outcome = only_host(collected(spec_for(lab, server, tmp_path / "host"), tmp_path / "run", FULL, watch))
    assert outcome.state == "partial"
    assert file_of(outcome, doomed.name).reason == "removed on the host before it could be read"
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")


def test_a_cancelled_collection_leaves_no_manifest_and_goes_on_from_there(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    make_capture(tmp_path / "host", size_bytes=300_000, n_more=60)
    spec = spec_for(lab, server, tmp_path / "host")

    class Interrupt(Recorder):
        def file_stored(self, host: HostId, path: str, size_bytes: int) -> None:
            super().file_stored(host, path, size_bytes)
            if len(self.stored) == 10:
                task.cancel()

    first = Interrupt()
    options = replace(PLAIN, bandwidth_bytes_per_s=200_000)

    async def interrupted() -> None:
        nonlocal task
        task = asyncio.ensure_future(collect([spec], tmp_path / "run", options, None, first))
        with pytest.raises(asyncio.CancelledError):
            await task

    task: asyncio.Future[object] = asyncio.Future(loop=asyncio.new_event_loop())
    task.get_loop().close()
    asyncio.run(interrupted())
    assert not (tmp_path / "run" / "manifest.json").exists()
    assert no_leftovers(tmp_path / "run")

    second = Recorder()
    outcome = only_host(collected(spec, tmp_path / "run", PLAIN, second))
    assert outcome.state == "complete", outcome.reason
    assert set(first.stored).isdisjoint(second.stored)
    assert len(first.stored) + len(second.stored) == outcome.n_stored
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")


N_KILLS = 8


def test_kill_9_at_any_moment_leaves_no_wrong_file_and_nothing_is_fetched_twice(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    make_capture(tmp_path / "host", size_bytes=150_000, n_more=300)
    truth = tree(tmp_path / "host")
    spec = spec_for(lab, server, tmp_path / "host")
    (tmp_path / "spec.json").write_text(json.dumps([asdict(spec)]))
    command = [sys.executable, "-m", "tests.collect.transfer.child", str(tmp_path / "spec.json")]
    chance = random.Random(3)
    seen: list[str] = []
    for _ in range(N_KILLS):
        run = [*command, str(tmp_path / "run"), "150000"]
        process = subprocess.Popen(run, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
        assert process.stdout is not None
        n_wanted = chance.randrange(1, 30)
        for _ in range(n_wanted):
            seen.append(process.stdout.readline().strip())
        process.send_signal(signal.SIGKILL)
        seen += process.stdout.read().split("\n")[:-1]
        process.wait()
        process.stdout.close()
        landed = {
            name: content for name, content in host_tree(tmp_path / "run").items() if ".part" not in name
        }
        assert {name: content for name, content in landed.items() if truth[name] != content} == {}
        assert not (tmp_path / "run" / "manifest.json").exists()
    watch = Recorder()
    outcome = only_host(collected(spec, tmp_path / "run", PLAIN, watch))
    assert outcome.state == "complete", outcome.reason
    assert host_tree(tmp_path / "run") == truth
    everything = [*seen, *watch.stored]
    assert len(everything) == len(set(everything))
    # A kill between files' landing and their announcement costs the announcement, not the files.
    assert len(everything) <= outcome.n_stored


def test_a_journal_that_a_power_cut_made_a_liar_is_not_believed(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    """A journal's file with the right size and time but another content is fetched again."""
    make_capture(tmp_path / "host")
    spec = spec_for(lab, server, tmp_path / "host")
    outcome = only_host(collected(spec, tmp_path / "run", FULL))
    file = file_of(outcome, "communication.json")
    (tmp_path / "run" / "manifest.json").unlink()
    line = json.dumps({"server_id": spec.server_id, **asdict(file)})
    (tmp_path / "run" / ".cluster-collect.journal").write_text(line + "\n" + line[:40])
    landed = tmp_path / "run" / file.path
    landed.write_bytes(bytes(file.size_bytes))
    os.utime(landed, ns=(file.mtime_ns, file.mtime_ns))
    collected(spec, tmp_path / "run", FULL)
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small tmpfs: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_what_does_not_fit_is_refused_before_anything_is_written(
    lab: SshLab, server: SshServer, small_disk: Path, tmp_path: Path
) -> None:
    make_capture(tmp_path / "host", size_bytes=20_000_000)
    with pytest.raises(DiskFullError, match="7 MiB free, 19 MiB needed"):
        collected(spec_for(lab, server, tmp_path / "host"), small_disk / "run", FULL)
    assert host_tree(small_disk / "run") == {}


def test_a_disk_that_fills_up_stops_everything_and_a_second_call_goes_on(
    lab: SshLab, server: SshServer, small_disk: Path, tmp_path: Path
) -> None:
    make_capture(tmp_path / "host", size_bytes=4_000_000, n_more=10)
    ballast = small_disk / "ballast"

    class Filler(Recorder):
        def bytes_received(self, host: HostId, n_bytes: int) -> None:
            if not ballast.exists():
                ballast.write_bytes(bytes(6_000_000))

    spec = spec_for(lab, server, tmp_path / "host")
    with pytest.raises(DiskFullError, match="no space left") as caught:
        collected(spec, small_disk / "run", FULL, Filler())
    assert "goes on" in caught.value.advice
    assert not (small_disk / "run" / "manifest.json").exists()
    assert no_leftovers(small_disk / "run")
    ballast.unlink()
    assert only_host(collected(spec, small_disk / "run", FULL)).state == "complete"
    assert host_tree(small_disk / "run") == tree(tmp_path / "host")


def test_the_old_manifest_is_out_of_sight_while_files_change_under_it(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    capture = make_capture(tmp_path / "host")
    spec = spec_for(lab, server, tmp_path / "host")
    collected(spec, tmp_path / "run", FULL)
    (capture / "profiler_metadata.json").write_text("new")

    class Look(Recorder):
        def file_stored(self, host: HostId, path: str, size_bytes: int) -> None:
            super().file_stored(host, path, size_bytes)
            self.notes.append(str((tmp_path / "run" / "manifest.json").exists()))

    watch = Look()
    manifest = collected(spec, tmp_path / "run", FULL, watch)
    assert watch.notes[-1] == "False"
    assert read_manifest(tmp_path / "run" / "manifest.json") == manifest
