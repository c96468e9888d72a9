"""With `verify` the hosts hash what they sent: files that only look the same are found and fetched."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_run.ids import HostId, ServerId
from tests.collect.conftest import Start
from tests.collect.helpers import BOTH, FULL, OneHost, Recorder, collected, file_of, local_host, tree

VERIFIED = replace(FULL, verify=True)


@pytest.fixture(params=["ssh", "local"])
def one(host: OneHost, request: pytest.FixtureRequest) -> OneHost:
    (next(host.root.iterdir()) / "odd\n -name\\.json").write_text("odd")
    return host if request.param == "ssh" else local_host(host.root, host.run)


def flip(path: Path) -> None:
    """Change a byte, and neither size nor time."""
    status = path.stat()
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_files_that_are_right_are_verified_and_not_fetched_again(one: OneHost) -> None:
    one.collect_all(VERIFIED)
    assert one.planned(VERIFIED) == 0


@pytest.mark.slow
@pytest.mark.parametrize("side", ["host", "run"])
def test_a_byte_flipped_behind_size_and_time_is_found_on_the_host_and_here(one: OneHost, side: str) -> None:
    file = file_of(one.collect(), "communication.json")
    flip(one.root / file.source if side == "host" else one.run / file.path)
    assert one.planned() == 0, "without it nobody looks"
    watch = Recorder()
    one.collect_all(VERIFIED, watch)
    assert watch.stored == [file.path]


@BOTH
@pytest.mark.slow
def test_a_host_that_allows_one_session_at_a_time_answers_all_that_it_is_asked(
    start: Start, transport: str
) -> None:
    host = start({"MaxSessions": "1"}, transport=transport)
    host.collect_all(VERIFIED)
    flip(next(host.root.rglob("communication.json")))
    host.collect_all(VERIFIED)
    assert host.collect().hardware
    beside = replace(host.spec, host=HostId("2"), server_id=ServerId("server-2"))
    hosts = collected([host.spec, beside], host.run.with_name("both"), FULL).hosts
    assert sorted(one.same_files_as != "" for one in hosts) == [False, True]


@pytest.mark.slow
def test_a_host_that_runs_nothing_for_us_is_told_and_keeps_its_files(start: Start) -> None:
    host = start({"ForceCommand": "internal-sftp"})
    outcome = host.collect(VERIFIED)
    assert (outcome.state, outcome.failure) == ("partial", "remote-failure")
    assert outcome.reason == "it cannot be verified: the host runs no sha256sum for us"
    assert outcome.advice == "call it without --verify"
    assert host.landed() == tree(host.root)
