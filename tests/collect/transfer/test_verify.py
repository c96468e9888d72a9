"""With `verify` the hosts hash what they sent: files that only look the same are found and fetched."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_collect.spec import HostSpec
from cluster_run.ids import HostId, ServerId
from demo.sshd import SshLab, SshServer
from tests.collect.helpers import (
    FULL,
    Recorder,
    collected,
    file_of,
    host_tree,
    make_capture,
    only_host,
    spec_for,
    tree,
)

VERIFIED = replace(FULL, verify=True)


@pytest.fixture(params=["ssh", "local"])
def spec(lab: SshLab, server: SshServer, tmp_path: Path, request: pytest.FixtureRequest) -> HostSpec:
    capture = make_capture(tmp_path / "host")
    (capture / "odd\n -name\\.json").write_text("odd")
    if request.param == "local":
        return HostSpec(HostId("1"), ServerId("server-1"), local=str(tmp_path / "host"), transport="local")
    return spec_for(lab, server, tmp_path / "host")


def flip(path: Path) -> None:
    """Change a byte, and neither size nor time."""
    status = path.stat()
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_files_that_are_right_are_verified_and_not_fetched_again(spec: HostSpec, tmp_path: Path) -> None:
    assert only_host(collected(spec, tmp_path / "run", VERIFIED)).state == "complete"
    again = Recorder()
    assert only_host(collected(spec, tmp_path / "run", VERIFIED, again)).state == "complete"
    assert again.stored == []
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")


@pytest.mark.parametrize("side", ["host", "run"])
def test_a_byte_flipped_behind_size_and_time_is_found_on_the_host_and_here(
    spec: HostSpec, tmp_path: Path, side: str
) -> None:
    outcome = only_host(collected(spec, tmp_path / "run", FULL))
    file = file_of(outcome, "communication.json")
    flip(tmp_path / "host" / file.source if side == "host" else tmp_path / "run" / file.path)
    unaware = Recorder()
    collected(spec, tmp_path / "run", FULL, unaware)
    assert unaware.stored == []
    watch = Recorder()
    assert only_host(collected(spec, tmp_path / "run", VERIFIED, watch)).state == "complete"
    assert watch.stored == [file.path]
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")


@pytest.mark.slow
def test_a_host_that_runs_nothing_for_us_is_told_and_keeps_its_files(own_lab: SshLab, tmp_path: Path) -> None:
    make_capture(tmp_path / "host")
    server = own_lab.start("127.0.0.4", settings={"ForceCommand": "internal-sftp"})
    outcome = only_host(collected(spec_for(own_lab, server, tmp_path / "host"), tmp_path / "run", VERIFIED))
    assert (outcome.state, outcome.failure) == ("partial", "remote-failure")
    assert outcome.reason == "it cannot be verified: the host runs no sha256sum for us"
    assert outcome.advice == "call it without --verify"
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")
