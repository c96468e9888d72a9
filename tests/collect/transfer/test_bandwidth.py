"""Bandwidth caps over real SSH: never faster than allowed, per host and in all. Slower is no failure."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from demo.sshd import SshLab, SshServer
from tests.collect.helpers import PLAIN, collected, host_tree, make_capture, spec_for, tree

pytestmark = pytest.mark.slow  # a few seconds each: that is what a cap is for

KB = 1000
SIZE = 1600 * KB
RATE = 800 * KB
#: What may come at once: a quarter of a second's worth, and what was on its way when the pause began.
BURST = RATE // 4 + 300 * KB


@pytest.mark.parametrize("transport", ["asyncssh", "paramiko"])
@pytest.mark.parametrize("cap", ["of the host", "of all"])
def test_a_cap_is_kept_over_ssh(
    lab: SshLab, server: SshServer, tmp_path: Path, transport: str, cap: str
) -> None:
    make_capture(tmp_path / "host", size_bytes=SIZE)
    rate = RATE if cap == "of the host" else None
    spec = spec_for(lab, server, tmp_path / "host", transport=transport, bandwidth_bytes_per_s=rate)
    options = PLAIN if rate else replace(PLAIN, bandwidth_bytes_per_s=RATE)
    began_s = time.monotonic()
    manifest = collected(spec, tmp_path / "run", options)
    took_s = time.monotonic() - began_s
    assert [host.state for host in manifest.hosts] == ["complete"]
    assert manifest.hosts[0].wire_bytes - BURST <= RATE * took_s
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")


def test_hosts_share_the_cap_of_all(lab: SshLab, server: SshServer, tmp_path: Path) -> None:
    make_capture(tmp_path / "host", size_bytes=SIZE // 3)
    specs = [spec_for(lab, server, tmp_path / "host", number) for number in (1, 2, 3)]
    began_s = time.monotonic()
    manifest = collected(specs, tmp_path / "run", replace(PLAIN, bandwidth_bytes_per_s=RATE))
    took_s = time.monotonic() - began_s
    assert {host.state for host in manifest.hosts} == {"complete"}
    assert sum(host.wire_bytes for host in manifest.hosts) - BURST <= RATE * took_s
