"""Bandwidth caps over real SSH: never faster than allowed, per host and in all. Slower is no failure."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.tcp_proxy import Mischief, TcpProxy
from cluster_collect.progress_events import ProgressListener
from cluster_run.ids import HostId
from demo.sshd import SshLab, SshServer
from tests.collect.helpers import BOTH, PLAIN, OneHost, collected, make_capture, spec_for

pytestmark = pytest.mark.slow  # a few seconds each: that is what a cap is for

KB = 1000
SIZE = 1200 * KB
RATE = 800 * KB
#: What may come at once: a quarter of a second's worth, and what was on its way when the pause began.
BURST = RATE // 4 + 300 * KB


@BOTH
@pytest.mark.parametrize("cap", ["of the host", "of all"])
def test_a_cap_is_kept_over_ssh(host: OneHost, transport: str, cap: str) -> None:
    make_capture(host.root, 1, size_bytes=SIZE)
    rate = RATE if cap == "of the host" else None
    options = PLAIN if rate else replace(PLAIN, bandwidth_bytes_per_s=RATE)
    began_s = time.monotonic()
    outcome = host.having(transport=transport, bandwidth_bytes_per_s=rate).collect_all(options)
    took_s = time.monotonic() - began_s
    assert outcome.wire_bytes - BURST <= RATE * took_s


def test_hosts_share_the_cap_of_all(lab: SshLab, server: SshServer, tmp_path: Path) -> None:
    make_capture(tmp_path / "host", size_bytes=SIZE // 3)
    specs = [spec_for(lab, server, tmp_path / "host", number) for number in (1, 2, 3)]
    began_s = time.monotonic()
    manifest = collected(specs, tmp_path / "run", replace(PLAIN, bandwidth_bytes_per_s=RATE))
    took_s = time.monotonic() - began_s
    assert {host.state for host in manifest.hosts} == {"complete"}
    assert sum(host.wire_bytes for host in manifest.hosts) - BURST <= RATE * took_s


@BOTH
def test_a_host_sends_no_further_ahead_than_the_cap_lets_pass(
    host: OneHost, lab: SshLab, server: SshServer, transport: str
) -> None:
    """What crosses the network and is not taken yet lies in memory: a large file must not pile up there."""
    make_capture(host.root, 1, size_bytes=20_000 * KB)
    ahead: list[int] = []
    with TcpProxy(server.address, server.port) as proxy:

        class Watch(ProgressListener):
            n_bytes = 0

            def bytes_received(self, host: HostId, n_bytes: int) -> None:
                self.n_bytes += n_bytes
                ahead.append(proxy.n_bytes - self.n_bytes)

        rate = 10_000 * KB
        capped = host.having(transport=transport).through(proxy, lab)
        capped.collect_all(replace(PLAIN, bandwidth_bytes_per_s=rate), Watch())
    # Sockets of the proxy and of the client hold megabytes; without the cap all of the file is ahead.
    assert max(ahead) < rate // 4 + 6000 * KB


@BOTH
def test_a_host_that_hangs_is_told_as_soon_as_without_a_cap(
    host: OneHost, lab: SshLab, server: SshServer, transport: str
) -> None:
    make_capture(host.root, 1, size_bytes=20_000 * KB)
    n_bytes, rate, deadline_s = 2000 * KB, 400 * KB, 3.0
    stop = Mischief(stop_after_bytes=n_bytes)
    options = replace(PLAIN, n_attempts=1, progress_deadline_s=deadline_s)
    with TcpProxy(server.address, server.port, mischief=(stop,)) as proxy:
        capped = host.having(transport=transport, bandwidth_bytes_per_s=rate).through(proxy, lab)
        began_s = time.monotonic()
        outcome = capped.collect(options)
    assert outcome.reason == "no answer for 3 s while waiting for its files"
    assert time.monotonic() - began_s < n_bytes / rate + deadline_s + 7.0
