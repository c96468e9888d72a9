"""Networks that break, hosts that hang or are not there, and servers that drop handshakes."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.tcp_proxy import Mischief, TcpProxy
from cluster_collect.spec import HostSpec
from cluster_run.ids import HostId, ServerId
from demo.sshd import SshLab, SshServer
from tests.collect.conftest import Start
from tests.collect.helpers import PLAIN, QUICK, OneHost, Recorder, collected, make_capture, through

pytestmark = pytest.mark.slow  # many servers are started


def on_own_disks(host: OneHost, n: int) -> list[HostSpec]:
    """Hosts with the same files, which have times of their own, as other hosts' disks have them."""
    specs = []
    for number in range(1, n + 1):
        disk = shutil.copytree(host.root, host.root.with_name(f"disk{number}"), copy_function=shutil.copyfile)
        changes = {"server_id": ServerId(f"server-{number}"), "profiler_root": str(disk)}
        specs.append(replace(host.spec, host=HostId(str(number)), **changes))  # type: ignore[arg-type]
    return specs


def test_a_connection_cut_at_8_points_loses_nothing_and_fetches_nothing_twice(
    host: OneHost, lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    make_capture(host.root, 1, 300_000, n_more=40)
    with TcpProxy(server.address, server.port) as proxy:
        host.through(proxy, lab).collect_all(PLAIN)
        n_bytes = proxy.n_bytes
    assert n_bytes > 350_000
    for point in range(8):
        cut = Mischief(cut_after_bytes=n_bytes * (2 * point + 1) // 17)
        watch = Recorder()
        with TcpProxy(server.address, server.port, mischief=(cut,)) as proxy:
            through_it = replace(host, run=tmp_path / f"run{point}").through(proxy, lab)
            outcome = through_it.collect_all(PLAIN, watch)
            assert proxy.n_connections == 2, point
        assert len(watch.stored) == len(set(watch.stored)) == outcome.files.n_stored
        assert len(watch.retries) == 1


def test_a_link_that_breaks_again_and_again_gets_on_as_long_as_files_arrive(
    host: OneHost, lab: SshLab, server: SshServer
) -> None:
    make_capture(host.root, 1, 100_000, n_more=400)
    cuts = tuple(Mischief(cut_after_bytes=220_000) for _ in range(5))
    with TcpProxy(server.address, server.port, mischief=cuts) as proxy:
        host.through(proxy, lab).collect_all(replace(PLAIN, n_attempts=2))
    assert proxy.n_connections > 2


def test_a_host_that_never_gets_through_is_partial_with_the_files_that_came(
    host: OneHost, lab: SshLab, server: SshServer
) -> None:
    make_capture(host.root, 1, 2_000_000)
    cuts = tuple(Mischief(cut_after_bytes=300_000) for _ in range(20))
    with TcpProxy(server.address, server.port, mischief=cuts) as proxy:
        outcome = host.through(proxy, lab).collect(PLAIN)
    assert outcome.state == "partial"
    assert "connection was lost" in outcome.reason
    assert {file.state for file in outcome.files} == {"stored", "failed"}
    watch = Recorder()
    host.collect_all(PLAIN, watch)
    assert len(watch.stored) == len(outcome.files) - outcome.files.n_stored


def test_a_byte_flipped_on_the_wire_breaks_the_connection_and_never_a_file(
    host: OneHost, lab: SshLab, server: SshServer
) -> None:
    make_capture(host.root, 1, 600_000)
    watch = Recorder()
    with TcpProxy(server.address, server.port, mischief=(Mischief(flip_byte_at=300_000),)) as proxy:
        host.through(proxy, lab).collect_all(PLAIN, watch)
    assert len(watch.retries) == 1


def test_two_of_six_hosts_hang_and_four_are_collected_before_they_are_named(
    host: OneHost, lab: SshLab, server: SshServer
) -> None:
    make_capture(host.root, 1, 200_000)
    options = replace(PLAIN, n_attempts=1, login_deadline_s=12.0, progress_deadline_s=12.0, n_jobs=1)
    specs = on_own_disks(host, 6)
    watch = Recorder()
    stop = Mischief(stop_after_bytes=100_000)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        TcpProxy(server.address, server.port, mischief=(stop,)) as proxy,
    ):
        specs[1] = replace(specs[1], address="127.0.0.1", port=silent.getsockname()[1])
        specs[3] = through(specs[3], proxy, lab, server)
        manifest = collected(specs, host.run, options, watch)
    assert [one.host for one in manifest.hosts if one.state == "complete"] == ["1", "3", "5", "6"]
    assert {outcome.host for outcome in watch.finished[-2:]} == {"2", "4"}
    hung, stopped = manifest.hosts[1], manifest.hosts[3]
    assert hung.reason == "no answer for 12 s while logging in"
    assert stopped.reason == "no answer for 12 s while waiting for its files"
    assert stopped.advice != ""


def test_an_unreachable_host_and_an_unknown_name_are_named_with_advice(host: OneHost) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        good = host.spec
        refused = replace(good, host=HostId("2"), server_id=ServerId("b"), port=unused.getsockname()[1])
        unknown = replace(good, host=HostId("3"), server_id=ServerId("c"), address="no-such-host.invalid")
        watch = Recorder()
        hosts = collected([good, refused, unknown], host.run, QUICK, watch).hosts
    assert [one.state for one in hosts] == ["complete", "failed", "failed"]
    assert "Connect call failed" in hosts[1].reason or "refused" in hosts[1].reason
    assert "does not resolve" in hosts[2].reason
    assert hosts[1].advice == "is the host up, and its SSH port right?"
    assert hosts[2].advice == "check the address"
    assert len(watch.retries) == QUICK.n_attempts - 1  # the refused one; a wrong name stays wrong


MANY = replace(QUICK, n_handshakes_per_gateway=15, n_attempts=12, backoff_most_s=1.0)


@pytest.mark.parametrize(
    ("limit", "n_hosts", "options", "is_met"),
    [("3:60:20", 30, MANY, True), ("7:100:7", 15, QUICK, False)],
    ids=["a server that drops at random", "five at a time are below every limit"],
)
def test_a_server_that_limits_handshakes_gives_every_host(
    start: Start, limit: str, n_hosts: int, options: object, is_met: bool
) -> None:
    host = start({"MaxStartups": limit})
    watch = Recorder()
    manifest = collected(on_own_disks(host, n_hosts), host.run, options, watch)  # type: ignore[arg-type]
    assert [one.reason for one in manifest.hosts if one.state != "complete"] == []
    assert (watch.retries != []) == is_met


def kill_sessions_of(process_id: int) -> None:
    """Kill the processes that serve a server's connections."""
    children = Path(f"/proc/{process_id}/task/{process_id}/children").read_text()
    for child in children.split():
        os.kill(int(child), signal.SIGKILL)


def test_a_server_process_killed_in_the_middle_of_a_file_is_a_lost_connection_and_no_whole_file(
    start: Start,
) -> None:
    host = start()
    server = host.server
    make_capture(host.root, 1, 3_000_000)

    class Killer(Recorder):
        n_bytes_received = 0

        def bytes_received(self, host: HostId, n_bytes: int) -> None:
            self.n_bytes_received += n_bytes
            if self.n_bytes_received > 200_000 and not self.notes.count("killed"):
                self.notes.append("killed")
                kill_sessions_of(server.process_id)

    watch = Killer()
    outcome = host.collect_all(replace(PLAIN, bandwidth_bytes_per_s=2_000_000), watch)
    assert len(watch.retries) == watch.notes.count("killed") == 1
    assert len(watch.stored) == len(set(watch.stored)) == outcome.files.n_stored
