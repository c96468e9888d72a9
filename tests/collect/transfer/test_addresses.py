"""What the run directory tells of a failure names no address: reports show hosts by their numbers."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_collect.spec import HostSpec
from cluster_collect.store.addresses import without_addresses
from cluster_run.ids import HostId, ServerId
from cluster_run.manifest import HostOutcome, read_manifest
from demo.sshd import SshLab, make_key
from tests.collect.helpers import BOTH, QUICK, collected, spec_for

#: Whatever a person or a configuration calls the hosts of the test.
_NAMES = ("127.0.", "10.9.8.", "no-such-host", "localhost", "inner-name", "alias", "gate7", "behind")


@BOTH
@pytest.mark.slow
def test_no_failure_in_the_manifest_names_an_address(own_lab: SshLab, tmp_path: Path, transport: str) -> None:
    server = own_lab.start("127.0.10.9")
    stranger = make_key(tmp_path / "stranger")
    good = spec_for(own_lab, server, "/nowhere", transport=transport)
    (tmp_path / "unknown").touch()
    (tmp_path / "changed").write_text(
        f"[{server.address}]:{server.port} {Path(f'{stranger}.pub').read_text()}"
    )
    # To the configuration of ssh the hosts have names of their own, and so has their jump host.
    (tmp_path / "config").write_text(
        "Host alias gate*\n  HostName LocalHost\nHost behind\n  ProxyJump gate7\n  HostName Inner-Name\n"
    )
    inside = own_lab.start("127.0.0.1")
    (tmp_path / "changed-too").write_text(f"[LocalHost]:{inside.port} {Path(f'{stranger}.pub').read_text()}")
    own_lab.trust("LocalHost", inside.port, inside.host_key)
    aliased = replace(good, ssh_config=str(tmp_path / "config"), address="alias", port=inside.port)
    with socket.create_server(("127.0.10.8", 0)) as frozen:
        ways = [
            good,  # no profiler root
            replace(good, port=1),
            replace(good, address="no-such-host.invalid"),
            replace(good, known_hosts=str(tmp_path / "unknown")),
            replace(good, known_hosts=str(tmp_path / "changed")),
            replace(good, identity_file=str(stranger)),
            replace(good, address="127.0.10.8", port=frozen.getsockname()[1]),
            replace(good, jump="me@127.0.10.7:1"),
            replace(aliased, port=1),
            replace(aliased, known_hosts=str(tmp_path / "unknown")),
            replace(aliased, known_hosts=str(tmp_path / "changed-too")),
            replace(aliased, identity_file=str(stranger)),
            replace(aliased, address="behind"),
            replace(aliased, address="behind", port=1, jump=f"gate7:{inside.port}"),
        ]
        specs = [
            replace(spec, host=HostId(str(number)), server_id=ServerId(f"10.9.8.{number}"))
            for number, spec in enumerate(ways, 1)
        ]
        options = replace(QUICK, n_attempts=1, login_deadline_s=1.0)
        shown = collected(specs, tmp_path / "run", options).hosts
    told = read_manifest(tmp_path / "run" / "manifest.json").hosts
    assert {host.state for host in told} == {"failed"}
    for host in told:
        assert host.reason
        for text in (host.reason, host.advice):
            known = [name for name in _NAMES if name.lower() in text.lower()]
            assert known == [], text
    assert [host.failure for host in told] == [host.failure for host in shown]


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("127.0.10.9: Connection refused", "Connection refused"),
        ("node01.cluster: the connection was lost: reset", "the connection was lost: reset"),
        ("fe80::1%eth0: timed out", "timed out"),
        ("the key of [node01]:2222 is not known (SHA256:ab)", "the key of the host is not known (SHA256:ab)"),
        ("logging in to gate took too long", "logging in to the jump host took too long"),
        ("the key of [fe80::77]:22 is revoked", "the key of the jump host is revoked"),
        ("the key of nfs7.lan has changed (SHA256:ab)", "the key of the host has changed (SHA256:ab)"),
        ("/data/node01/prof: missing", "/data/node01/prof: missing"),
        ("a_ascend_pt/x: a link to 1.2.3.4:22 broke", "a_ascend_pt/x: a link to an address broke"),
        ("2 files missing: a/b: the host did not send it", "2 files missing: a/b: the host did not send it"),
    ],
)
def test_a_reason_keeps_all_but_the_addresses(reason: str, told: str) -> None:
    spec = HostSpec(HostId("1"), ServerId("10.0.0.1"), address="node01", jump="me@gate:22,[fe80::77]:22")
    outcome = HostOutcome(HostId("1"), ServerId("10.0.0.1"), "failed", reason=reason)
    assert without_addresses(outcome, spec, {"nfs7.lan": "the host"}).reason == told
