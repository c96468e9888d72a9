"""Networks that break, hosts that hang or are not there, and servers that drop handshakes."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_run.ids import HostId, ServerId
from demo.sshd import SshLab, SshServer
from demo.tcp_proxy import Mischief, TcpProxy
from tests.collect.helpers import (
    PLAIN,
    QUICK,
    Recorder,
    collected,
    host_tree,
    make_capture,
    no_leftovers,
    only_host,
    spec_for,
    through,
    tree,
)

pytestmark = pytest.mark.slow  # many servers are started


def own_disk(host: Path, number: int) -> Path:
    """The same files with times of their own, as another host's disk has them."""
    return Path(shutil.copytree(host, host.with_name(f"host{number}"), copy_function=shutil.copyfile))


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
    cuts = tuple(Mischief(cut_after_bytes=220_000) for _ in range(5))
    options = replace(PLAIN, n_attempts=2)
    with TcpProxy(server.address, server.port, mischief=cuts) as proxy:
        spec = through(spec_for(lab, server, tmp_path / "host"), proxy, lab, server)
        outcome = only_host(collected(spec, tmp_path / "run", options))
    assert outcome.state == "complete", outcome.reason
    assert proxy.n_connections > options.n_attempts
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
    options = replace(PLAIN, n_attempts=1, login_deadline_s=12.0, progress_deadline_s=12.0, n_jobs=1)
    specs = [spec_for(lab, server, own_disk(tmp_path / "host", number), number) for number in range(1, 7)]
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
    assert hung.reason == "no answer for 12 s while logging in to 127.0.0.1"
    assert stopped.reason == "no answer for 12 s while waiting for its files"
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
    specs = [
        spec_for(own_lab, server, own_disk(tmp_path / "host", number), number) for number in range(1, 31)
    ]
    options = replace(QUICK, n_handshakes_per_gateway=15, n_attempts=12, backoff_most_s=1.0)
    watch = Recorder()
    manifest = collected(specs, tmp_path / "run", options, watch)
    assert [host.reason for host in manifest.hosts if host.state != "complete"] == []
    assert watch.retries != []


def test_five_handshakes_at_a_time_never_meet_the_servers_limit(own_lab: SshLab, tmp_path: Path) -> None:
    server = own_lab.start("127.0.0.4", settings={"MaxStartups": "7:100:7"})
    make_capture(tmp_path / "host")
    specs = [
        spec_for(own_lab, server, own_disk(tmp_path / "host", number), number) for number in range(1, 16)
    ]
    watch = Recorder()
    manifest = collected(specs, tmp_path / "run", QUICK, watch)
    assert {host.state for host in manifest.hosts} == {"complete"}
    assert watch.retries == []


def kill_sessions_of(server: SshServer) -> None:
    """Kill the processes that serve a server's connections."""
    children = Path(f"/proc/{server.process_id}/task/{server.process_id}/children").read_text()
    for child in children.split():
        os.kill(int(child), signal.SIGKILL)


def test_a_server_process_killed_in_the_middle_of_a_file_is_a_lost_connection_and_no_whole_file(
    own_lab: SshLab, tmp_path: Path
) -> None:
    server = own_lab.start("127.0.0.4")
    make_capture(tmp_path / "host", size_bytes=3_000_000)

    class Killer(Recorder):
        def bytes_received(self, host: HostId, n_bytes: int) -> None:
            if n_bytes > 200_000 and not self.notes.count("killed"):
                self.notes.append("killed")
                kill_sessions_of(server)

    watch = Killer()
    options = replace(PLAIN, bandwidth_bytes_per_s=2_000_000)
    outcome = only_host(
        collected(spec_for(own_lab, server, tmp_path / "host"), tmp_path / "run", options, watch)
    )
    assert len(watch.retries) == watch.notes.count("killed") == 1
    assert outcome.state == "complete", outcome.reason
    assert len(watch.stored) == len(set(watch.stored)) == outcome.n_stored
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")
